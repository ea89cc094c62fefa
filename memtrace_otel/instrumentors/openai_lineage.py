"""What a prompt is made of, as variables: the lineage of an answer. Pure but for digests.

A program that builds its own prompts says nothing about their origin, so it is read off the
messages, each of which is one of these:

* the question: the last user message. A recently seen ``query:`` that it is, or that stands in
  it, is the question; else the message makes a ``query:`` of its own;
* known: an ingested message, an earlier answer or an earlier question, by equal content;
* assembled where it was seen: an operation of this process produced it as a ``ctx:``, which is
  an input;
* assembled: it holds delivered memories or documents, or known messages, between other text.
  What it holds are inputs; the message itself is a ``ctx:`` under ``shown``, because nobody
  was seen to assemble it and its parts say where it comes from;
* new: a ``msg:`` of its own; a system message is a ``prompt:``, a template.

The messages are inputs one by one, the newest first, so that the oldest are cut (and counted)
beyond the contract's 1,000 references. A conversation that grows by the turn therefore lists its
earlier messages and answers by the same references again, and no ``ctx:`` of the previous call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from memtrace_otel import references, semconv
from memtrace_otel.containment import Kind, Match, Origin, normalise
from memtrace_otel.instrumentors.openai_prompt import (
    ASSISTANT,
    SYSTEM,
    USER,
    Message,
    Prompt,
)
from memtrace_otel.variables import Variable

_MEMORY_PREFIX = f"{semconv.KIND_MEMORY}:"


@dataclass(slots=True)
class PromptLineage:
    """Inputs of one answer.

    Attributes:
        graphs: of what was delivered, the owner's memory first.
        query_graph: where the question was last looked up; used when nothing delivered is found.
        inferred: inputs known by their content only -> the operation that delivered them.
    """

    inputs: list[Variable | str] = field(default_factory=list)
    shown: list[Variable] = field(default_factory=list)
    inferred: dict[str, Origin | None] = field(default_factory=dict)
    roles: list[tuple[Variable | str, str]] = field(default_factory=list)
    graphs: tuple[str, ...] = ()
    query_graph: str = ""
    is_produced: Callable[[str], bool] = lambda _: False

    def use_context(self, text: str) -> bool:
        """Take a message in as the context that an operation was seen to assemble, if one was."""
        context = references.context(text)
        if self.is_produced(context.ref):
            self.inputs.append(context)
            return True
        return False

    def use(self, match: Match) -> None:
        """Take a recognised value in, once."""
        if match.ref not in self.inferred:
            self.inputs.append(match.ref)
            # Only a delivery is its own origin: others may have been remembered by a reader.
            self.inferred[match.ref] = match.origin if match.kind == "delivered" else None


def trace_prompt(
    prompt: Prompt,
    matches: Sequence[Match],
    *,
    trace_id: str = "",
    graph_id: str = "",
    is_produced: Callable[[str], bool] = lambda _: False,
) -> PromptLineage:
    """The lineage of ``prompt``, given the recently seen values that occur in it.

    Args:
        prompt: the request.
        matches: what :meth:`RecentValues.find` says of the texts of its messages.
        trace_id: of the answer; of equal texts, one delivered in this trace is preferred,
            then one of ``graph_id``, then the most recent.
        graph_id: of the answer, when the program declared it.
        is_produced: whether an operation of this process produced a reference.
    """
    known = _Known(matches, trace_id, graph_id)
    lineage = PromptLineage(is_produced=is_produced)
    question = prompt.question
    if question is not None:
        _take_question(lineage, prompt.messages[question], question, known)
    for match in known.delivered:
        lineage.use(match)
    for index in reversed(range(len(prompt.messages))):
        if index != question:
            _take_message(lineage, prompt.messages[index], index, known)
    lineage.graphs = _graphs(known.delivered, trace_id)
    return lineage


class _Known:
    """The matches by message, one per text unless several were delivered together."""

    def __init__(self, matches: Sequence[Match], trace_id: str, graph_id: str) -> None:
        def preference(match: Match) -> tuple[bool, bool, int]:
            elsewhere = match.origin is None or match.origin[0] != trace_id
            return elsewhere, match.graph_id != graph_id, match.age

        by_text: dict[tuple[Kind, str], list[Match]] = {}
        for match in matches:
            by_text.setdefault((match.kind, match.text), []).append(match)
        chosen: list[Match] = []
        for (kind, _), equal in by_text.items():
            best = min(equal, key=preference)
            together = [match for match in equal if match.origin == best.origin]
            chosen += together if kind == "delivered" else [best]
        self.delivered = [match for match in chosen if match.kind == "delivered"]
        texts = [match.text for match in self.delivered]
        self._whole: dict[tuple[int, Kind], Match] = {}
        self._inside: dict[int, list[Match]] = {}
        for match in chosen:
            for index in match.whole:
                self._whole.setdefault((index, match.kind), match)
            parts = set(match.indexes).difference(match.whole)
            # An answer that repeated a memory word for word stands wherever the memory does.
            repeats = match.kind in ("message", "answer")
            if parts and repeats and any(match.text in text for text in texts):
                continue
            for index in parts:
                self._inside.setdefault(index, []).append(match)

    def whole(self, index: int, *kinds: Kind) -> Match | None:
        """The value that this message is, the first kind first."""
        found = (self._whole.get((index, kind)) for kind in kinds)
        return next((match for match in found if match is not None), None)

    def inside(self, index: int) -> list[Match]:
        """The values that occur in this message, longest first."""
        return self._inside.get(index, [])


def _take_question(lineage: PromptLineage, message: Message, index: int, known: _Known) -> None:
    inside = known.inside(index)
    queries = [match for match in inside if match.kind == "query"]
    asked = known.whole(index, "query") or (queries[0] if queries else None)
    if asked is None:
        _take_new(lineage, references.query(message.text), USER)
    else:
        lineage.use(asked)
        lineage.query_graph = asked.graph_id
    ingested = known.whole(index, "message")
    if ingested is not None:
        lineage.use(ingested)
    _use_messages(lineage, inside, asked)
    if asked is not None and inside and not lineage.use_context(message.text):
        lineage.shown.append(references.context(message.text))


def _take_message(lineage: PromptLineage, message: Message, index: int, known: _Known) -> None:
    first: Kind = "answer" if message.role == ASSISTANT else "message"
    match = known.whole(index, first, "message", "query", "answer")
    if match is not None:
        lineage.use(match)
    elif known.whole(index, "delivered") is None:
        _take_unknown(lineage, message, known.inside(index))


def _take_unknown(lineage: PromptLineage, message: Message, inside: list[Match]) -> None:
    if message.role != ASSISTANT and lineage.use_context(message.text):
        return
    if message.role != ASSISTANT:
        _use_messages(lineage, inside)
        for match in [match for match in inside if match.kind == "query"][:1]:
            lineage.use(match)
        if _is_assembled(message, inside):
            lineage.shown.append(references.context(message.text))
            return
    make = references.prompt if message.role == SYSTEM else references.message
    _take_new(lineage, make(message.text), message.role)


def _take_new(lineage: PromptLineage, variable: Variable, role: str) -> None:
    lineage.inputs.append(variable)
    lineage.roles.append((variable, role))


def _use_messages(
    lineage: PromptLineage, inside: Sequence[Match], asked: Match | None = None
) -> None:
    """A transcript pasted into one message: the messages and answers that stand in it.

    An answer alone is no transcript: "I do not know" also stands in instructions.
    """
    said = any(match.kind in ("message", "query") and match is not asked for match in inside)
    for match in inside:
        if match.kind == "message" or (match.kind == "answer" and said):
            lineage.use(match)


def _is_assembled(message: Message, inside: list[Match]) -> bool:
    """Whether the message is a frame around known values, not something somebody said."""
    if message.role != USER or any(match.kind == "query" for match in inside):
        return bool(inside)
    return 2 * sum(len(match.text) for match in inside) >= len(normalise(message.text))


def _graphs(delivered: Sequence[Match], trace_id: str) -> tuple[str, ...]:
    """Graphs of the deliveries: this trace's before others, memories before documents, then in
    the order of delivery."""

    def order(match: Match) -> tuple[bool, bool, int]:
        elsewhere = match.origin is None or match.origin[0] != trace_id
        return elsewhere, not match.ref.startswith(_MEMORY_PREFIX), -match.age

    ordered = sorted(delivered, key=order)
    return tuple(dict.fromkeys(filter(None, map(attrgetter("graph_id"), ordered))))
