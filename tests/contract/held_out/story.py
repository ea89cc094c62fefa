"""A story of memory operations, told call by call, that becomes one OTLP/JSON document."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from memtrace_otel import semconv, variables

START = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
"""Day 0 of every story: a Monday."""


@dataclass(eq=False)
class Step:
    """One operation of a story. It stands for its first output where a reference is wanted."""

    trace_id: str
    span_id: str
    name: str
    span: dict[str, Any]
    refs: tuple[str, ...] = ()

    @property
    def ref(self) -> str:
        return self.refs[0]

    @property
    def id(self) -> tuple[str, str]:
        return self.trace_id, self.span_id


Ref = Step | str


class Learned(NamedTuple):
    """What one message went through on its way into a record."""

    add: Step
    message: Step
    extract: Step
    decide: Step
    record: Step


class Turn(NamedTuple):
    """One question and its answer."""

    query: Step
    retrieve: Step
    assemble: Step
    answer: Step


@dataclass
class Expected:
    """What the decision table says of a story.

    ``types`` are alternatives, the first one preferred; ``decisive`` the operations of the first
    (None: any or none).
    """

    types: tuple[str, ...]
    then: tuple[str, ...] = ()
    """Types of the further decisive operations, where several repairs are needed."""
    decisive: tuple[Step, ...] | None = ()
    aspect: str | None = None
    mechanism: str | None = None
    missing: tuple[str, ...] = ()
    also: tuple[tuple[Step, str], ...] = ()
    first_wrong: Ref | None = None
    last_right: Ref | None = None


@dataclass
class Story:
    """Writes spans in the order of the calls, one second apart.

    ``day`` begins a new trace on day ``n`` in the named service, each service being one process
    with its own sequence numbers.
    """

    graph: str
    captured: bool = True
    spans: list[dict[str, Any]] = field(default_factory=list)
    services: list[str] = field(default_factory=list)
    now: datetime = START
    service: str = "writer"
    query: str = ""
    _numbers: dict[str, int] = field(default_factory=dict)
    _known: dict[str, Any] = field(default_factory=dict)
    _untold: dict[str, Any] = field(default_factory=dict)
    _trace: str = ""
    _parent: str = ""
    _records: int = 10

    def day(self, number: float, service: str = "writer") -> Story:
        self.now = START + timedelta(days=number)
        self.service = service
        self._trace = self._hex(32)
        self._parent = ""
        return self

    # values

    def value(self, kind: str, content: Any, id: str | None = None, **state: Any) -> str:
        """The reference of a value, which the next operation that names it will carry."""
        ref = str(variables.make(kind, content, key=variables.PLAIN, id=id, state=state or None))
        if ref not in self._known:
            self._untold[ref] = content
        self._known[ref] = content
        return ref

    def text(self, ref: Ref) -> str:
        return str(self._known[_ref(ref)])

    # spans

    def step(
        self,
        name: str,
        *,
        graph: str | None = None,
        parent: str | None = None,
        attributes: dict[str, Any] | None = None,
        error: str = "",
        counted: bool = True,
        seconds: float = 1,
        **lineage: Any,
    ) -> Step:
        """Any operation; ``lineage`` as in the contract, with steps where references stand."""
        self.now += timedelta(seconds=seconds)
        lineage = {key: _refs(value) for key, value in lineage.items()}
        if counted:
            self._numbers[self.service] = self._numbers.get(self.service, 0) + 1
            process = hashlib.sha256((self.graph + self.service).encode()).hexdigest()[:8]
            lineage["seq"] = f"{process}:{self._numbers[self.service]}"
        lineage["key"] = "plain"
        told = {ref: self._untold.pop(ref) for ref in list(self._untold) if ref in _named(lineage)}
        span_attributes: dict[str, Any] = {
            semconv.MEMTRACE_SCHEMA_VERSION: 1,
            semconv.MEMTRACE_GRAPH_ID: graph or self.graph,
            semconv.MEMTRACE_STEP: name,
            semconv.MEMTRACE_SYSTEM: "house",
            **({semconv.ERROR_TYPE: error} if error else {}),
            **(attributes or {}),
            semconv.MEMTRACE_LINEAGE: json.dumps(lineage, ensure_ascii=False),
        }
        if told and self.captured:
            span_attributes[semconv.MEMTRACE_VALUES] = json.dumps(told, ensure_ascii=False)
        start = int(self.now.timestamp() * 1_000_000_000)
        span: dict[str, Any] = {
            "traceId": self._trace,
            "spanId": self._hex(16),
            "name": semconv.SPAN_NAMES[name],
            "kind": 1,
            "startTimeUnixNano": str(start),
            "endTimeUnixNano": str(start + 5_000_000),
            "attributes": [{"key": k, "value": _any(v)} for k, v in span_attributes.items()],
            "status": {"code": 2} if error else {},
        }
        if parent is None:
            parent = self._parent
        if parent:
            span["parentSpanId"] = parent
        self.spans.append(span)
        self.services.append(self.service)
        refs = (*lineage.get("outputs", ()), *lineage.get("delivered", ()))
        return Step(self._trace, span["spanId"], name, span, refs)

    def lose(self, count: int = 1) -> None:
        """Operations of the current process that never arrive."""
        self._numbers[self.service] = self._numbers.get(self.service, 0) + count

    # writing

    def add(self, *inputs: Ref, **lineage: Any) -> Step:
        """The library's public add: what follows in this trace is below it."""
        call = self.step("add", inputs=inputs, composite=True, parent="", **lineage)
        self._parent = call.span_id
        return call

    def hear(
        self,
        content: str,
        role: str = "user",
        at: datetime | None = None,
        dated: bool = True,
        **lineage: Any,
    ) -> Step:
        """A message enters."""
        message = self.value(
            semconv.KIND_MESSAGE, content, lineage.pop("id", f"chat/{len(self.spans)}")
        )
        when = at or self.now.replace(hour=9, minute=0, second=0)
        times = {message: when.isoformat()} if dated else {}
        return self.step("ingest", outputs=[message], roles={message: role}, times=times, **lineage)

    def say(self, content: str, role: str = "user", **lineage: Any) -> tuple[Step, Step]:
        """A message enters inside an add: the add, the ingest."""
        id = f"chat/{len(self.spans)}"
        call = self.add(self.value(semconv.KIND_MESSAGE, content, id))
        return call, self.hear(content, role, id=id, **lineage)

    def extract(self, messages: Ref | Sequence[Ref], *facts: str, **lineage: Any) -> Step:
        """Facts of one message (with edges) or of a batch (without)."""
        made = [self.value(semconv.KIND_FACT, fact) for fact in facts]
        if isinstance(messages, (Step, str)):
            messages = [messages]
            edges = [[_ref(messages[0]), fact, "extracted_from"] for fact in made]
            lineage.setdefault("edges", edges)
        return self.step("extract", inputs=list(messages), outputs=made, **lineage)

    def decide(self, *decisions: Sequence[Any], **lineage: Any) -> Step:
        """``(fact or None, action, target or None[, status])`` each."""
        rows = [[item if item is None else _text(item) for item in row] for row in decisions]
        lineage.setdefault("inputs", [row[0] for row in rows if row[0]])
        shown = [row[2] for row in rows if len(row) > 2 and row[2]]
        if shown:
            lineage.setdefault("shown", shown)
        return self.step("decide", decisions=rows, **lineage)

    def create(self, content: str, *inputs: Ref, id: str = "", **lineage: Any) -> Step:
        self._records += 1
        state = lineage.pop("state", {})
        record = self.value(semconv.KIND_MEMORY, content, f"house:{id or self._records}", **state)
        return self.step("create", inputs=inputs, outputs=[record], **lineage)

    def update(self, old: Ref, content: str, *inputs: Ref, **lineage: Any) -> Step:
        id = variables.record_of(_ref(old)).partition(":")[2]
        state = lineage.pop("state", {})
        record = self.value(semconv.KIND_MEMORY, content, id, **state)
        lineage.setdefault("supersedes", [old])
        return self.step("update", inputs=inputs, outputs=[record], **lineage)

    def delete(self, old: Ref, **lineage: Any) -> Step:
        gone = f"{variables.record_of(_ref(old))}@deleted"
        return self.step("delete", outputs=[gone], supersedes=[old], **lineage)

    def learn(self, content: str, fact: str | None = None, **create: Any) -> Learned:
        """A message is heard and stored as it should be."""
        call, message = self.say(content)
        extract = self.extract(message, fact or content)
        decide = self.decide((extract, "ADD", None))
        return Learned(
            call, message, extract, decide, self.create(fact or content, extract, **create)
        )

    # answering

    def ask(self, question: str, day: float, service: str = "reader") -> Step:
        self.day(day, service)
        query = self.value(semconv.KIND_QUERY, question)
        asked = self.step(
            "ingest", outputs=[query], roles={query: "user"}, times={query: self.now.isoformat()}
        )
        self.query = query
        self._parent = asked.span_id
        return asked

    def retrieve(self, *delivered: Ref, query: Ref | None = None, **lineage: Any) -> Step:
        lineage.setdefault("limits", {"k": max(1, len(delivered))})
        scores = [round(0.9 - 0.05 * rank, 2) for rank in range(len(delivered))]
        lineage.setdefault("scores", scores)
        return self.step(
            "retrieve",
            inputs=[query or self.query],
            delivered=list(delivered),
            score_kind="similarity",
            **lineage,
        )

    def assemble(self, *records: Ref, text: str | None = None, **lineage: Any) -> Step:
        body = "\n".join(f"* {self.text(r)}" for r in records) if text is None else text
        context = self.value(semconv.KIND_CONTEXT, f"What you know:\n{body}")
        return self.step("assemble", inputs=records, outputs=[context], **lineage)

    def answer(self, reply: str, *inputs: Ref, **lineage: Any) -> Step:
        made = self.value(semconv.KIND_ANSWER, reply)
        return self.step("answer", inputs=[self.query, *inputs], outputs=[made], **lineage)

    def turn(
        self, question: str, reply: str, *delivered: Ref, day: float = 20, **retrieve: Any
    ) -> Turn:
        """Ask, retrieve, assemble everything that was delivered, answer."""
        asked = self.ask(question, day)
        found = self.retrieve(*delivered, **retrieve)
        context = self.assemble(*delivered)
        return Turn(asked, found, context, self.answer(reply, context))

    # judging

    def flag(
        self,
        expected: str | None,
        *evidence: Ref,
        on: Step | None = None,
        source: str = "dataset",
    ) -> None:
        """Flag the last answer on its own span."""
        span = on.span if on else [s for s in self.spans if _is_answer(s)][-1]
        flag: dict[str, Any] = {
            semconv.MEMTRACE_FLAGGED: True,
            semconv.MEMTRACE_FLAG_SOURCE: source,
        }
        if expected is not None:
            flag[semconv.MEMTRACE_EXPECTED] = expected
        if evidence:
            flag[semconv.MEMTRACE_EVIDENCE] = [_ref(item) for item in evidence]
        span["attributes"] += [{"key": k, "value": _any(v)} for k, v in flag.items()]

    def otlp(self) -> dict[str, Any]:
        """ExportTraceServiceRequest as OTLP/JSON, one resource per service."""
        return {
            "resourceSpans": [
                {
                    "resource": {
                        "attributes": [{"key": "service.name", "value": {"stringValue": name}}]
                    },
                    "scopeSpans": [
                        {
                            "scope": {"name": "held-out"},
                            "spans": [
                                span
                                for span, service in zip(self.spans, self.services)
                                if service == name
                            ],
                        }
                    ],
                }
                for name in dict.fromkeys(self.services)
            ]
        }

    def _hex(self, digits: int) -> str:
        seed = f"{self.graph}/{self.service}/{len(self.spans)}/{digits}/{self.now}"
        return hashlib.sha256(seed.encode()).hexdigest()[:digits]


def blame(error_type: str | tuple[str, ...], *decisive: Step, **details: Any) -> Expected:
    """This type, or one of these, with these decisive operations."""
    types = (error_type,) if isinstance(error_type, str) else error_type
    return Expected(types, decisive=decisive, **details)


def _is_answer(span: dict[str, Any]) -> bool:
    return bool(span["name"] == semconv.SPAN_NAMES["answer"])


def _ref(item: Ref) -> str:
    return item.ref if isinstance(item, Step) else item


def _text(item: object) -> object:
    return item.ref if isinstance(item, Step) else item


def _refs(value: Any) -> Any:
    if isinstance(value, Step):
        return value.ref
    if isinstance(value, (list, tuple)):
        return [_refs(item) for item in value]
    return value


def _named(lineage: dict[str, Any]) -> str:
    return json.dumps(lineage, ensure_ascii=False)


def _any(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, (list, tuple)):
        return {"arrayValue": {"values": [_any(item) for item in value]}}
    return {"stringValue": str(value)}
