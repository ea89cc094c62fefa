"""Texts and JSON shapes that several questions and their answers share. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from memtrace_collector.errors import WrongUseError
from memtrace_collector.graph.facts import Operation, OperationKey
from memtrace_otel import variables

Json = dict[str, Any]

_TRACE_ID = re.compile(r"[0-9a-f]{32}")
_SPAN_ID = re.compile(r"[0-9a-f]{16}")
_FRACTION = re.compile(r"\.([0-9]+)")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def span_json(key: OperationKey) -> dict[str, str]:
    """``{"traceId", "spanId"}``."""
    return {"traceId": key.trace_id, "spanId": key.span_id}


def span_key(span: Mapping[str, str]) -> OperationKey:
    """The key of what :func:`span_json` gave."""
    return OperationKey(span["traceId"], span["spanId"])


def time_json(time_ns: int) -> str:
    """RFC 3339 in UTC, to the millisecond."""
    moment = _EPOCH + timedelta(microseconds=time_ns // 1000)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def operation_json(operation: Operation) -> Json:
    """What a list of operations shows of each."""
    return {
        **span_json(operation.key),
        "graph_id": operation.graph_id,
        "name": operation.name,
        "step": operation.step,
        "service": operation.service,
        "time": time_json(operation.start_ns),
    }


def parse_answer(text: str) -> OperationKey:
    """``TRACE[:SPAN]`` in hex digits; the span id may be empty.

    Raises:
        WrongUseError: that is not what it is.
    """
    trace_id, _, span_id = text.strip().lower().partition(":")
    if not _TRACE_ID.fullmatch(trace_id) or (span_id and not _SPAN_ID.fullmatch(span_id)):
        raise WrongUseError(
            f"{text!r} is not TRACE[:SPAN]: 32 hex digits, a colon and 16 hex digits"
        )
    return OperationKey(trace_id, span_id)


def is_span(text: str) -> bool:
    """``TRACE:SPAN``?"""
    trace_id, _, span_id = text.strip().lower().partition(":")
    return bool(_TRACE_ID.fullmatch(trace_id) and _SPAN_ID.fullmatch(span_id))


def check_reference(text: str) -> None:
    """Raise WrongUseError for what is not a reference to a variable."""
    try:
        variables.parse(text)
    except ValueError as error:
        raise WrongUseError(str(error)) from None


def time_ns(text: str) -> int | None:
    """RFC 3339 (a date alone is midnight; no offset is UTC) in nanoseconds since the epoch;
    None for any other text."""
    # Python 3.10 reads neither Z nor fractions other than of three or six digits
    written = re.sub("[zZ]$", "+00:00", text.strip())
    written = _FRACTION.sub(lambda found: f".{found[1][:6]:0<6}", written)
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


def parse_time(text: str) -> int:
    """As :func:`time_ns`; raises WrongUseError for what is no time."""
    found = time_ns(text)
    if found is None:
        raise WrongUseError(f"{text!r} is not a time such as 2026-03-01 or 2026-03-01T09:30:00Z")
    return found
