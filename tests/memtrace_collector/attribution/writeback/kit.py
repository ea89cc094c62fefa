"""A verdict to write back, and what was written, read again."""

from __future__ import annotations

from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memtrace_collector.attribution.writeback.rows import entries
from memtrace_collector.attribution.writeback.target import WriteBack
from memtrace_collector.graph.facts import Operation
from memtrace_collector.store.base import OutboxEntry
from tests.memtrace_collector.attribution.scripts import Script

CASE_ID = "c" * 32
MINUTE = 60_000_000_000
HOUR = 60 * MINUTE


class Written(NamedTuple):
    """A span with the service it bears."""

    service: str
    span: Any

    @property
    def says(self) -> dict[str, Any]:
        return {each.key: _plain(each.value) for each in self.span.attributes}

    @property
    def links(self) -> list[tuple[str, str]]:
        return [(link.trace_id.hex(), link.span_id.hex()) for link in self.span.links]


def case(revision: int = 1) -> tuple[dict[str, Any], Script]:
    """The verdict of a record that was deleted two days before it was asked for."""
    script = Script()
    message, version = script.remember("My barber is Enzo.")
    script.day(2)
    script.delete(version)
    script.ask("Who is my barber?")
    script.reply("I do not know.")
    script.flag("Enzo", message)
    return {"id": CASE_ID, "revision": revision, **script.verdict().to_json()}, script


def written(
    verdict: dict[str, Any], script: Script, *, late_ns: int = MINUTE, **target: Any
) -> dict[str, OutboxEntry]:
    """Every row by its id, as written so long after the answer."""
    last = answer(script)
    rows = entries(
        verdict,
        {op.key: op for op in script.operations},
        last,
        now_ns=last.end_ns + late_ns,
        target=WriteBack(**target),
    )
    return {row.id: row for row in rows}


def spans(entry: OutboxEntry) -> list[Written]:
    """In the order of their times, as a page shows them."""
    request = ExportTraceServiceRequest.FromString(entry.payload)
    found = [
        Written(group.resource.attributes[0].value.string_value, span)
        for group in request.resource_spans
        for span in group.scope_spans[0].spans
    ]
    return sorted(found, key=lambda each: each.span.start_time_unix_nano)


def answer(script: Script) -> Operation:
    return script.operations[-1]


def _plain(value: Any) -> Any:
    kind = value.WhichOneof("value")
    found = getattr(value, kind)
    return [item.string_value for item in found.values] if kind == "array_value" else found
