"""The small failure that a canary plants: three traces whose verdict is known beforehand. Pure.

A user says where they live, and it is stored; a message about somebody else overwrites that
record; asked where they live, the agent does not know, and the answer is flagged.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from memtrace_collector.otlp.attributes import AttributeValue, encode
from memtrace_otel import semconv
from memtrace_otel.variables import PLAIN, make

SERVICE_NAME = "memtrace-canary"
GRAPH_PREFIX = "canary:"
STAGE, ERROR_TYPE = "update", "overwritten"
EXPECTED = "Lisbon"
_STEP_NS = 10_000_000
_LASTS_NS = 5_000_000
_SAID = "I moved to Lisbon in March and I love the light here."
_SAID_LATER = "My sister Ines lives in Porto."
_HEARD, _HEARD_LATER = "User moved to Lisbon in March", "User's sister Ines lives in Porto"
_KEPT, _ASKED = "User lives in Lisbon since March", "Which city do I live in?"
_PROMPT, _ANSWERED = f"Memories:\n- {_HEARD_LATER}", "I do not know."


class Planted(NamedTuple):
    """What was planted, and what must be found of it. Ids in hex."""

    requests: tuple[bytes, ...]
    """OTLP trace export requests, in protobuf."""
    graph_id: str
    operations: int
    answer: str
    """``TRACE:SPAN`` of the flagged answer."""
    author: dict[str, str]
    """The span that went wrong, as the API writes one: it stands in another trace."""


class _Step(NamedTuple):
    name: str
    lineage: Mapping[str, Any]
    values: Mapping[str, str] | None = None
    more: Mapping[str, AttributeValue | None] | None = None


class _References(NamedTuple):
    """References of one round; ids of its own, so that rounds in one graph do not meet."""

    said: str
    said_later: str
    heard: str
    heard_later: str
    kept: str
    overwritten: str
    asked: str
    prompt: str
    answered: str


def planted(graph_id: str, now_ns: int, chance: random.Random) -> Planted:
    """Three requests that end by now: two conversations, and the answer that is flagged."""
    refs = _references(f"{chance.getrandbits(64):016x}")
    maker = _Maker(graph_id, now_ns, chance)
    traces = [maker.trace(steps) for steps in (_stored(refs), _overwritten(refs), _asked(refs))]
    author = next(span for span in traces[1] if span.name == "memtrace.decide")
    answer = traces[2][-1]
    return Planted(
        requests=tuple(map(_request, traces)),
        graph_id=graph_id,
        operations=sum(map(len, traces)),
        answer=f"{answer.trace_id.hex()}:{answer.span_id.hex()}",
        author={"traceId": author.trace_id.hex(), "spanId": author.span_id.hex()},
    )


def _stored(refs: _References) -> Sequence[_Step]:
    return (
        *_heard(refs.said, _SAID, refs.heard, _HEARD),
        _Step("decide", {"inputs": [refs.heard], "decisions": [[refs.heard, "ADD", None]]}),
        _Step("create", {"inputs": [refs.heard], "outputs": [refs.kept]}, {refs.kept: _KEPT}),
    )


def _overwritten(refs: _References) -> Sequence[_Step]:
    heard, kept, overwritten = refs.heard_later, refs.kept, refs.overwritten
    chosen = {"inputs": [heard], "shown": [kept], "decisions": [[heard, "UPDATE", kept]]}
    written = {"inputs": [heard], "outputs": [overwritten], "supersedes": [kept]}
    return (
        *_heard(refs.said_later, _SAID_LATER, heard, _HEARD_LATER),
        _Step("decide", chosen),
        _Step("update", written, {overwritten: _HEARD_LATER}),
    )


def _heard(message: str, text: str, fact: str, heard: str) -> Sequence[_Step]:
    edges = [[message, fact, semconv.RELATION_EXTRACTED_FROM]]
    extracted = {"inputs": [message], "outputs": [fact], "edges": edges}
    return (
        _Step("add", {"inputs": [message], "composite": True}),
        _Step("ingest", {"outputs": [message], "roles": {message: "user"}}, {message: text}),
        _Step("extract", extracted, {fact: heard}),
    )


def _asked(refs: _References) -> Sequence[_Step]:
    asked, found, prompt = refs.asked, refs.overwritten, refs.prompt
    flag: dict[str, AttributeValue | None] = {
        semconv.MEMTRACE_FLAGGED: True,
        semconv.MEMTRACE_EXPECTED: EXPECTED,
        semconv.MEMTRACE_EVIDENCE: [refs.said],
        semconv.MEMTRACE_FLAG_SOURCE: "dataset",
    }
    read = {"inputs": [asked], "delivered": [found], "scores": [0.7], "score_kind": "similarity"}
    answered = {"inputs": [asked, prompt], "outputs": [refs.answered]}
    return (
        _Step("ingest", {"outputs": [asked], "roles": {asked: "user"}}, {asked: _ASKED}),
        _Step("retrieve", {**read, "limits": {"k": 1}}),
        _Step("assemble", {"inputs": [found], "outputs": [prompt]}, {prompt: _PROMPT}),
        _Step("answer", answered, {refs.answered: _ANSWERED}, flag),
    )


def _references(name: str) -> _References:
    def ref(kind: str, content: str, id: str | None = None) -> str:
        return str(make(kind, content, key=PLAIN, id=id))

    record = f"canary:{name}"
    return _References(
        said=ref(semconv.KIND_MESSAGE, _SAID, f"{name}/1"),
        said_later=ref(semconv.KIND_MESSAGE, _SAID_LATER, f"{name}/2"),
        heard=ref(semconv.KIND_FACT, _HEARD, f"{name}/1"),
        heard_later=ref(semconv.KIND_FACT, _HEARD_LATER, f"{name}/2"),
        kept=ref(semconv.KIND_MEMORY, _KEPT, record),
        overwritten=ref(semconv.KIND_MEMORY, _HEARD_LATER, record),
        asked=ref(semconv.KIND_QUERY, _ASKED, name),
        prompt=ref(semconv.KIND_CONTEXT, _PROMPT, name),
        answered=ref(semconv.KIND_ANSWER, _ANSWERED, name),
    )


class _Maker:
    """Traces of one process, one step after the other, the last of them before ``now_ns``."""

    def __init__(self, graph_id: str, now_ns: int, chance: random.Random) -> None:
        self._graph_id = graph_id
        self._chance = chance
        self._process = f"{chance.getrandbits(32):08x}"
        self._numbers = itertools.count(1)
        self._start_ns = now_ns - 100 * _STEP_NS

    def trace(self, steps: Sequence[_Step]) -> list[Span]:
        """A span for each; the first is the parent of the others and ends with them."""
        trace_id = self._chance.randbytes(16)
        spans = [self._span(trace_id, step) for step in steps]
        root, *others = spans
        for span in others:
            span.parent_span_id = root.span_id
        root.end_time_unix_nano = spans[-1].end_time_unix_nano
        return spans

    def _span(self, trace_id: bytes, step: _Step) -> Span:
        number = next(self._numbers)
        sequence = f"{self._process}:{number}"
        lineage = {**step.lineage, semconv.SEQ: sequence, semconv.KEY: semconv.KEY_PLAIN}
        start_ns = self._start_ns + number * _STEP_NS
        attributes: dict[str, AttributeValue | None] = {
            semconv.MEMTRACE_SCHEMA_VERSION: semconv.SCHEMA_VERSION,
            semconv.MEMTRACE_GRAPH_ID: self._graph_id,
            semconv.MEMTRACE_STEP: step.name,
            semconv.MEMTRACE_SYSTEM: "canary",
            semconv.GEN_AI_OPERATION_NAME: semconv.OPERATION_NAMES.get(step.name),
            semconv.MEMTRACE_VALUES: json.dumps(step.values) if step.values else None,
            **(step.more or {}),
            semconv.MEMTRACE_LINEAGE: json.dumps(lineage),
        }
        return Span(
            trace_id=trace_id,
            span_id=self._chance.randbytes(8),
            name=semconv.SPAN_NAMES[step.name],
            kind=Span.SPAN_KIND_INTERNAL,
            start_time_unix_nano=start_ns,
            end_time_unix_nano=start_ns + _LASTS_NS,
            attributes=encode(attributes),
        )


def _request(spans: list[Span]) -> bytes:
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.extend(encode({semconv.SERVICE_NAME: SERVICE_NAME}))
    resource.scope_spans.add(spans=spans).scope.name = SERVICE_NAME
    return bytes(request.SerializeToString())
