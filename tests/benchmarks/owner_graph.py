"""A memory owner's years with an assistant, as facts: messages kept, questions asked, and a few
answers of which it is known what went wrong. Everything follows from a seed.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from msgspec.structs import replace

from memtrace_collector.graph.facts import Decision, Dropped, Flag, Operation, SpanFacts, Value
from memtrace_collector.graph.facts import Sequence as Number

GRAPH = "user:bench"
KINDS = (
    "omission",
    "overwritten",
    "wrongly_deleted",
    "not_retrieved",
    "ranked_out",
    "cut_from_context",
    "distracted",
    "ignored_context",
)
DELIVERED = 10
DROPPED = 40
SIMILAR = 5
"""Records that an ``add`` looks at before it decides."""
HOT = 40
"""Records that a third of all searches meet."""
_ADDS_PER_QUESTION = 4
_DAY_NS = 86_400 * 10**9
_START_NS = 1_700_000_000 * 10**9
_SYLLABLES = "ba ce di fo gu ha je ki lo mu na pe qui ro su ta ve wi xo yu zan bri cle dro"
_DAILY = "bought found cooked painted visited finished started booked mended sold"


class Planted(NamedTuple):
    """A flagged answer and what was done to it."""

    kind: str
    answer: Operation
    flag: Flag


@dataclass
class Owner:
    """Writes the graph down step by step; ``facts`` yields what a projector would apply."""

    seed: int = 7
    planted: list[Planted] = field(default_factory=list)
    operations: int = 0
    values: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # repeatable, not secret
        self._words = ["".join(self._random.choices(_SYLLABLES.split(), k=3)) for _ in range(4_000)]
        self._now = _START_NS
        self._records: list[str] = []
        self._current: dict[str, str] = {}
        self._kept: set[str] = set()
        self._texts: dict[str, str] = {}
        self._numbers = {"writer": 0, "reader": 0}
        self._trace = 0
        self._batch: list[SpanFacts] = []
        self._values: list[Value] = []

    def facts(self, operations: int, cases: int) -> Iterator[SpanFacts]:
        """About ``operations`` operations, ``cases`` planted answers among the last of them."""
        kinds = [KINDS[n % len(KINDS)] for n in range(cases)]
        kept = {self._random.randrange(operations // 10, operations // 2): n for n in range(cases)}
        due = sorted(kept.items())
        subjects = [self._subject(n) for n in range(cases)]
        records: dict[int, str] = {}
        ending = operations - cases * 20
        while self.operations < ending:
            self._now += self._random.randrange(_DAY_NS // 24, _DAY_NS // 4)
            while due and due[0][0] <= self.operations:
                _, case = due.pop(0)
                records[case] = self._tell(subjects[case], kinds[case])
            for _ in range(_ADDS_PER_QUESTION):
                self._add()
            self._ask(self._phrase(4), self._candidates(DELIVERED + DROPPED))
            yield from self._flush()
        for case, kind in enumerate(kinds):
            self._now += _DAY_NS
            self._plant(subjects[case], kind, records.get(case, ""))
            yield from self._flush()

    # what happens

    def _subject(self, number: int) -> tuple[str, str, str, str]:
        """What is asked about, the right answer, a wrong one, and the message's id."""
        name = ["".join(self._random.choices(_SYLLABLES.split(), k=5)).title() for _ in range(3)]
        return f"{name[0].lower()}{number} lessons", name[1], name[2], f"msg:talk/{number}"

    def _add(
        self, said: str | None = None, facts: Sequence[str] | None = None, id: str = ""
    ) -> None:
        """One message kept: ingest, and an add with its stages."""
        said = said or f"{self._phrase(9)}. {self._phrase(8)}. {self._phrase(7)}."
        facts = [f"The user {self._phrase(6)}" for _ in range(2)] if facts is None else facts
        trace = self._new_trace()
        message = self._value("msg", said, id or f"talk/{trace}")
        self._operation(trace, "ingest", outputs=(message,), service="reader")
        add = self._operation(trace, "add", inputs=(message,), composite=True)
        within = {"parent_span_id": add.span_id}
        made = tuple(self._value("fact", text) for text in facts)
        self._operation(trace, "extract", inputs=(message,), outputs=made, **within)
        similar = self._candidates(SIMILAR)
        if similar:
            self._operation(trace, "retrieve", delivered=similar, **within)
        decisions: list[tuple[str, str, str | None]] = []
        for fact in made:
            known = [ref for ref in similar if _record(ref) in self._current.keys() - self._kept]
            chance = self._random.random()
            if known and chance < 0.35:
                decisions.append((fact, "UPDATE", self._random.choice(known)))
            elif known and chance < 0.4:
                decisions.append((fact, "DELETE", self._random.choice(known[-1:])))
            elif known and chance < 0.5:
                decisions.append((fact, "NOOP", None))
            else:
                decisions.append((fact, "ADD", None))
        self._decide(trace, within, similar, decisions)

    def _decide(
        self,
        trace: str,
        within: dict[str, Any],
        similar: tuple[str, ...],
        decisions: list[tuple[str, str, str | None]],
    ) -> None:
        chosen = tuple(Decision(*each, "done") for each in decisions)
        inputs = tuple(dict.fromkeys(fact for fact, _, _ in decisions))
        self._operation(trace, "decide", inputs=inputs, shown=similar, decisions=chosen, **within)
        for fact, action, target in decisions:
            if action == "ADD":
                record = f"mem:bench:{self._id(f'record {len(self._records)}', 32)}"
                self._records.append(record)
                self._write(trace, "create", record, fact, within)
            elif action != "NOOP" and target and _record(target) in self._current:
                step = "update" if action == "UPDATE" else "delete"
                self._write(trace, step, _record(target), fact, within)

    def _write(self, trace: str, step: str, record: str, fact: str, within: dict[str, Any]) -> None:
        before = self._current.pop(record, None)
        replaced = (before,) if before else ()
        if step == "delete":
            version = f"{record}@deleted"
        else:
            version = self._value("mem", self._texts[fact], record.partition(":")[2])
            self._current[record] = version
        inputs = () if step == "delete" else (fact,)
        self._operation(
            trace, step, inputs=inputs, outputs=(version,), supersedes=replaced, **within
        )

    def _ask(
        self,
        question: str,
        candidates: Sequence[str],
        *,
        reply: str = "",
        left_out: Sequence[str] = (),
    ) -> Operation:
        """One question: ingest, search, prompt, answer."""
        trace = self._new_trace()
        query = self._value("query", question)
        reading = {"service": "reader"}
        delivered = tuple(candidates[:DELIVERED])
        scores = tuple(round(0.9 - n / 100, 3) for n in range(len(candidates)))
        dropped = tuple(
            Dropped(ref, score, "limit", n + 1)
            for n, (ref, score) in enumerate(zip(candidates, scores))
            if n >= DELIVERED
        )
        self._operation(trace, "ingest", outputs=(query,), **reading)
        self._operation(
            trace, "retrieve", inputs=(query,), delivered=delivered, dropped=dropped,
            scores=scores[: len(delivered)], limits={"k": DELIVERED}, **reading,
        )  # fmt: skip
        shown = tuple(ref for ref in delivered if ref not in left_out)
        parts: list[object] = ["Answer from these memories:\n"]
        for ref in shown:
            parts += ["- ", {"ref": ref}, "\n"]
        parts.append(f"Question: {question}")
        text = "".join(
            self._texts[part["ref"]] if isinstance(part, dict) else str(part) for part in parts
        )
        context = self._value("ctx", text, content=parts)
        self._operation(trace, "assemble", inputs=(*shown, query), outputs=(context,), **reading)
        said = self._value("ans", reply or self._phrase(6))
        return self._operation(trace, "answer", inputs=(context, query), outputs=(said,), **reading)

    def _tell(self, subject: tuple[str, str, str, str], kind: str) -> str:
        """The evidence of a planted case; the record it went to."""
        about, right, _, message = subject
        fact = f"The user's teacher for {about} is called {right}"
        said = f"{self._phrase(8)}. My teacher for {about} is called {right}. {self._phrase(6)}."
        other = f"The user {self._phrase(6)}"
        facts = [other] if kind == "omission" else [other, fact]
        return self._keep(said, facts, message.partition(":")[2])

    def _keep(self, said: str, facts: Sequence[str], id: str) -> str:
        """A message of which every fact becomes a record; the last of them if there are two."""
        trace = self._new_trace()
        ref = self._value("msg", said, id)
        self._operation(trace, "ingest", outputs=(ref,), service="reader")
        add = self._operation(trace, "add", inputs=(ref,), composite=True)
        within = {"parent_span_id": add.span_id}
        made = tuple(self._value("fact", fact) for fact in facts)
        self._operation(trace, "extract", inputs=(ref,), outputs=made, **within)
        similar = self._candidates(SIMILAR)
        self._decide(trace, within, similar, [(each, "ADD", None) for each in made])
        if len(facts) < 2:
            return ""
        self._kept.add(self._records[-1])
        return self._records[-1]

    def _plant(self, subject: tuple[str, str, str, str], kind: str, record: str) -> None:
        about, right, wrong, message = subject
        carrier = self._current.get(record, "")
        if kind in ("overwritten", "wrongly_deleted"):
            action = "UPDATE" if kind == "overwritten" else "DELETE"
            trace = self._new_trace()
            said = self._value("msg", f"{self._phrase(7)} with {wrong}.", f"talk/{trace}")
            add = self._operation(trace, "add", inputs=(said,), composite=True)
            within = {"parent_span_id": add.span_id}
            fact = self._value("fact", f"The user {self._phrase(5)} with {wrong}")
            self._operation(trace, "extract", inputs=(said,), outputs=(fact,), **within)
            self._decide(trace, within, (carrier,), [(fact, action, carrier)])
            carrier = ""
        candidates = [ref for ref in self._candidates(DELIVERED + DROPPED) if ref != carrier]
        if carrier and kind == "ranked_out":
            candidates.insert(DELIVERED + 5, carrier)
        elif carrier and kind != "not_retrieved":
            candidates.insert(2, carrier)
        reply = f"It is {wrong}."
        if kind == "distracted":
            facts = [f"The user {self._phrase(6)}", f"The user's teacher for chess is {wrong}"]
            other = self._keep(f"{facts[1]}. {self._phrase(6)}.", facts, f"chess/{record[-8:]}")
            candidates.insert(3, self._current[other])
        left_out = (carrier,) if kind == "cut_from_context" else ()
        answer = self._ask(
            f"Who is my teacher for {about}?", candidates, reply=reply, left_out=left_out
        )
        evidence = (next(ref for ref in self._texts if ref.startswith(f"{message}@")),)
        flag = Flag(
            graph_id=GRAPH, trace_id=answer.trace_id, span_id=answer.span_id, expected=right,
            evidence=evidence, source="dataset", at_ns=answer.end_ns, origin=answer.span_id,
        )  # fmt: skip
        self.planted.append(Planted(kind, answer, flag))

    # how it is written down

    def _phrase(self, words: int) -> str:
        """A verb and words of which some are common and most are rare, as in any language."""
        picked = [self._words[int(4_000 * self._random.random() ** 2.5)] for _ in range(words)]
        return " ".join([self._random.choice(_DAILY.split()), *picked])

    def _candidates(self, count: int) -> tuple[str, ...]:
        """Current versions, the first records of all more often than the rest."""
        found: dict[str, None] = {}
        for _ in range(count * 3):
            if not self._records or len(found) >= count:
                break
            span = HOT if self._random.random() < 0.3 else len(self._records)
            record = self._records[self._random.randrange(min(span, len(self._records)))]
            if record in self._current:
                found[self._current[record]] = None
        return tuple(found)

    def _value(self, kind: str, text: str, id: str = "", content: Any = None) -> str:
        digest = hashlib.sha256(text.encode()).hexdigest()
        ref = f"{kind}:{id or digest[:32]}@{digest[:12]}"
        if ref not in self._texts:
            self._texts[ref] = text
            self.values += 1
            self._values.append(
                Value(graph_id=GRAPH, ref=ref, content=content or text, verified=True)
            )
        return ref

    def _operation(self, trace: str, step: str, **said: Any) -> Operation:
        service = said.pop("service", "writer")
        self.operations += 1
        self._numbers[service] += 1
        self._now += self._random.randrange(10**6, 10**9)
        operation = Operation(
            graph_id=GRAPH, trace_id=trace, span_id=self._id(f"span {self.operations}", 16),
            name=f"memtrace.{step}", step=step, start_ns=self._now, end_ns=self._now + 10**5,
            service=service, system="bench", sequence=Number(service, self._numbers[service]),
            digest_key="plain", digest=self._id(f"content {self.operations}", 64), **said,
        )  # fmt: skip
        if operation.composite:
            operation = replace(operation, end_ns=self._now + 10**10)
        self._batch.append(SpanFacts(operation=operation, values=tuple(self._values)))
        self._values = []
        return operation

    def _new_trace(self) -> str:
        self._trace += 1
        return self._id(f"trace {self._trace}", 32)

    def _id(self, name: str, digits: int) -> str:
        return hashlib.sha256(f"{self.seed} {name}".encode()).hexdigest()[:digits]

    def _flush(self) -> list[SpanFacts]:
        batch, self._batch = self._batch, []
        return batch


def batches(facts: Iterator[SpanFacts], size: int = 2_000) -> Iterator[list[SpanFacts]]:
    """What a projector applies in one transaction."""
    while batch := list(islice(facts, size)):
        yield batch


def _record(ref: str) -> str:
    return ref.rpartition("@")[0]
