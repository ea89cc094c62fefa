"""Spans of the contract become facts, and what is malformed is salvaged and named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from memtrace_collector.dialects import registry
from memtrace_collector.dialects.attributes import Source
from memtrace_collector.dialects.packed_json import salvage
from memtrace_collector.graph.facts import OperationKey, Sequence, SpanFacts
from memtrace_otel import semconv, variables
from memtrace_otel.variables import DigestKey

SOURCE = Source("default", {"service.name": "agent"})
TRACE, SPAN = b"\x01" * 16, b"\x02" * 8
REF = str(variables.make("mem", "tea", key=variables.PLAIN, id="s:1"))


def span(lineage: object = None, name: str = "create_memory", **attributes: Any) -> Span:
    made = Span(
        trace_id=TRACE, span_id=SPAN, name=name, start_time_unix_nano=5, end_time_unix_nano=9
    )
    named = {key.replace("__", "."): value for key, value in attributes.items()}
    named.setdefault(semconv.MEMTRACE_STEP, "create")
    named.setdefault(semconv.MEMTRACE_GRAPH_ID, "user:ada")
    if lineage is not None:
        named[semconv.MEMTRACE_LINEAGE] = (
            lineage if isinstance(lineage, str) else json.dumps(lineage)
        )
    for key, value in named.items():
        item = made.attributes.add()
        item.key = key
        if isinstance(value, bool):
            item.value.bool_value = value
        elif isinstance(value, list):
            for text in value:
                item.value.array_value.values.add().string_value = text
        elif value is not None:
            item.value.string_value = value
    return made


def read(lineage: object = None, **attributes: Any) -> SpanFacts:
    facts = registry.read_span(span(lineage, **attributes), SOURCE)
    assert facts is not None
    return facts


def operation(lineage: object = None, **attributes: Any) -> Any:
    found = read(lineage, **attributes).operation
    assert found is not None
    return found


def test_every_key_of_the_lineage_is_read() -> None:
    found = operation(
        {
            "inputs": ["fact:f@1"],
            "outputs": [REF],
            "delivered": ["mem:s:2@a"],
            "scores": [0.5],
            "dropped": [["mem:s:3@a", None, "limit", 4], ["mem:s:4@a"]],
            "decisions": [["fact:f@1", "ADD", None, "done"], [None, "NOOP"]],
            "edges": [["fact:f@1", REF, "derived_from"]],
            "from": {"fact:f@1": f"{'ab' * 16}-{'cd' * 8}"},
            "limits": {"k": 3},
            "times": {"fact:f@1": "2026-01-02T00:00:00+00:00"},
            "reads": ["corpus"],
            "truncated": {"dropped": 7},
            "seq": "a:b:12",
            "key": "plain",
        }
    )
    assert found.key == OperationKey("01" * 16, "02" * 8)
    assert found.inputs == ("fact:f@1",) and found.outputs == (REF,)
    assert found.score_of("mem:s:2@a") == 0.5
    assert found.dropped[0] == ("mem:s:3@a", None, "limit", 4)
    assert found.dropped[1] == ("mem:s:4@a", None, "other", None)
    assert found.decisions[0] == ("fact:f@1", "ADD", None, "done")
    assert found.decisions[1] == (None, "NOOP", None, None)
    assert found.edges[0].relation == "derived_from"
    assert found.sources == {"fact:f@1": OperationKey("ab" * 16, "cd" * 8)}
    assert found.sequence == Sequence("a:b", 12)
    assert found.truncated == {"dropped": 7} and found.reads == ("corpus",)
    assert found.service == "agent" and found.limits == {"k": 3}


def test_an_add_is_always_composite() -> None:
    assert operation({}, memtrace__step="add").composite
    assert not operation({}).composite


def test_a_split_lineage_is_joined() -> None:
    text = json.dumps({"inputs": ["fact:f@1"], "outputs": [REF]})
    parts = {f"memtrace__lineage__{n + 1}": text[n * 20 : n * 20 + 20] for n in range(5)}
    assert operation(**parts).outputs == (REF,)


def test_a_lineage_that_was_cut_gives_what_can_be_read_and_says_so() -> None:
    whole = json.dumps({"outputs": [REF], "inputs": ["fact:f@1", "fact:g@2"]})
    facts = read(whole[:-8])
    assert facts.operation is not None
    assert facts.operation.outputs == (REF,) and facts.operation.inputs == ("fact:f@1",)
    assert facts.operation.truncated["lineage"] == 1
    assert semconv.MEMTRACE_LINEAGE in facts.problems


@given(st.integers(min_value=0, max_value=400))
def test_a_salvaged_text_is_always_json_or_empty(length: int) -> None:
    whole = json.dumps({"a": ['x"]}\\', {"b": [1, None]}, "é"], "c": {"d": {}}, "e": "f"})
    rescued = salvage(whole[:length])
    assert rescued == "" or isinstance(json.loads(rescued), dict)


@pytest.mark.parametrize(
    "lineage",
    [
        "[]",
        "null",
        "not json",
        '{"inputs": "fact:f@1"}',
        '{"inputs": [1, null, "no reference", "nokind:x@1"]}',
        '{"dropped": [["x"], 5, []], "decisions": [[]], "edges": [["fact:f@1"]]}',
        '{"seq": "no number", "from": {"fact:f@1": "nothing"}, "limits": 3}',
        "[" * 100_000,
        '{"a":' * 100_000,
    ],
)
def test_a_malformed_lineage_loses_only_itself(lineage: str) -> None:
    facts = read(lineage)
    assert facts.operation is not None and facts.problems
    assert facts.operation.inputs == () and facts.operation.edges == ()


def test_lone_surrogates_in_escapes_become_replacement_characters() -> None:
    facts = read({"outputs": [REF]}, memtrace__values=f'{{"{REF}": "a\\ud800b"}}')
    assert facts.values[0].content == "a\ufffdb"


def test_values_are_verified_under_a_known_key_only() -> None:
    secret = DigestKey(b"secret")
    keyed = str(variables.make("mem", "tea", key=secret, id="s:1"))
    values = {"memtrace__values": json.dumps({REF: "tea"})}
    assert read({"outputs": [REF], "key": "plain"}, **values).values[0].verified
    assert not read({"outputs": [REF], "key": "plain", "cut": [REF]}, **values).values[0].verified
    wrong = {"memtrace__values": json.dumps({REF: "coffee"})}
    assert not read({"outputs": [REF], "key": "plain"}, **wrong).values[0].verified
    unknown = {"memtrace__values": json.dumps({keyed: "tea"})}
    assert not read({"outputs": [keyed], "key": secret.name}, **unknown).values[0].verified


def test_a_cut_value_is_marked() -> None:
    facts = read({"outputs": [REF], "cut": [REF]}, memtrace__values=json.dumps({REF: "te"}))
    assert facts.values[0].cut


def test_a_flagged_span_is_a_flag_on_itself() -> None:
    (flag,) = read(
        {},
        memtrace__flagged=True,
        memtrace__expected="",
        memtrace__evidence=["msg:1@?"],
        memtrace__flag__source="user",
    ).flags
    assert (flag.trace_id, flag.span_id) == ("01" * 16, "02" * 8)
    assert flag.expected == "" and flag.evidence == ("msg:1@?",) and flag.source == "user"
    assert flag.origin == f"{'01' * 16}:{'02' * 8}" and flag.at_ns == 9


def test_a_flag_span_names_its_target_and_is_no_operation() -> None:
    facts = read(memtrace__step="flag", memtrace__graph__id=None, gen_ai__response__id="resp-1")
    assert facts.operation is None
    assert facts.flags[0].response_id == "resp-1" and facts.flags[0].trace_id == ""
    assert facts.flags[0].expected is None


def test_a_flag_span_may_name_its_target_by_a_link() -> None:
    made = span(memtrace__step="flag", memtrace__graph__id=None)
    link = made.links.add(trace_id=b"\x07" * 16, span_id=b"\x08" * 8)
    item = link.attributes.add()
    item.key, item.value.string_value = semconv.LINK_RELATION, "flags"
    facts = registry.read_span(made, SOURCE)
    assert facts is not None and facts.flags[0].span_id == "08" * 8


def test_a_farewell_ends_a_sequence_and_is_no_operation() -> None:
    facts = read({"seq": "p:9", "key": "plain"}, memtrace__step="farewell")
    assert facts.operation is None and facts.farewell == Sequence("p", 9)
    assert facts.farewell_ns == 5


def test_without_a_graph_the_conversation_and_then_the_service_owns_it() -> None:
    assert operation({}, memtrace__graph__id=None).graph_id == "service:agent"
    named = operation({}, memtrace__graph__id=None, gen_ai__conversation__id="conv-1")
    assert named.graph_id == "conv-1"


@pytest.mark.fault("F40")
@pytest.mark.parametrize("name", ["memtrace.case", "memtrace.hop", "memtrace.attribution"])
def test_our_own_verdict_spans_are_never_facts(name: str) -> None:
    assert registry.read_span(span({}, name, memtrace__flagged=True), SOURCE) is None


def test_other_spans_are_not_read() -> None:
    assert registry.read_span(Span(trace_id=TRACE, span_id=SPAN, name="GET /"), SOURCE) is None


def test_a_span_without_valid_ids_is_only_a_problem() -> None:
    made = span({})
    made.trace_id = b"\x00" * 16
    facts = registry.read_span(made, SOURCE)
    assert facts is not None and facts.operation is None and facts.problems


def test_the_digest_tells_contents_apart_and_is_the_same_for_the_same() -> None:
    assert operation({}).digest == operation({}).digest
    assert operation({}).digest != operation({"inputs": ["fact:f@1"]}).digest


def test_every_span_that_gives_facts_carries_a_marker() -> None:
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    spans.append(span({"outputs": [REF]}))
    assert len(list(registry.read_request("default", request))) == 1
    body = request.SerializeToString()
    assert any(marker in body for marker in registry.markers())
