"""From a closed buffer to candidate facts: messages enter, an episode is told, facts are extracted.

Extraction has one or two visible stages. In two, an episode (one text of the whole buffer) is
written first and the facts are extracted of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import memtrace_otel as memtrace
from memtrace_collector.bench.dialogue import Message
from memtrace_collector.bench.pipelines.segments import segments, without_needed
from memtrace_collector.bench.pipelines.staged_units import SYSTEM
from memtrace_collector.bench.pipelines.surface import Surface
from memtrace_collector.bench.stand_in.model import StandIn
from memtrace_collector.bench.stand_in.writing import day, stamped
from memtrace_otel import Variable

MOST_BUFFERED = 8
PAUSE = timedelta(hours=4)
"""A longer silence closes an episode."""

REQUEST_TO_FORGET = "Please forget"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A message as it was kept: whole, or in segments, of which some may be lost."""

    message: Message
    parts: tuple[tuple[Variable, str], ...]
    lost: bool = False

    @property
    def variables(self) -> tuple[Variable, ...]:
        return tuple(variable for variable, _ in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A text that may become a memory unit."""

    text: str
    variable: Variable
    message: Message

    @property
    def line(self) -> str:
        """As a prompt would show it."""
        return f"[{day(self.message.said_at)}] {self.text}"


def is_boundary(buffer: Sequence[Message], incoming: Message) -> bool:
    """Whether ``incoming`` begins another episode than what is buffered.

    A request to forget is an episode of its own: what was said before must be stored by then.
    """
    if not buffer:
        return False
    if incoming.text.startswith(REQUEST_TO_FORGET):
        return True
    return len(buffer) >= MOST_BUFFERED or incoming.said_at - buffer[-1].said_at > PAUSE


def ingest(model: StandIn, surface: Surface, message: Message, *, elsewhere: bool) -> Source:
    """The message enters; ``elsewhere``: it is filed under an owner who never said it."""
    planted = model.plantings.fires("chunk_lost", message.id)
    whole = memtrace.message(message.text, id=message.id)
    with memtrace.operation("ingest", system=SYSTEM) as op:
        op.time(whole, message.said_at)
        op.role(whole, message.role)
        misfiled = model.plantings.fires("filed_elsewhere", message.id)
        if elsewhere and misfiled:
            model.effect(misfiled)
        if not (surface.segmented or planted):
            op.outputs(whole)
            return Source(message=message, parts=((whole, message.text),))
        op.inputs(whole)
        texts = segments(message.text)
        kept = without_needed(model.case.question, texts) if planted else texts
        if planted and kept != texts:
            model.effect(planted)
        parts = tuple(
            (memtrace.message(text, id=f"{message.id}/{number}"), text)
            for number, text in enumerate(kept, start=1)
        )
        for variable, _ in parts:
            op.outputs(variable)
            op.edge(whole, variable)
            op.time(variable, message.said_at)
    return Source(message=message, parts=parts, lost=kept != texts)


def candidates(model: StandIn, surface: Surface, sources: Sequence[Source]) -> list[Candidate]:
    """What may be stored of these messages."""
    if surface.raw:
        return [
            Candidate(text=text, variable=variable, message=source.message)
            for source in sources
            for variable, text in source.parts
        ]
    if surface.two_extractions:
        return _of_episode(model, sources)
    found: list[Candidate] = []
    with memtrace.operation("extract", system=SYSTEM) as op:
        op.inputs(*(variable for source in sources for variable in source.variables))
        for source in sources:
            for candidate in _facts(model, source):
                found.append(candidate)
                op.outputs(candidate.variable)
                for variable in source.variables:
                    op.edge(variable, candidate.variable)
    return found


def _of_episode(model: StandIn, sources: Sequence[Source]) -> list[Candidate]:
    """Two extractions: the episode is told, then the facts are extracted of what it tells."""
    text = "\n".join(
        stamped(source.message).replace(source.message.text, " ".join(t for _, t in source.parts))
        for source in sources
    )
    episode = memtrace.fact(text)
    with memtrace.operation("extract", system=SYSTEM) as op:
        op.inputs(*(variable for source in sources for variable in source.variables))
        op.outputs(episode)
        op.time(episode, sources[-1].message.said_at)
    found: list[Candidate] = []
    with memtrace.operation("extract", system=SYSTEM) as op:
        op.inputs(episode)
        for source in sources:
            found += _facts(model, source)
        for candidate in found:
            op.outputs(candidate.variable)
            op.edge(episode, candidate.variable)
    return found


def _facts(model: StandIn, source: Source) -> list[Candidate]:
    """The facts of one message; of one that lost a part, only those that do not rest on it."""
    texts = model.extract([source.message])
    if source.lost:
        texts = [text for text in texts if not model.oracle.carried_by(text)]
    return [
        Candidate(text=text, variable=memtrace.fact(text), message=source.message) for text in texts
    ]
