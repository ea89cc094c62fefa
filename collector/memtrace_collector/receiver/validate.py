"""The few checks before an acknowledgement: does each span or log record have what it needs?

A payload of the wrong signal parses, because protobuf ignores what it does not know; it shows
in the ids. Refusals are per span, so that one bad exporter behind a Collector does not cost
the others their data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from google.protobuf.unknown_fields import UnknownFieldSet

from memtrace_collector.log.format import Signal

_TRACE_ID_BYTES = 16
_SPAN_ID_BYTES = 8
_ZERO_TRACE_ID = bytes(_TRACE_ID_BYTES)
_ZERO_SPAN_ID = bytes(_SPAN_ID_BYTES)
_LENGTH_DELIMITED = 2


class Checked(NamedTuple):
    """How many spans or log records came, and how many of them are refused."""

    items: int
    rejected: int
    reason: str = ""

    @property
    def accepted(self) -> int:
        return self.items - self.rejected


_REASONS: dict[Signal, str] = {
    "traces": "spans without a valid trace id (16 bytes, not all zero) and span id (8 bytes)",
    "logs": "log records with malformed ids, or spans sent as log records",
}


def check(signal: Signal, request: Any) -> Checked:
    """Count the items of a decoded request and those that cannot be accepted."""
    is_valid = _VALID[signal]
    items = rejected = 0
    for container in _containers(signal, request):
        items += len(container)
        rejected += sum(not is_valid(item) for item in container)
    return Checked(items, rejected, f"rejected: {_REASONS[signal]}" if rejected else "")


def keep_valid(signal: Signal, request: Any) -> None:
    """Remove what :func:`check` counts as rejected, in place."""
    is_valid = _VALID[signal]
    for container in _containers(signal, request):
        if not all(map(is_valid, container)):
            kept = [item for item in container if is_valid(item)]
            del container[:]
            container.extend(kept)


def _containers(signal: Signal, request: Any) -> list[Any]:
    """The repeated fields that hold the spans or log records."""
    if signal == "traces":
        return [scope.spans for part in request.resource_spans for scope in part.scope_spans]
    return [scope.log_records for part in request.resource_logs for scope in part.scope_logs]


def _valid_span(span: Any) -> bool:
    trace_id, span_id = span.trace_id, span.span_id
    return (
        len(trace_id) == _TRACE_ID_BYTES
        and len(span_id) == _SPAN_ID_BYTES
        and trace_id != _ZERO_TRACE_ID
        and span_id != _ZERO_SPAN_ID
        and len(span.parent_span_id) in (0, _SPAN_ID_BYTES)
    )


def _valid_log_record(record: Any) -> bool:
    if len(record.trace_id) not in (0, _TRACE_ID_BYTES):
        return False
    if len(record.span_id) not in (0, _SPAN_ID_BYTES):
        return False
    timed = record.time_unix_nano or record.observed_time_unix_nano
    return bool(timed) or not _is_span(record)


def _is_span(record: Any) -> bool:
    """A span read as a log record: its trace id stands where a log record has its time."""
    unknown = UnknownFieldSet(record)
    fields = (unknown[index] for index in range(len(unknown)))
    return any(field.field_number == 1 and field.wire_type == _LENGTH_DELIMITED for field in fields)


_VALID: dict[Signal, Callable[[Any], bool]] = {"traces": _valid_span, "logs": _valid_log_record}
