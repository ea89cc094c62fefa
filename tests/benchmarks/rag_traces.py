"""Traces of a RAG agent with memory, as OTLP requests that are encoded once and sent often.

A trace has 12 spans, 4 of them memory operations (10, 3, 5 and 10 inputs; 3, 3, 2 and 1 outputs)
in the packed form of the contract, about 2.2 KB a span. Ids, references and times of a request
hold placeholders of fixed width, so that fresh ones cost a client the joining of bytes.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import uuid
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from memtrace_collector.otlp.attributes import AttributeValue, encode
from memtrace_otel import semconv

SPANS_PER_TRACE, OPERATIONS_PER_TRACE = 12, 4
SPANS_PER_REQUEST = 512
GRAPHS = 200
_GRAPHS_PER_REQUEST = 8
_ID, _TEXT, _SECONDS = b"\xf1\x7eMT", b"5eedfeed", b"\xfd\xfcMT"
"""Placeholders: in binary ids, in references, and the upper half of times (units of 2^32 ns)."""
_PLACEHOLDERS = re.compile(b"(%s)" % b"|".join(map(re.escape, (_ID, _TEXT, _SECONDS))))
_KEPT = 60
_TEXT_OF_WORDS = (
    "the user likes pizza and moved to Berlin in March she prefers tea over coffee her sister"
    " Anna studies law meeting on Thursday at nine the project deadline was extended by two weeks"
)
_WORDS = tuple(_TEXT_OF_WORDS.split())


class Request(NamedTuple):
    """An encoded export request, cut at its placeholders, which are among the ``parts``."""

    parts: tuple[bytes, ...]
    spans: int
    operations: int

    def fresh(self, number: int, now_ns: int) -> bytes:
        """The request with ids of its own. ``number``: below 2^32, another for each."""
        filled = {
            _ID: number.to_bytes(4, "big"),
            _TEXT: f"{number:08x}".encode(),
            _SECONDS: (now_ns >> 32).to_bytes(4, "little"),
        }
        return b"".join([filled.get(part, part) for part in self.parts])


def requests(
    count: int,
    *,
    spans: int = SPANS_PER_REQUEST,
    graphs: int = GRAPHS,
    values: bool = False,
    seed: int = 1,
    service: str = "rag-bench",
) -> list[Request]:
    """Requests of about so many spans (whole traces). ``values``: with captured content."""
    traces = max(1, spans // SPANS_PER_TRACE)
    return [
        _request(traces, seed * 100_003 + number, graphs, values, service)
        for number in range(count)
    ]


def _request(traces: int, seed: int, graphs: int, values: bool, service: str) -> Request:
    message = ExportTraceServiceRequest()
    group = message.resource_spans.add()
    group.resource.attributes.extend(
        encode(
            {
                semconv.SERVICE_NAME: service,
                "openinference.project.name": service,
                "telemetry.sdk.language": "python",
                "telemetry.sdk.name": "opentelemetry",
                "telemetry.sdk.version": "1.45.2",
            }
        )
    )
    scope = group.scope_spans.add()
    scope.scope.name, scope.scope.version = "rag", "1.0"
    maker = _Maker(random.Random(seed), graphs, values)
    for number in range(traces):
        scope.spans.extend(maker.trace(number))
    parts = _PLACEHOLDERS.split(message.SerializeToString())
    return Request(tuple(parts), traces * SPANS_PER_TRACE, traces * OPERATIONS_PER_TRACE)


class _Maker:
    def __init__(self, rng: random.Random, graphs: int, values: bool) -> None:
        self._rng = rng
        self._values = values
        self._bodies = [_text(rng, 1_900) for _ in range(16)]
        self._answers = [_text(rng, 4_200) for _ in range(8)]
        names = [rng.randrange(graphs) for _ in range(_GRAPHS_PER_REQUEST)]
        self._recent: dict[str, deque[str]] = {
            f"user:{hashlib.sha256(str(name).encode()).hexdigest()[:32]}": deque(maxlen=_KEPT)
            for name in names
        }
        self._operations = 0
        self._spans = 0

    def trace(self, number: int) -> Iterator[Span]:
        graph = self._rng.choice(list(self._recent))
        trace_id = _ID + number.to_bytes(4, "big") + self._rng.randbytes(8)
        said = {"session.id": graph, "input.value": self._body()}
        root = self._span(trace_id, b"", "chat turn", said)
        parts = (
            self._plain("embed query"),
            self._memory(graph, semconv.STEP_RETRIEVE, 10, 3),
            self._plain("vector search"),
            self._plain("rerank"),
            self._plain("llm answer", self._rng.choice(self._answers)),
            self._memory(graph, semconv.STEP_CREATE, 3, 3),
            self._plain("llm extract", self._rng.choice(self._answers)),
            self._memory(graph, semconv.STEP_UPDATE, 5, 2),
            self._plain("http POST"),
            self._memory(graph, semconv.STEP_ANSWER, 10, 1),
            self._plain("cache set"),
        )
        for name, attributes in parts:
            yield self._span(trace_id, root.span_id, name, attributes)
        yield root

    def _plain(self, name: str, body: str = "") -> tuple[str, Mapping[str, AttributeValue]]:
        return name, {
            "openinference.span.kind": "CHAIN",
            "input.value": body or self._body(),
            "http.request.method": "POST",
            "server.address": "10.0.0.7",
            "llm.token_count.total": 812,
        }

    def _memory(
        self, graph: str, step: str, inputs: int, outputs: int
    ) -> tuple[str, Mapping[str, AttributeValue]]:
        recent = self._recent[graph]
        read = self._rng.sample(list(recent), min(inputs, len(recent)))
        texts = [_text(self._rng, 100) for _ in range(outputs)]
        made = [self._reference(step, text) for text in texts]
        self._operations += 1
        lineage: dict[str, object] = {semconv.INPUTS: read}
        if step == semconv.STEP_RETRIEVE:
            lineage[semconv.DELIVERED] = read[:outputs]
            lineage[semconv.SCORES] = [round(self._rng.random(), 4) for _ in read[:outputs]]
            lineage[semconv.SCORE_KIND] = "similarity"
        lineage[semconv.OUTPUTS] = made
        lineage[semconv.SEQ] = f"{_TEXT.decode()}:{self._operations}"
        lineage[semconv.KEY] = semconv.KEY_PLAIN
        recent.extend(made)
        attributes: dict[str, AttributeValue] = {
            semconv.MEMTRACE_SCHEMA_VERSION: semconv.SCHEMA_VERSION,
            semconv.MEMTRACE_GRAPH_ID: graph,
            semconv.MEMTRACE_STEP: step,
            semconv.MEMTRACE_SYSTEM: "mem0",
            semconv.MEMTRACE_SYSTEM_VERSION: "2.2.1",
            semconv.MEMTRACE_CAPTURE: semconv.CAPTURE_OBSERVED,
            semconv.GEN_AI_OPERATION_NAME: semconv.SPAN_NAMES[step],
        }
        if self._values:
            attributes[semconv.MEMTRACE_VALUES] = _json(dict(zip(made, texts)))
        attributes[semconv.MEMTRACE_LINEAGE] = _json(lineage)
        return semconv.SPAN_NAMES[step], attributes

    def _reference(self, step: str, text: str) -> str:
        name = str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
        kind = semconv.KIND_ANSWER if step == semconv.STEP_ANSWER else semconv.KIND_MEMORY
        version = hashlib.sha256(text.encode()).hexdigest()[:12]
        return f"{kind}:mem0:{_TEXT.decode()}{name[8:]}@{version}"

    def _body(self) -> str:
        return self._rng.choice(self._bodies)

    def _span(
        self, trace_id: bytes, parent: bytes, name: str, attributes: Mapping[str, AttributeValue]
    ) -> Span:
        self._spans += 1
        start = self._spans * 1_000
        return Span(
            trace_id=trace_id,
            span_id=_ID + self._spans.to_bytes(4, "big"),
            parent_span_id=parent,
            name=name,
            kind=Span.SPAN_KIND_INTERNAL,
            start_time_unix_nano=_time(start),
            end_time_unix_nano=_time(start + 900),
            attributes=encode(attributes),
            flags=0x101,
            status=Status(),
        )


def _time(offset_ns: int) -> int:
    """A time whose upper half is the placeholder."""
    return int.from_bytes(offset_ns.to_bytes(4, "little") + _SECONDS, "little")


def _text(rng: random.Random, size: int) -> str:
    words = (rng.choice(_WORDS) for _ in range(size))
    return " ".join(islice(words, size // 6))


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
