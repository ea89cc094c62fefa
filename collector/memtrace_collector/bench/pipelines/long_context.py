"""No memory system at all: the whole conversation goes into the prompt, as far as it fits.

python -m memtrace_collector.bench.pipelines.long_context --plan plan.json --outcomes out.jsonl
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import timedelta

from openai.types.chat import ChatCompletionMessageParam

import memtrace_otel as memtrace
from memtrace_collector.bench.dialogue import Message
from memtrace_collector.bench.faults import LONG_CONTEXT
from memtrace_collector.bench.pipelines import runner, turn
from memtrace_collector.bench.pipelines.anew import anew
from memtrace_collector.bench.pipelines.base import INSTRUCTIONS, Bench, Ran, owner_of, told
from memtrace_collector.bench.pipelines.long_context_buffer import SYSTEM, Buffer, Line
from memtrace_collector.bench.pipelines.neighbour import graph_of
from memtrace_collector.bench.pipelines.surface import Surface
from memtrace_collector.bench.pipelines.turn import BUDGET_TOKENS, Prompt, tokens
from memtrace_collector.bench.planned import PlannedCase
from memtrace_collector.bench.plantings import Plantings
from memtrace_collector.bench.stand_in.model import MODEL_NAME, StandIn
from memtrace_collector.bench.stand_in.writing import stamped
from memtrace_otel import MemoryOperation, Variable

NEEDS = {
    "summary_dropped": {"consolidates": True},
    "trimmed": {"consolidates": False},
    "over_budget": {"second_round": False, "consolidates": False},
}
PAUSE = timedelta(hours=4)
MOST_LINES = 24
"""A longer buffer is summarised, where the program summarises at all."""
_HEADING = "Conversation so far:"
_SMALL_TALK = "Before we go on: shall I keep notes of this?"


class _Assistant:
    """One assistant with a buffer per owner."""

    def __init__(self, bench: Bench, model: StandIn, chosen: Surface, plantings: Plantings) -> None:
        self._bench = bench
        self._model = model
        self._surface = chosen
        self._plantings = plantings
        self._buffers: dict[str, Buffer] = {}

    def run(self, case: PlannedCase) -> Ran:
        said = told(case, self._plantings)
        limit = self._limit(said)
        for owner, messages in sittings(case, said, self._plantings):
            self._listen(owner, messages, limit, misfiled=owner != case.owner)
        graph_id = graph_of(case.owner)
        self._close(case, said, graph_id)
        with self._bench.turn("question"), memtrace.graph(graph_id):
            query = turn.ask(self._model, SYSTEM)
            earlier = self._earlier_turn(case) if self._surface.second_round else None
            prompt = self._assemble(case, query, earlier)
            return turn.answer(
                self._bench,
                self._model,
                SYSTEM,
                prompt,
                graph_id,
                declared=self._surface.declares_answer,
            )

    def _of(self, owner: str) -> Buffer:
        return self._buffers.setdefault(owner, Buffer(self._model, owner))

    def _listen(
        self, owner: str, messages: Sequence[Message], limit: int, *, misfiled: bool
    ) -> None:
        buffer = self._of(owner)
        with self._bench.turn("listen"), memtrace.graph(graph_of(owner)):
            for message in messages:
                self._ingest(message, misfiled=misfiled)
            buffer.append(messages)
            if not self._surface.consolidates:
                buffer.trim(limit, messages[-1].said_at)
            elif len(buffer.lines) > MOST_LINES:
                buffer.summarise(MOST_LINES // 2, messages[-1].said_at)

    def _ingest(self, message: Message, *, misfiled: bool) -> None:
        variable = memtrace.message(message.text, id=message.id)
        with memtrace.operation("ingest", system=SYSTEM) as op:
            op.outputs(variable)
            op.time(variable, message.said_at)
            op.role(variable, message.role)
            planted = self._plantings.fires("filed_elsewhere", message.id)
            if misfiled and planted:
                self._model.effect(planted)

    def _limit(self, said: Sequence[Message]) -> int:
        """Tokens that the buffer may have: enough for all that the question needs, and some of
        what came before; with ``trimmed``, for what came after its message alone."""
        lines = [stamped(message) for message in said]
        planted = self._plantings.fires("trimmed")
        first = len(lines) // 3
        for place, line in enumerate(lines):
            if planted and planted.message in self._model.oracle.carried_by(line):
                return sum(map(tokens, lines[place + 1 :]))
            if not planted and self._model.oracle.speaks_of(line):
                first = min(first, place)
        return sum(map(tokens, lines[first:]))

    def _close(self, case: PlannedCase, said: Sequence[Message], graph_id: str) -> None:
        """At the end of a day what is old is summarised, up to the message whose summary is to
        lose it where that is planted."""
        planted = self._plantings.fires("summary_dropped")
        buffer = self._of(case.owner)
        if not (planted and said):
            return
        carrying = [
            place
            for place, line in enumerate(buffer.lines, start=1)
            if planted.message in self._model.oracle.carried_by(line.text)
        ]
        if carrying:
            with self._bench.turn("end of day"), memtrace.graph(graph_id):
                buffer.summarise(max(carrying), said[-1].said_at)

    def _assemble(self, case: PlannedCase, query: Variable, earlier: Prompt | None) -> Prompt:
        question = f"Question: {case.question.text}"
        if earlier is None:
            text, variable = self._from_buffer(case, query, question)
            return Prompt(variable=variable, text=text, query=query)
        text = f"{earlier.text}\n\n{question}"
        prompt = memtrace.context(text)
        with memtrace.operation("assemble", system=SYSTEM) as op:
            op.inputs(earlier.variable, query)
            op.outputs(prompt)
        return Prompt(variable=prompt, text=text, query=query)

    def _earlier_turn(self, case: PlannedCase) -> Prompt:
        """A turn before the question: its prompt is what the question's own extends."""
        asked = memtrace.query(_SMALL_TALK)
        text, variable = self._from_buffer(case, asked, _SMALL_TALK)
        messages: list[ChatCompletionMessageParam] = [
            {"role": "system", "content": INSTRUCTIONS},
            {"role": "user", "content": text},
        ]
        with memtrace.operation("answer", system=SYSTEM) as op:
            op.inputs(asked, variable)
            completion = self._bench.client.chat.completions.create(
                model=MODEL_NAME, messages=messages, temperature=0.0
            )
            op.outputs(memtrace.answer(completion.choices[0].message.content or ""))
        return Prompt(variable=variable, text=text, query=asked)

    def _from_buffer(self, case: PlannedCase, query: Variable, ending: str) -> tuple[str, Variable]:
        buffer = self._of(case.owner)
        with memtrace.operation("retrieve", system=SYSTEM) as op:
            op.inputs(query)
            op.delivered(buffer.variable)
        with memtrace.operation("assemble", system=SYSTEM) as op:
            kept = self._within_budget(op, buffer.lines)
            text = "\n".join([_HEADING, *(line.text for line in kept), "", ending])
            prompt = memtrace.context(text)
            op.inputs(query, buffer.variable)
            op.outputs(prompt)
        return text, prompt

    def _within_budget(self, op: MemoryOperation, lines: Sequence[Line]) -> list[Line]:
        """The newest lines that fit."""
        planted = self._plantings.fires("over_budget")
        budget = BUDGET_TOKENS
        if planted:
            carried = self._model.oracle.carried_by
            last = max(
                (n for n, line in enumerate(lines) if planted.message in carried(line.text)),
                default=-1,
            )
            budget = sum(tokens(line.text) for line in lines[last + 1 :])
        op.limits(budget_tokens=budget)
        kept = list(lines)
        while kept and sum(tokens(line.text) for line in kept) > budget:
            gone = kept.pop(0)
            if gone.variable is not None:
                op.dropped(gone.variable, None, "budget")
            if planted and planted.message in self._model.oracle.carried_by(gone.text):
                self._model.effect(planted)
        return kept


def sittings(
    case: PlannedCase, said: Sequence[Message], plantings: Plantings
) -> Iterator[tuple[str, list[Message]]]:
    """The messages of one owner between two longer silences, as they came."""
    owner, sitting = "", list[Message]()
    for message in said:
        whose = owner_of(case, message, plantings)
        if sitting and (whose != owner or message.said_at - sitting[-1].said_at > PAUSE):
            yield owner, sitting
            sitting = []
        owner = whose
        sitting.append(message)
    if sitting:
        yield owner, sitting


long_context = anew(LONG_CONTEXT, _Assistant, NEEDS)


if __name__ == "__main__":
    sys.exit(runner.main(long_context))
