"""Short scripts of memory operations, for tests of the attributor."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from memtrace_collector.attribution.attribute import attribute
from memtrace_collector.attribution.verdict import Verdict
from memtrace_collector.graph.facts import (
    Decision,
    Dropped,
    Edge,
    Flag,
    Operation,
    OperationKey,
    SpanFacts,
    Value,
)
from memtrace_collector.graph.facts import Sequence as Number
from memtrace_collector.graph.loader import load_case
from memtrace_collector.store.in_memory import InMemoryFactStore
from memtrace_otel import variables

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
_NAMES = {"retrieve": "search_memory", "create": "create_memory", "update": "update_memory"}


class Script:
    """Operations in the order in which they are written down, a second apart.

    Every operation is returned, so that a test can say which one it means. ``day(n)`` moves on
    to day ``n`` in a new trace; ``captured=False`` keeps all texts out.
    """

    def __init__(self, graph: str = "user:test", *, captured: bool = True) -> None:
        self.graph = graph
        self.captured = captured
        self.operations: list[Operation] = []
        self.values: list[Value] = []
        self.flags: list[Flag] = []
        self.service = "writer"
        self._trace = 0
        self._now = START
        self._numbers: dict[str, int] = {}
        self._call: str = ""
        self.query = ""

    def day(self, number: int, service: str = "writer") -> Script:
        self._trace += 1
        self._now = START + timedelta(days=number)
        self.service = service
        self._call = ""
        return self

    def ref(self, kind: str, content: str, id: str | None = None) -> str:
        made = str(variables.make(kind, content, key=variables.PLAIN, id=id))
        if self.captured:
            self.values.append(Value(graph_id=self.graph, ref=made, content=content))
        return made

    def add(self, step: str, *, graph: str | None = None, **fields: Any) -> Operation:
        """Any operation; its fields as in facts."""
        self._now += timedelta(seconds=1)
        start = int(self._now.timestamp() * 1_000_000_000)
        self._numbers[self.service] = self._numbers.get(self.service, 0) + 1
        number = Number(self.service, self._numbers[self.service])
        fields.setdefault("sequence", number)
        operation = Operation(
            graph_id=graph or self.graph,
            trace_id=f"{self._trace:032x}",
            span_id=f"{len(self.operations) + 1:016x}",
            parent_span_id=fields.pop("parent", self._call),
            name=_NAMES.get(step, f"memtrace.{step}"),
            step=step,
            start_ns=start,
            end_ns=start + 5_000_000,
            service=self.service,
            digest_key=fields.pop("digest_key", "plain"),
            **fields,
        )
        self.operations.append(operation)
        return operation

    def lose(self, count: int = 1) -> None:
        """Operations of the current process that never arrive."""
        self._numbers[self.service] = self._numbers.get(self.service, 0) + count

    # writing

    def say(self, content: str, id: str | None = None, role: str = "user", **fields: Any) -> str:
        """A message enters, inside a new ``add``; its reference."""
        made = self.ref("msg", content, id or f"m/{len(self.operations)}")
        call = self.add("add", inputs=(made,), composite=True, parent="", **fields)
        self._call = call.span_id
        times = {made: self._now.replace(hour=0, minute=0, second=0).isoformat()}
        self.add("ingest", outputs=(made,), times=times, roles={made: role}, **fields)
        return made

    def extract(self, message: str | Sequence[str], *facts: str, **fields: Any) -> list[str]:
        """Facts of one message (with edges) or of a batch (without)."""
        made = [self.ref("fact", fact) for fact in facts]
        if isinstance(message, str):
            fields.setdefault("edges", tuple(Edge(message, f, "extracted_from") for f in made))
            message = (message,)
        self.add("extract", inputs=tuple(message), outputs=tuple(made), **fields)
        return made

    def decide(
        self, fact: str | None, action: str, target: str | None = None, **fields: Any
    ) -> Operation:
        inputs = fields.pop("inputs", (fact,) if fact else ())
        return self.add(
            "decide", inputs=inputs, decisions=(Decision(fact, action, target),), **fields
        )

    def create(self, record: str, content: str, *inputs: str, **fields: Any) -> str:
        made = self.ref("mem", content, f"stub:{record}")
        self.add("create", inputs=inputs, outputs=(made,), **fields)
        return made

    def update(self, old: str, content: str, *inputs: str, **fields: Any) -> str:
        made = self.ref("mem", content, variables.record_of(old).partition(":")[2])
        fields.setdefault("supersedes", (old,))
        self.add("update", inputs=inputs, outputs=(made,), **fields)
        return made

    def delete(self, old: str, **fields: Any) -> Operation:
        gone = f"{variables.record_of(old)}@deleted"
        return self.add("delete", outputs=(gone,), supersedes=(old,), **fields)

    def remember(
        self, content: str, stored: str | None = None, record: str = "1"
    ) -> tuple[str, str]:
        """A message said and stored as it should be; message and version."""
        message = self.say(content)
        (fact,) = self.extract(message, stored or content)
        self.decide(fact, "ADD")
        return message, self.create(record, stored or content, fact)

    # reading

    def ask(self, question: str, day: int = 20) -> str:
        self.day(day, "reader")
        self.query = self.ref("query", question)
        self.add("ingest", outputs=(self.query,), times={self.query: self._now.isoformat()})
        return self.query

    def retrieve(
        self, *delivered: str, dropped: Sequence[Dropped] = (), **fields: Any
    ) -> Operation:
        fields.setdefault("inputs", (self.query,))
        return self.add(
            "retrieve",
            delivered=delivered,
            dropped=tuple(dropped),
            limits={"k": max(1, len(delivered))},
            **fields,
        )

    def assemble(self, *refs: str, text: str | None = None, **fields: Any) -> str:
        known = {value.ref: str(value.content) for value in self.values}
        lines = text if text is not None else "\n".join(f"- {known.get(ref, '')}" for ref in refs)
        made = self.ref("ctx", f"Memories:\n{lines}")
        self.add("assemble", inputs=refs, outputs=(made,), **fields)
        return made

    def answer(self, reply: str, *inputs: str, **fields: Any) -> Operation:
        made = self.ref("ans", reply)
        return self.add("answer", inputs=(self.query, *inputs), outputs=(made,), **fields)

    def reply(self, reply: str, *delivered: str, **fields: Any) -> Operation:
        """Retrieve, assemble and answer in one go."""
        self.retrieve(*delivered, **fields)
        return self.answer(reply, self.assemble(*delivered))

    # judging

    def flag(self, expected: str | None, *evidence: str, source: str = "dataset") -> Script:
        answer = [
            op
            for op in self.operations
            if op.step == "answer" and any(r.startswith("ans:") for r in op.outputs)
        ][-1]
        self.flags.append(
            Flag(
                graph_id=self.graph,
                trace_id=answer.trace_id,
                span_id=answer.span_id,
                expected=expected,
                evidence=evidence,
                source=source,
                origin=f"test/{len(self.flags)}",
            )
        )
        return self

    def store(self) -> InMemoryFactStore:
        facts = [SpanFacts(operation=op) for op in self.operations]
        return InMemoryFactStore.of(
            [*facts, SpanFacts(values=tuple(self.values), flags=tuple(self.flags))]
        )

    def verdict(self) -> Verdict:
        store = self.store()
        flag = self.flags[-1]
        answer = next(op for op in self.operations if op.span_id == flag.span_id)
        return attribute(load_case(store, answer, flag))

    def last(self, step: str) -> OperationKey:
        return [op for op in self.operations if op.step == step][-1].key

    def first(self, step: str) -> OperationKey:
        return next(op for op in self.operations if op.step == step).key


def three_candidates() -> tuple[Script, list[str]]:
    """An answer and three records: one injected and used, one returned only, one cut."""
    script = Script()
    refs = [
        script.remember(text, record=str(number))[1]
        for number, text in enumerate(
            ("Enzo cuts her hair.", "She likes tea.", "Her barber is in Rome."), 1
        )
    ]
    script.ask("Who cuts her hair?")
    script.retrieve(*refs[:2], scores=(0.9, 0.5), dropped=[Dropped(refs[2], 0.4, "limit", 3)])
    script.answer("Enzo does.", script.assemble(refs[0]))
    return script, refs
