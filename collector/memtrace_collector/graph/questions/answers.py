"""Answers: which were flagged, and what each rests on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from memtrace_collector.errors import NotFoundError, WrongUseError
from memtrace_collector.graph import flags
from memtrace_collector.graph.ancestry import ancestry as walk_back
from memtrace_collector.graph.case import Case
from memtrace_collector.graph.facts import Flag, Operation
from memtrace_collector.graph.flags import Flagged
from memtrace_collector.graph.loader import load_case
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.questions.answered import Found, Paged, Texts, each
from memtrace_collector.graph.questions.arguments import Answer, AnyGraphId
from memtrace_collector.graph.questions.shapes import (
    Json,
    operation_json,
    parse_answer,
    span_json,
    time_json,
)
from memtrace_collector.graph.questions.suggest import known_graph
from memtrace_collector.graph.reader import GraphReader


class Answers(Paged, frozen=True, kw_only=True):
    """The flagged answers (somebody said that they are wrong), newest first: when, in which
    graph, and what was expected, with which evidence and reason. Or every answer of one graph."""

    graph: AnyGraphId = ""
    flagged: Annotated[
        bool, msgspec.Meta(description="False: all answers of the graph, flagged or not.")
    ] = True


class Ancestry(Paged, frozen=True, kw_only=True):
    """The operations that an answer rests on, oldest first: everything that produced,
    delivered or decided what it used, back to the messages, through all traces."""

    answer: Answer


def answers(
    reader: GraphReader, graph_id: str, texts: Texts, *, flagged: bool = True
) -> Found[Flagged]:
    """The flagged answers that have arrived, newest first; or all answers of a graph.

    Raises:
        NotFoundError: no such graph.
        WrongUseError: all answers of all graphs were asked for.
    """
    if graph_id:
        known_graph(reader, graph_id)
    elif not flagged:
        raise WrongUseError("all answers are listed of one graph: give `graph`")
    found = [
        item
        for item in reversed(flags.flagged_answers(reader))
        if graph_id in ("", item.answer.graph_id)
    ]
    if not flagged:
        found = _all_answers(reader, graph_id, found)
    return Found({}, "answers", found, each(lambda item: _flagged_json(item, texts)))


def ancestry(reader: GraphReader, answer: str) -> Found[Operation]:
    """What ``TRACE[:SPAN]`` rests on, oldest first.

    Raises:
        WrongUseError: it is not written like that.
        NotFoundError: no answer is known there.
    """
    operation = answer_at(reader, answer)
    found = walk_back(Lookups(reader), operation)
    ordered = sorted(found.operations.values(), key=lambda item: (item.start_ns, item.key))
    head = {
        "answer": span_json(operation.key),
        "graph_id": operation.graph_id,
        "lineage": found.status,
        "missing": list(found.missing),
        "truncated": found.truncated,
    }
    return Found(head, "operations", ordered, each(operation_json))


def answer_at(reader: GraphReader, text: str) -> Operation:
    """The answer that ``TRACE[:SPAN]`` means.

    Raises:
        WrongUseError: it is not written like that.
        NotFoundError: no answer is known there.
    """
    key = parse_answer(text)
    operation = flags.resolve(reader, Flag(trace_id=key.trace_id, span_id=key.span_id))
    if operation is None:
        held = len(reader.trace_operations(key.trace_id))
        known = f"; {held} other operations of that trace are known" if held else ""
        raise NotFoundError(f"no answer is known at {text} or below it{known}")
    return operation


def case_of(reader: GraphReader, text: str) -> Case:
    """The case of the answer that ``TRACE[:SPAN]`` means; raises as :func:`answer_at`."""
    return case_at(reader, answer_at(reader, text))


def case_at(reader: GraphReader, answer: Operation) -> Case:
    """The case of an answer, flagged or not."""
    flag = flags.flag_of(reader, answer) or Flag(
        graph_id=answer.graph_id, trace_id=answer.trace_id, span_id=answer.span_id
    )
    return load_case(reader, answer, flag)


def ask_answers(reader: GraphReader, given: Answers, texts: Texts) -> Found[Flagged]:
    return answers(reader, given.graph, texts, flagged=given.flagged)


def ask_ancestry(reader: GraphReader, given: Ancestry, _: Texts) -> Found[Operation]:
    return ancestry(reader, given.answer)


def _all_answers(reader: GraphReader, graph_id: str, flagged: Sequence[Flagged]) -> list[Flagged]:
    by_key = {item.answer.key: item for item in flagged}
    given = (item for item in reader.all_operations(graph_id) if flags.is_answer(item))
    found = [by_key.get(item.key) or Flagged(item, Flag()) for item in given]
    return found[::-1]


def _flagged_json(item: Flagged, texts: Texts) -> Json:
    flag = item.flag
    return {
        "answer": span_json(item.answer.key),
        "graph_id": item.answer.graph_id,
        "service": item.answer.service,
        "time": time_json(item.answer.start_ns),
        "flagged": time_json(flag.at_ns) if flag.origin else None,
        "source": flag.source,
        "expected": texts.one(flag.expected),
        "evidence": list(flag.evidence),
        "reason": texts.one(flag.reason or None),
    }
