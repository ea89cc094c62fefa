"""Evaluations as flags, and the memory spans of other instrumentations."""

from __future__ import annotations

import json
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from memtrace_collector.dialects import registry
from memtrace_collector.dialects.attributes import Source
from memtrace_collector.dialects.evaluation import Thresholds
from memtrace_collector.graph.facts import Flag
from tests.memtrace_collector.dialects.test_memtrace import SPAN, TRACE

SOURCE = Source("default", {"service.name": "agent"})


def put(attributes: Any, values: dict[str, object]) -> None:
    for key, value in values.items():
        item = attributes.add()
        item.key = key
        if isinstance(value, float):
            item.value.double_value = value
        else:
            item.value.string_value = str(value)


def logged(
    attributes: dict[str, object],
    thresholds: Thresholds | None = None,
    event_name: str = "gen_ai.evaluation.result",
    trace_id: bytes = TRACE,
) -> list[Flag]:
    request = ExportLogsServiceRequest()
    record = request.resource_logs.add().scope_logs.add().log_records.add()
    record.event_name, record.trace_id, record.span_id = event_name, trace_id, SPAN
    record.time_unix_nano = 7
    put(record.attributes, attributes)
    rules = thresholds or Thresholds()
    return [f for facts in registry.read_logs("default", request, rules) for f in facts.flags]


def result(name: str = "correctness", **fields: object) -> dict[str, object]:
    return {
        "gen_ai.evaluation.name": name,
        **{f"gen_ai.evaluation.{key.replace('_', '.', 1)}": item for key, item in fields.items()},
    }


@pytest.mark.parametrize("label", ["fail", "Incorrect", " WRONG ", "thumbs_down", "hallucinated"])
def test_a_failure_label_flags_the_span_it_speaks_of(label: str) -> None:
    (flag,) = logged(result(score_label=label))
    assert (flag.trace_id, flag.span_id, flag.source) == (TRACE.hex(), SPAN.hex(), "evaluator")
    assert flag.at_ns == 7 and flag.origin.startswith("log:")


@pytest.mark.parametrize("label", ["pass", "correct", "not sure", "", "failed to load"])
def test_any_other_label_flags_nothing(label: str) -> None:
    assert logged(result(score_label=label)) == []


def test_a_score_flags_only_below_a_configured_threshold() -> None:
    rules = Thresholds(minimum={"correctness": 0.5}, maximum={"toxicity": 0.2})
    assert len(logged(result(score_value=0.4), rules)) == 1
    assert logged(result(score_value=0.6), rules) == []
    assert len(logged(result("toxicity", score_value=0.9), rules)) == 1
    assert logged(result("other", score_value=0.0), rules) == []
    assert logged(result(score_value=0.0)) == []


@pytest.mark.fault("F40")
def test_our_own_evaluations_never_flag() -> None:
    assert logged(result("memtrace.attribution", score_label="wrong")) == []


def test_an_evaluation_may_name_a_response_instead_of_a_span() -> None:
    named = {**result(score_label="fail"), "gen_ai.response.id": "resp-1"}
    (flag,) = logged(named, trace_id=b"")
    assert flag.response_id == "resp-1" and flag.trace_id == ""
    assert logged(result(score_label="fail"), trace_id=b"") == []


def test_other_log_records_are_not_read() -> None:
    assert logged(result(score_label="fail"), event_name="something.else") == []


def test_an_evaluation_event_flags_its_span() -> None:
    span = Span(trace_id=TRACE, span_id=SPAN, name="chat")
    event = span.events.add(name="gen_ai.evaluation.result", time_unix_nano=3)
    put(event.attributes, result(score_label="fail", explanation="no such city"))
    facts = registry.read_span(span, SOURCE)
    assert facts is not None and facts.operation is None
    assert facts.flags[0].reason == "no such city" and facts.flags[0].at_ns == 3


def memory_span(operation: str, **attributes: object) -> Any:
    span = Span(trace_id=TRACE, span_id=SPAN, name=operation)
    named = {key.replace("__", "."): value for key, value in attributes.items()}
    put(span.attributes, {"gen_ai.operation.name": operation, "user.id": "ada", **named})
    facts = registry.read_span(span, SOURCE)
    return facts and facts.operation


def test_a_search_of_another_instrumentation_delivers_its_records() -> None:
    records = [{"id": 17, "content": "tea", "score": 0.5}, {"id": "18"}, {"no": "id"}, "junk"]
    found = memory_span(
        "search_memory",
        gen_ai__memory__query__text="drink?",
        gen_ai__memory__records=json.dumps(records),
    )
    assert found.step == "retrieve" and found.capture == "inferred"
    assert found.delivered[0].startswith("mem:genai:17@") and found.scores == (0.5, None)
    assert found.delivered[1] == "mem:genai:18@?"
    assert found.inputs[0].startswith("query:")
    assert "ada" not in found.graph_id


def test_a_blind_put_supersedes_whatever_was_current() -> None:
    found = memory_span("upsert_memory", gen_ai__memory__record__id="17")
    assert found.step == "update" and found.outputs == ("mem:genai:17@?",)
    assert found.supersedes == ("mem:genai:17@?",)


def test_a_delete_outputs_the_tombstone() -> None:
    found = memory_span("delete_memory", gen_ai__memory__record__id="17")
    assert found.outputs == ("mem:genai:17@deleted",)


def test_other_operations_of_the_conventions_are_not_memory() -> None:
    assert memory_span("chat") is None
