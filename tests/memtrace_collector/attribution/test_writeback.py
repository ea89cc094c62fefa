"""A verdict becomes spans and a log record: deterministic, linked, bounded, without content."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from memtrace_collector.attribution.writeback.identity import case_trace_id, root_span_id
from memtrace_collector.attribution.writeback.rows import entries
from memtrace_collector.attribution.writeback.target import WriteBack
from memtrace_collector.dialects import registry
from memtrace_collector.graph.facts import Operation
from memtrace_collector.store.base import OutboxEntry
from tests.memtrace_collector.attribution.scripts import Script

HOUR = 3_600_000_000_000


def _case(revision: int = 1) -> tuple[dict[str, Any], Script]:
    script = Script()
    message, version = script.remember("My barber is Enzo.")
    script.day(2)
    script.delete(version)
    script.ask("Who is my barber?")
    script.reply("I do not know.")
    script.flag("Enzo", message)
    return {"id": "c" * 32, "revision": revision, **script.verdict().to_json()}, script


def _entries(
    verdict: dict[str, Any], script: Script, *, late_ns: int = 60_000_000_000, **target: Any
) -> dict[str, OutboxEntry]:
    answer = script.operations[-1]
    found = entries(
        verdict,
        {op.key: op for op in script.operations},
        answer,
        now_ns=answer.end_ns + late_ns,
        target=WriteBack(**target),
    )
    return {entry.id: entry for entry in found}


def _spans(entry: OutboxEntry) -> tuple[str, list[Any]]:
    (resource,) = ExportTraceServiceRequest.FromString(entry.payload).resource_spans
    service = resource.resource.attributes[0].value.string_value
    return service, list(resource.scope_spans[0].spans)


def _attributes(span: Any) -> dict[str, Any]:
    return {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in span.attributes}


def _answer(script: Script) -> Operation:
    return script.operations[-1]


def test_case_trace_tells_the_path_hop_by_hop() -> None:
    verdict, script = _case()
    service, spans = _spans(_entries(verdict, script)["c" * 32 + "/1/case"])
    root, *hops = spans
    assert service == "memtrace"
    assert root.name == "memtrace.case" and not root.parent_span_id
    assert root.trace_id.hex() == case_trace_id("c" * 32, 1)
    assert [hop.name for hop in hops] == ["memtrace.hop"] * len(verdict["path"])
    assert all(hop.parent_span_id == root.span_id for hop in hops)
    assert [_attributes(hop)["memtrace.hop.kind"] for hop in hops] == [
        hop["kind"] for hop in verdict["path"]
    ]
    linked = [(hop.links[0].trace_id.hex(), hop.links[0].span_id.hex()) for hop in hops]
    assert linked == [(h["span"]["traceId"], h["span"]["spanId"]) for h in verdict["path"]]
    failed = [hop for hop in spans if hop.status.code == Status.STATUS_CODE_ERROR]
    assert [hop.links[0].span_id.hex() for hop in failed] == [verdict["decisive"][0]["spanId"]]


def test_verdict_stands_in_the_failing_trace_below_the_answer() -> None:
    verdict, script = _case()
    service, (span,) = _spans(_entries(verdict, script)["c" * 32 + "/1/attribution"])
    answer = _answer(script)
    assert service == answer.service
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (answer.trace_id, answer.span_id)
    assert span.start_time_unix_nano == answer.end_ns < span.end_time_unix_nano
    assert span.status.code == Status.STATUS_CODE_ERROR
    assert (span.links[0].trace_id.hex(), span.links[0].span_id.hex()) == (
        case_trace_id("c" * 32, 1),
        root_span_id("c" * 32, 1),
    )
    assert span.links[1].span_id.hex() == verdict["decisive"][0]["spanId"]
    attributes = _attributes(span)
    assert attributes["memtrace.attribution.type"] == "wrongly_deleted"
    assert attributes["memtrace.cause.span_id"] == verdict["decisive"][0]["spanId"]
    assert attributes["memtrace.cause.time"].startswith("2026-01-03T")


@pytest.mark.fault("F37")
@pytest.mark.parametrize(
    ("profile", "offset"), [("jaeger", 0), ("tempo", 2 * HOUR), ("none", None)]
)
def test_late_verdict_is_stamped_as_the_profile_says(profile: str, offset: int | None) -> None:
    verdict, script = _case()
    rows = _entries(verdict, script, late_ns=2 * HOUR, profile=profile)
    entry = rows.get("c" * 32 + "/1/attribution")
    if offset is None:
        assert entry is None
        assert "c" * 32 + "/1/case" in rows
        return
    assert entry is not None
    _, (span,) = _spans(entry)
    assert span.start_time_unix_nano == _answer(script).end_ns + offset


def test_marker_only_for_jaeger_and_the_same_for_every_case_of_one_operation() -> None:
    verdict, script = _case()
    (marker,) = [e for e in _entries(verdict, script).values() if e.id.startswith("cause/")]
    service, (span,) = _spans(marker)
    decisive = verdict["decisive"][0]
    assert service == "writer"
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (
        decisive["traceId"],
        decisive["spanId"],
    )
    other = {**verdict, "id": "d" * 32}
    assert marker.id in _entries(other, script)
    assert not [e for e in _entries(verdict, script, profile="tempo") if e.startswith("cause/")]


def test_evaluation_record_names_the_type_and_carries_no_score() -> None:
    verdict, script = _case()
    entry = _entries(verdict, script)["c" * 32 + "/1/evaluation"]
    assert entry.signal == "logs"
    (logs,) = ExportLogsServiceRequest.FromString(entry.payload).resource_logs
    (record,) = logs.scope_logs[0].log_records
    attributes = _attributes(record)
    assert record.event_name == "gen_ai.evaluation.result"
    assert record.span_id.hex() == _answer(script).span_id
    assert attributes["gen_ai.evaluation.name"] == "memtrace.attribution"
    assert attributes["gen_ai.evaluation.score.label"] == "wrongly_deleted"
    assert "gen_ai.evaluation.score.value" not in attributes


@pytest.mark.fault("F38")
def test_bytes_are_the_same_each_time_and_new_for_a_new_revision() -> None:
    verdict, script = _case()
    assert _entries(verdict, script) == _entries(verdict, script)
    later, _ = _case(revision=2)
    root = _spans(_entries(later, script)["c" * 32 + "/2/case"])[1][0]
    assert root.trace_id.hex() != case_trace_id("c" * 32, 1)
    assert case_trace_id("c" * 32, 1) in [link.trace_id.hex() for link in root.links]


def test_a_superseding_verdict_links_to_the_older_and_says_what_it_changed() -> None:
    says = "Supersedes revision 1: it said extraction/omission."
    verdict, script = _case(revision=2)
    verdict |= {"supersedes": {"revision": 1, "says": says}}
    found = _entries(verdict, script)
    (older,) = _spans(_entries({**verdict, "revision": 1}, script)["c" * 32 + "/1/attribution"])[1]
    (newer,) = _spans(found["c" * 32 + "/2/attribution"])[1]
    assert older.span_id != newer.span_id
    assert older.span_id in [link.span_id for link in newer.links]
    assert _attributes(newer)["memtrace.attribution.explanation"].endswith(says)
    root = _spans(found["c" * 32 + "/2/case"])[1][0]
    assert root_span_id("c" * 32, 1) in [link.span_id.hex() for link in root.links]


@pytest.mark.fault("F35")
def test_no_content_leaves_unless_quotes_are_allowed() -> None:
    verdict, script = _case()
    assert all(b"Enzo" not in e.payload for e in _entries(verdict, script).values())
    quoting = _entries(verdict, script, quotes=True)
    assert any(b"Enzo" in e.payload for e in quoting.values())


@pytest.mark.fault("F39")
def test_attributes_are_bounded() -> None:
    verdict, script = _case()
    verdict["explanation"] = "é" * 4_000
    verdict["path"][0]["versions"] = ["mem:" + "x" * 900]
    for entry in _entries(verdict, script, quotes=True).values():
        for span in _spans(entry)[1] if entry.signal == "traces" else []:
            for name, value in _attributes(span).items():
                limit = 2_048 if name.endswith("explanation") else 256
                assert len(str(value).encode()) < 2_048
                if isinstance(value, str):
                    assert len(value.encode()) < limit


def test_what_is_no_memory_fault_is_no_error() -> None:
    script = Script()
    message, version = script.remember("My barber is Enzo.")
    script.ask("Who is my barber?")
    script.reply("Enzo.", version)
    script.flag("Enzo", message)
    verdict = {"id": "c" * 32, "revision": 1, **script.verdict().to_json()}
    rows = _entries(verdict, script)
    spans = [span for e in rows.values() if e.signal == "traces" for span in _spans(e)[1]]
    assert {span.status.code for span in spans} == {Status.STATUS_CODE_UNSET}
    assert not [e for e in rows if e.startswith("cause/")]


@pytest.mark.fault("F40")
@pytest.mark.parametrize("quotes", [False, True])
def test_what_a_model_was_asked_stands_in_the_case_trace_and_in_no_graph(quotes: bool) -> None:
    verdict, script = _case()
    call = {
        "kind": "carries",
        "prompt": "user: [x]My barber is Enzo.[/x]",
        "reply": "{}",
        "tokens": {"prompt": 7, "completion": 2},
    }
    verdict["model"] = {"model": "small", "asked": [call, call]}
    entry = _entries(verdict, script, quotes=quotes)["c" * 32 + "/1/case"]
    root, *below = _spans(entry)[1]
    chats = [span for span in below if span.name == "chat small"]
    assert len({span.span_id for span in chats}) == 2
    for span in chats:
        assert span.parent_span_id == root.span_id
        said = _attributes(span)
        assert said["gen_ai.operation.name"] == "chat"
        assert said["gen_ai.usage.input_tokens"] == 7
        assert ("gen_ai.input.messages" in said) == quotes
    request = ExportTraceServiceRequest.FromString(entry.payload)
    assert list(registry.read_request("", request)) == []
