"""References and operations, looked at alone. Pure."""

from __future__ import annotations

from datetime import date, datetime, timezone
from typing import NamedTuple

from memtrace_collector.graph.facts import Operation
from memtrace_otel import semconv, variables


class Moment(NamedTuple):
    """The day from which relative words of a value count; assumed when nobody declared it."""

    day: date
    assumed: bool


def kind(ref: str) -> str:
    return ref.partition(":")[0]


def is_deleted(ref: str) -> bool:
    return variables.version_of(ref) == semconv.DELETED_VERSION


def sources_within(op: Operation, output: str) -> tuple[str, ...]:
    """The inputs that made an output: by edges where there are any, else all."""
    made = tuple(
        edge.input
        for edge in op.edges
        if edge.output == output and edge.relation != semconv.RELATION_RELATED_TO
    )
    return made or op.inputs


def outputs_within(op: Operation, source: str) -> tuple[str, ...]:
    """The outputs made from an input: by edges where the operation has any, else all."""
    edges = [edge for edge in op.edges if edge.relation != semconv.RELATION_RELATED_TO]
    if not edges:
        return op.outputs
    return tuple(edge.output for edge in edges if edge.input == source)


def queries_of(op: Operation) -> list[str]:
    """The queries that an operation read."""
    return [ref for ref in op.inputs if kind(ref) == semconv.KIND_QUERY]


def parse_day(stamp: str) -> date | None:
    """The day of an RFC 3339 time, in its own offset."""
    try:
        return date.fromisoformat(stamp[:10])
    except ValueError:
        return None


def day_of(time_ns: int) -> date:
    """The UTC day of a time in nanoseconds since the Unix epoch."""
    return datetime.fromtimestamp(time_ns / 1e9, tz=timezone.utc).date()
