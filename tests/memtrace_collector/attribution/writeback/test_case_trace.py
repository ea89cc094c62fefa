"""The case trace tells the path by itself: in order, with what stood where and when."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import structs
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from memtrace_collector.attribution.writeback.identity import case_trace_id
from memtrace_collector.attribution.writeback.story import story
from memtrace_collector.dialects import registry
from tests.memtrace_collector.attribution.writeback.kit import (
    CASE_ID,
    Written,
    answer,
    case,
    spans,
    written,
)

CALL = {
    "kind": "carries",
    "prompt": "user: [x]My barber is Enzo.[/x]",
    "reply": "{}",
    "tokens": {"prompt": 7, "completion": 2},
}


def _case_trace(verdict: dict[str, Any], script: Any, **target: Any) -> list[Written]:
    return spans(written(verdict, script, **target)[f"{CASE_ID}/1/case"])


def test_the_root_stands_alone_and_its_hops_below_it_in_order() -> None:
    verdict, script = case()
    root, *hops = _case_trace(verdict, script)
    assert root.service == "memtrace"
    assert root.span.name == "memtrace.case" and not root.span.parent_span_id
    assert root.span.trace_id.hex() == case_trace_id(CASE_ID, 1)
    assert [hop.span.name for hop in hops] == ["memtrace.hop"] * len(verdict["path"])
    assert all(hop.span.parent_span_id == root.span.span_id for hop in hops)
    assert [hop.says["memtrace.hop.kind"] for hop in hops] == [
        hop["kind"] for hop in verdict["path"]
    ]


def test_a_hop_says_where_and_when_it_really_was() -> None:
    verdict, script = case()
    _, *hops = _case_trace(verdict, script)
    for hop, told in zip(hops, verdict["path"], strict=True):
        named = hop.says["memtrace.hop.trace_id"], hop.says["memtrace.hop.span_id"]
        assert named == (told["span"]["traceId"], told["span"]["spanId"])
        assert hop.links == [named]
        assert hop.service == told["service"] == hop.says["memtrace.hop.service"]
        assert hop.says["memtrace.hop.operation"] == told["operation"]
    assert {hop.service for hop in hops} == {"writer", "reader"}
    assert hops[0].says["memtrace.hop.time"].startswith("2026-01-01T")
    assert hops[-1].says["memtrace.hop.time"].startswith("2026-01-21T")


def test_a_hop_in_another_graph_says_in_which() -> None:
    verdict, script = case()
    shared = [
        structs.replace(op, graph_id="team:shared") if op.step == "create" else op
        for op in script.operations
    ]
    script.operations[:] = shared
    _, *hops = _case_trace(verdict, script)
    graphs = {hop.says["memtrace.hop.kind"]: hop.says["memtrace.graph.id"] for hop in hops}
    assert graphs["evidence"] == "user:test"
    (created,) = [hop for hop in hops if hop.says["memtrace.hop.operation"] == "create_memory"]
    assert created.says["memtrace.graph.id"] == "team:shared"


def test_only_the_decisive_hop_is_red() -> None:
    verdict, script = case()
    failed = [
        each
        for each in _case_trace(verdict, script)
        if each.span.status.code == Status.STATUS_CODE_ERROR
    ]
    assert [hop.says["memtrace.hop.span_id"] for hop in failed] == [
        verdict["decisive"][0]["spanId"]
    ]


def test_the_root_says_first_what_happened_then_the_whole_path_and_ids_last() -> None:
    verdict, script = case()
    says = _case_trace(verdict, script)[0].says
    names = list(says)
    assert names[:4] == [
        "memtrace.attribution.explanation",
        "memtrace.case.path",
        "memtrace.attribution.stage",
        "memtrace.attribution.type",
    ]
    assert names[-6:] == [
        "memtrace.cause.trace_id",
        "memtrace.cause.span_id",
        "memtrace.answer.trace_id",
        "memtrace.answer.span_id",
        "memtrace.case.id",
        "memtrace.case.trace_id",
    ]
    lines = says["memtrace.case.path"]
    assert len(lines) == len(verdict["path"])
    assert lines[0].startswith("1. 2026-01-01 00:00 evidence kept at memtrace.ingest of writer")
    (red,) = [line for line in lines if line.endswith("(decisive)")]
    assert "delete" in red


def test_the_root_names_the_system_of_the_decisive_operation_and_the_graph() -> None:
    verdict, script = case()
    says = _case_trace(verdict, script)[0].says
    assert says["memtrace.graph.id"] == "user:test"
    assert says["memtrace.cause.operation"] == "memtrace.delete"
    assert says["memtrace.answer.span_id"] == answer(script).span_id


def test_a_path_too_long_for_an_attribute_keeps_what_is_decisive_and_the_answer() -> None:
    hop = {
        "kind": "write",
        "outcome": "kept",
        "service": "a-service-with-a-rather-long-name-" * 3,
        "operation": "update_memory",
        "time_ns": 0,
        "decisive": False,
    }
    lost = {**hop, "outcome": "lost", "decisive": True}
    path = [*[hop] * 11, lost, *[hop] * 11, {**hop, "kind": "answer"}]
    told = story(path)
    assert len(json.dumps(told).encode()) < 2_048
    assert 2 < len(told) < len(path)
    assert any(line.startswith("12. ") and line.endswith("(decisive)") for line in told)
    assert told[-1].startswith("24. ")


@pytest.mark.fault("F40")
@pytest.mark.parametrize("quotes", [False, True])
def test_what_a_model_was_asked_stands_below_the_hops_and_in_no_graph(quotes: bool) -> None:
    verdict, script = case()
    verdict["model"] = {"model": "small", "asked": [CALL, CALL]}
    root, *below = _case_trace(verdict, script, quotes=quotes)
    chats = below[len(verdict["path"]) :]
    assert [each.span.name for each in chats] == ["chat small"] * 2
    assert len({each.span.span_id for each in chats}) == 2
    assert chats[-1].span.end_time_unix_nano == root.span.end_time_unix_nano
    for each in chats:
        assert each.span.parent_span_id == root.span.span_id
        assert each.says["gen_ai.operation.name"] == "chat"
        assert each.says["gen_ai.usage.input_tokens"] == 7
        assert ("gen_ai.input.messages" in each.says) == quotes
    payload = written(verdict, script, quotes=quotes)[f"{CASE_ID}/1/case"].payload
    assert list(registry.read_request("", ExportTraceServiceRequest.FromString(payload))) == []


@pytest.mark.parametrize("prompt", ["word " * 2_000, "\x00" * 5_000, "読" * 3_000])
def test_a_prompt_is_shortened_until_its_json_fits(prompt: str) -> None:
    verdict, script = case()
    verdict["model"] = {"model": "small", "asked": [{**CALL, "prompt": prompt}]}
    message = _case_trace(verdict, script, quotes=True)[-1].says["gen_ai.input.messages"]
    assert len(message.encode()) < 2_048
    (said,) = json.loads(message)
    assert said["parts"][0]["content"].endswith("…")


def test_a_verdict_stored_before_hops_named_a_system_can_be_written() -> None:
    verdict, script = case()
    verdict["path"] = [
        {name: value for name, value in hop.items() if name != "system"} for hop in verdict["path"]
    ]
    assert len(_case_trace(verdict, script)) == len(verdict["path"]) + 1
