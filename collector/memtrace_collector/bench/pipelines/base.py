"""What a pipeline of the benchmark is, and what it is given.

A pipeline is a small program around a real memory system: it lets the dialogue in, asks the
question and answers it through the ``openai`` client. It must

* make everything anew for each :meth:`Pipeline.run`: store, history, owner. The clean and the
  planted run of a case share nothing but the stand-in;
* let only :func:`told` in, each message with its id and time declared, so that a flag can name
  it as ``msg:<id>@?``;
* ask ``plantings.fires(kind, message_id)`` at the place where the fault really happens, make it
  there, and say ``plantings.took_effect(planting)`` while the operation that goes wrong is the
  current span. Faults of a model are made by the stand-in itself (:mod:`stand_in.faulty`);
* end with :meth:`Bench.ask`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from openai import APIStatusError, OpenAI
from openai.types.chat import ChatCompletionMessageParam
from opentelemetry.trace import SpanContext, Tracer

import memtrace_otel
from memtrace_collector.bench.dialogue import Message
from memtrace_collector.bench.pipelines.telemetry import SpanWatch
from memtrace_collector.bench.planned import PlannedCase
from memtrace_collector.bench.plantings import NO_OPERATION, Plantings
from memtrace_collector.bench.stand_in.model import MODEL_NAME, StandIn
from memtrace_otel import semconv

INSTRUCTIONS = (
    "You answer questions from what you are given about the people concerned. Be brief. When it "
    "does not contain the answer, say that you don't know."
)
APOLOGY = "Sorry, something went wrong on our side. Please try again."


@dataclass(frozen=True, slots=True)
class Ran:
    """What a pipeline answered, in which span, about whose memory."""

    reply: str
    answer: SpanContext
    graph_id: str


class Pipeline(Protocol):
    """One memory system. Made once per process with a :class:`Bench`."""

    name: str
    """As in ``faults.SYSTEMS``."""

    def run(self, case: PlannedCase, plantings: Plantings, model: StandIn) -> Ran:
        """Let the dialogue in, ask the question. ``model`` has the case in hand already."""
        ...


class Bench:
    """What every pipeline is given.

    Attributes:
        folder: scratch space of this process.
        client: an ``openai`` client of the stand-in, without retries.
        model_url: base URL of the stand-in, for frameworks that make a client of their own.
        watch: the spans that ended, and under which response id.
    """

    def __init__(self, folder: Path, model_url: str) -> None:
        self.folder = folder
        self.model_url = model_url
        self.client = OpenAI(base_url=model_url, api_key="none", max_retries=0)
        self.watch = SpanWatch()
        self.tracer: Tracer | None = None

    @contextmanager
    def turn(self, name: str) -> Iterator[None]:
        """A trace of the application's own around what it does for one message or question."""
        if self.tracer is None:
            yield
            return
        with self.tracer.start_as_current_span(name):
            yield

    def ask(
        self,
        prompt: Sequence[ChatCompletionMessageParam],
        plantings: Plantings,
        model: StandIn,
        graph_id: str,
    ) -> Ran:
        """The answer call. Call it inside the :meth:`turn` of the question, after the search.

        When the call fails, the application apologises: that apology is then the answer.
        """
        planted = plantings.fires("call_failed")
        if planted:
            model.fail_next_call()
        with memtrace_otel.graph(graph_id):
            try:
                completion = self.client.chat.completions.create(
                    model=MODEL_NAME, messages=list(prompt), temperature=0.0
                )
            except APIStatusError:
                if planted:
                    plantings.took_effect(planted, self.watch.last_chat)
                return self._apologise(graph_id)
        reply = completion.choices[0].message.content or ""
        return Ran(reply, self.watch.answer(completion.id), graph_id)

    def _apologise(self, graph_id: str) -> Ran:
        with memtrace_otel.operation(semconv.STEP_ANSWER, graph_id=graph_id) as operation:
            operation.outputs(memtrace_otel.answer(APOLOGY))
        return Ran(APOLOGY, self.watch.last(semconv.STEP_ANSWER), graph_id)


def told(case: PlannedCase, plantings: Plantings) -> tuple[Message, ...]:
    """What is said to the system: all messages but those that a planting left unsaid."""
    unsaid = plantings.of("never_said")
    for planting in unsaid:
        plantings.took_effect(planting, NO_OPERATION)
    names = {planting.message for planting in unsaid}
    return tuple(message for message in case.messages if message.id not in names)


def owner_of(case: PlannedCase, message: Message, plantings: Plantings) -> str:
    """Whose memory a message goes into: the case's owner, or another one by mistake.

    Who files it elsewhere says so with ``took_effect`` at its ingest.
    """
    planted = plantings.fires("filed_elsewhere", message.id)
    return planted.detail["owner"] if planted and planted.message == message.id else case.owner


def question_prompt(
    context: Sequence[str], question: str, heading: str = "Memories:"
) -> list[ChatCompletionMessageParam]:
    """Instructions, the context as a list, the question."""
    lines = [heading, *(f"- {line}" for line in context), "", f"Question: {question}"]
    return [
        {"role": "system", "content": INSTRUCTIONS},
        {"role": "user", "content": "\n".join(lines)},
    ]
