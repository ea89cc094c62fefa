"""The question's turn in every program: the question enters, a prompt is put together, an answer.

Recorded as a user would record his own application. A program may leave the answer to the
instrumented client, whose call is then the answer itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import openai
from openai.types.chat import ChatCompletionMessageParam

import memtrace_otel as memtrace
from memtrace_collector.bench.pipelines.base import APOLOGY, INSTRUCTIONS, Bench, Ran
from memtrace_collector.bench.planned import Planting
from memtrace_collector.bench.stand_in.model import MODEL_NAME, StandIn
from memtrace_collector.bench.stand_in.writing import day
from memtrace_otel import Variable, semconv

BUDGET_TOKENS = 6_000
_CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Something that a search delivered, or a part of a conversation, ready for a prompt."""

    variable: Variable
    text: str
    said_at: datetime

    def line(self, *, dated: bool = True) -> str:
        return f"- [{day(self.said_at)}] {self.text}" if dated else f"- {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """An assembled prompt. ``query``: the question that it ends with."""

    variable: Variable
    text: str
    query: Variable


def tokens(text: str) -> int:
    """About how many tokens a text has."""
    return len(text) // _CHARS_PER_TOKEN + 1


def ask(model: StandIn, system: str) -> Variable:
    """The user's question enters."""
    question = model.case.question
    query = memtrace.query(question.text)
    with memtrace.operation("ingest", system=system) as op:
        op.outputs(query)
        op.time(query, question.asked_at)
        op.role(query, "user")
    return query


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitting:
    """What of some items fits into a budget; ``cut``: the others with their ranks from 1."""

    budget: int
    kept: tuple[Item, ...]
    cut: tuple[tuple[int, Item], ...]

    def loses(self, model: StandIn) -> list[Planting]:
        """The plantings whose message's items were cut."""
        return [
            planted
            for planted in model.plantings.of("over_budget")
            if any(carries(model, planted, item.line()) for _, item in self.cut)
        ]


def assemble(
    model: StandIn,
    system: str,
    query: Variable,
    items: Sequence[Item],
    heading: str,
    *,
    asks: bool = True,
    dated: bool = True,
) -> Prompt:
    """A prompt of ``items`` in order of rank, as far as the budget goes.

    It ends with the question, unless that is asked in another message (``asks`` is False);
    ``dated``: each item is led by its day.
    """
    fitted = fitting(model, items)
    with memtrace.operation("assemble", system=system) as op:
        planted = model.plantings.fires("date_stripped")
        if planted and any(carries(model, planted, item.line()) for item in fitted.kept):
            model.effect(planted)
        op.limits(budget_tokens=fitted.budget)
        for rank, item in fitted.cut:
            op.dropped(item.variable, None, "budget", rank)
        for lost in fitted.loses(model):
            model.effect(lost)
        lines = [heading, *(item.line(dated=dated and planted is None) for item in fitted.kept)]
        if asks:
            lines += ["", f"Question: {model.case.question.text}"]
        text = "\n".join(lines)
        prompt = memtrace.context(text)
        op.inputs(query, *(item.variable for item in fitted.kept))
        op.outputs(prompt)
    return Prompt(variable=prompt, text=text, query=query)


def fitting(model: StandIn, items: Sequence[Item]) -> Fitting:
    """Whatever still fits, best first; an item that does not is skipped."""
    planted = model.plantings.fires("over_budget")
    budget = _tight_budget(model, planted, items) if planted else BUDGET_TOKENS
    kept: list[Item] = []
    cut: list[tuple[int, Item]] = []
    left = budget
    for rank, item in enumerate(items, start=1):
        need = tokens(item.line())
        if need <= left:
            kept.append(item)
            left -= need
        else:
            cut.append((rank, item))
    return Fitting(budget=budget, kept=tuple(kept), cut=tuple(cut))


def _tight_budget(model: StandIn, planted: Planting, items: Sequence[Item]) -> int:
    """One token too few for the first item that carries the planting's message."""
    used = 0
    for item in items:
        need = tokens(item.line())
        if carries(model, planted, item.line()):
            return used + need - 1
        used += need
    return BUDGET_TOKENS


def carries(model: StandIn, planted: Planting, line: str) -> bool:
    """Whether a line holds what the planting's message says of the question."""
    return planted.message in model.oracle.carried_by(line)


def answer(
    bench: Bench, model: StandIn, system: str, prompt: Prompt, graph_id: str, *, declared: bool
) -> Ran:
    """The model's reply; an apology when its call fails."""
    messages: list[ChatCompletionMessageParam] = [
        {"role": "system", "content": INSTRUCTIONS},
        {"role": "user", "content": prompt.text},
    ]
    if not declared:
        return bench.ask(messages, model.plantings, model, graph_id)
    planted = model.plantings.fires("call_failed")
    if planted:
        model.fail_next_call()
    with memtrace.operation("answer", system=system) as op:
        op.inputs(prompt.query, prompt.variable)
        span = op.span.get_span_context()
        try:
            completion = bench.client.chat.completions.create(
                model=MODEL_NAME, messages=messages, temperature=0.0
            )
        except openai.APIStatusError as error:
            if planted:
                model.effect(planted)
            op.outputs(memtrace.answer(APOLOGY))
            op.fail(error)
            return Ran(APOLOGY, span, graph_id)
        reply = completion.choices[0].message.content or ""
        op.attribute(semconv.GEN_AI_RESPONSE_ID, completion.id)
        op.outputs(memtrace.answer(reply))
    return Ran(reply, span, graph_id)
