"""Every contract vector gives its verdict, from the spans alone."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memtrace_collector.attribution.attribute import attribute
from memtrace_collector.attribution.verdict import Verdict
from memtrace_collector.dialects.registry import read_request
from memtrace_collector.graph import flags
from memtrace_collector.graph.facts import SpanFacts
from memtrace_collector.graph.loader import load_case
from memtrace_collector.store.in_memory import InMemoryFactStore

VECTORS = Path(__file__).parents[2] / "contract" / "vectors"
NAMES = sorted(path.name.removesuffix(".otlp.json") for path in VECTORS.glob("*.otlp.json"))
_IDS = ("traceId", "spanId", "parentSpanId")


def _base64_ids(node: object) -> object:
    """OTLP/JSON writes ids in hex where protobuf's JSON expects base64."""
    if isinstance(node, list):
        return [_base64_ids(each) for each in node]
    if isinstance(node, dict):
        return {
            key: base64.b64encode(bytes.fromhex(value)).decode()
            if key in _IDS and isinstance(value, str)
            else _base64_ids(value)
            for key, value in node.items()
        }
    return node


def facts_of(name: str) -> list[SpanFacts]:
    document = json.loads((VECTORS / f"{name}.otlp.json").read_text())
    request = json_format.ParseDict(_base64_ids(document), ExportTraceServiceRequest())
    return list(read_request("default", request))


def verdict_of(name: str, *, reverse: bool = False) -> Verdict:
    facts = facts_of(name)
    return verdict_from(reversed(facts) if reverse else facts)


def verdict_from(facts: Iterable[SpanFacts]) -> Verdict:
    store = InMemoryFactStore.of(facts)
    (flag,) = store.flags()
    answer = flags.resolve(store, flag)
    assert answer is not None
    return attribute(load_case(store, answer, flag))


def expected_of(name: str) -> dict[str, object]:
    path = VECTORS / f"{name.removesuffix('.shuffled')}.expected.json"
    expected: dict[str, object] = json.loads(path.read_text())["verdict"]
    return expected


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("reverse", [False, True], ids=["in order", "reversed"])
def test_vector_gives_its_verdict(name: str, reverse: bool) -> None:
    found = verdict_of(name, reverse=reverse).to_json()
    expected = expected_of(name)
    found["decisive"] = [
        {"traceId": each["traceId"], "spanId": each["spanId"]} for each in found["decisive"]
    ]
    assert {key: found[key] for key in expected} == expected


@pytest.mark.parametrize("name", NAMES)
def test_vector_gives_a_bounded_supported_argument(name: str) -> None:
    verdict = verdict_of(name)
    assert verdict.explanation and len(verdict.explanation) <= 600
    assert all(claim.span is not None for claim in verdict.evidence)
    assert 0 <= verdict.score < 1
    assert verdict.path and verdict.path[-1].kind == "answer"
    assert sum(hop.decisive for hop in verdict.path) == len(verdict.decisive)


@pytest.mark.parametrize("name", [name for name in NAMES if "." not in name])
def test_a_lost_span_never_shifts_the_blame_to_another_stage(name: str) -> None:
    facts = facts_of(name)
    expected = expected_of(name)["stage"]
    for number, lost in enumerate(facts):
        if lost.flags:
            continue
        verdict = verdict_from(facts[:number] + facts[number + 1 :])
        allowed = {expected, "unknown"}
        if name == "stale_retrieved" and lost.operation and lost.operation.delivered:
            allowed.add("extraction")  # a version that no read ever delivers was not stored
        assert verdict.stage in allowed, (lost.operation, verdict.explanation)


@pytest.mark.parametrize("name", NAMES)
def test_without_texts_only_structure_is_claimed(name: str) -> None:
    facts = [dataclasses.replace(each, values=()) for each in facts_of(name)]
    verdict = verdict_from(facts)
    assert verdict.stage in {expected_of(name)["stage"], "unknown"}, verdict.explanation
    assert verdict.stage == "unknown" or verdict.basis == ("structure",)
