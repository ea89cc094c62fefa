"""JSON shapes that several answers share."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from memtrace_collector.graph.facts import OperationKey

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def span_json(key: OperationKey) -> dict[str, str]:
    """``{"traceId", "spanId"}``."""
    return {"traceId": key.trace_id, "spanId": key.span_id}


def time_json(time_ns: int) -> str:
    """RFC 3339 in UTC, to the millisecond."""
    moment = _EPOCH + timedelta(microseconds=time_ns // 1000)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
