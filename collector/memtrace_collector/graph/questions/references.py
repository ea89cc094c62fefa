"""Who made a variable version, who used it, and everything that came of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Annotated

import msgspec

from memtrace_collector.errors import NotFoundError
from memtrace_collector.graph import impact as walk
from memtrace_collector.graph.facts import Operation
from memtrace_collector.graph.forward import occurrence_key
from memtrace_collector.graph.impact import Impact
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.questions.answered import Found, Paged, Texts, each
from memtrace_collector.graph.questions.arguments import AnyGraphId, Reference
from memtrace_collector.graph.questions.operations import operation_at
from memtrace_collector.graph.questions.shapes import (
    Json,
    check_reference,
    is_span,
    operation_json,
    parse_answer,
    span_json,
)
from memtrace_collector.graph.questions.suggest import known_graph
from memtrace_collector.graph.reader import GraphReader
from memtrace_collector.graph.resolution import Occurrence
from memtrace_otel import semconv, variables

MAX_GRAPHS = 1_000
"""Graphs looked into when none is named."""

_Keyed = Callable[[str, Collection[str]], dict[str, list[Operation]]]


class Producers(Paged, frozen=True, kw_only=True):
    """The operations that produced a reference (composite parents included), oldest first."""

    ref: Reference
    graph: AnyGraphId = ""


class Users(Paged, frozen=True, kw_only=True):
    """The operations that met a reference, oldest first, and as what: read as input, shown,
    returned by a search, cut, superseded, or the target of a decision."""

    ref: Reference
    graph: AnyGraphId = ""


class ImpactOf(Paged, frozen=True, kw_only=True):
    """Everything derived from something, oldest first: facts, records, prompts, answers, each
    with what it came from. With the memory records to correct or delete, the answers given from
    it, and how sure that is."""

    target: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=1_000,
            description="A reference (or a record), TRACE:SPAN of an operation, or a conversation.",
        ),
    ]


def producers(reader: GraphReader, ref: str, graph_id: str) -> Found[Operation]:
    """Who produced ``ref``, or any version of the record when it names none.

    Raises:
        WrongUseError: that is no reference.
        NotFoundError: no such graph.
    """
    read: _Keyed = reader.producers if "@" in ref else reader.record_writers
    return _met(reader, ref, graph_id, read, lambda item: {"outputs": list(_of(ref, item.outputs))})


def users(reader: GraphReader, ref: str, graph_id: str) -> Found[Operation]:
    """Who met ``ref``, or any version of the record when it names none, and as what; raises
    as :func:`producers`."""
    read: _Keyed = reader.users if "@" in ref else reader.record_users
    return _met(reader, ref, graph_id, read, lambda item: {"as": list(_roles(ref, item))})


def impact(reader: GraphReader, target: str, texts: Texts) -> Found[Occurrence]:
    """What is derived from a reference, a record, a span or a conversation.

    Raises:
        NotFoundError: nothing that was recorded comes from it.
    """
    lookups = Lookups(reader)
    found = impact_of(lookups, target)
    return Found(
        impact_json(target, found),
        "derived",
        found.derived,
        lambda run: _derived_json(lookups, found, run, texts),
    )


def impact_of(lookups: Lookups, target: str) -> Impact:
    """The walk behind :func:`impact`; raises as that."""
    start = start_of(lookups, target)
    if not start:
        raise NotFoundError(f"nothing that was recorded comes from {target!r}")
    return walk.impact(lookups, start)


def impact_json(target: str, found: Impact) -> Json:
    """What is said of everything derived. ``lost``: operations that never arrived and may have
    made more of it."""
    return {
        "target": target,
        "records": found.records,
        "answers": [span_json(key) for key in found.answers],
        "complete": found.complete,
        "lineage": found.lineage,
        "lost": found.lost,
    }


def start_of(lookups: Lookups, target: str) -> list[Occurrence]:
    """What a reference, a record, a span or a conversation names."""
    if target.partition(":")[0] in semconv.KINDS:
        return walk.occurrences_of(lookups, target)
    if is_span(target):
        found = operation_at(lookups.reader, parse_answer(target))
        return walk.outputs_of([found] if found else [])
    return walk.outputs_of(lookups.reader.conversation_operations(target))


def ask_producers(reader: GraphReader, given: Producers, _: Texts) -> Found[Operation]:
    return producers(reader, given.ref, given.graph)


def ask_users(reader: GraphReader, given: Users, _: Texts) -> Found[Operation]:
    return users(reader, given.ref, given.graph)


def ask_impact(reader: GraphReader, given: ImpactOf, texts: Texts) -> Found[Occurrence]:
    return impact(reader, given.target, texts)


def _met(
    reader: GraphReader,
    ref: str,
    graph_id: str,
    read: _Keyed,
    more: Callable[[Operation], Json],
) -> Found[Operation]:
    check_reference(ref if "@" in ref else f"{ref}@{semconv.UNKNOWN_VERSION}")
    if graph_id:
        known_graph(reader, graph_id)
    ids = [graph_id] if graph_id else [summary.graph_id for summary in reader.graphs()]
    looked_into = ids[:MAX_GRAPHS]
    found = [item for each_id in looked_into for item in read(each_id, [ref]).get(ref, ())]
    found.sort(key=lambda item: (item.start_ns, item.key))
    head: Json = {"ref": ref}
    if len(ids) > MAX_GRAPHS:
        head["graphs_left_out"] = len(ids) - MAX_GRAPHS
    return Found(head, "operations", found, each(lambda item: operation_json(item) | more(item)))


def _of(ref: str, refs: Sequence[str]) -> Iterator[str]:
    """Those of ``refs`` that ``ref`` means."""
    yield from (r for r in refs if r == ref or variables.record_of(r) == ref)


def _roles(ref: str, item: Operation) -> Iterator[Json]:
    parts = (
        ("input", item.inputs),
        ("shown", item.shown),
        ("superseded", item.supersedes),
        ("decided fact", [entry.fact for entry in item.decisions if entry.fact]),
        ("decision target", [entry.target for entry in item.decisions if entry.target]),
    )
    for part, refs in parts:
        yield from ({"part": part, "ref": met} for met in dict.fromkeys(_of(ref, list(refs))))
    for rank, met in enumerate(item.delivered, 1):
        if list(_of(ref, [met])):
            score = item.score_of(met)
            yield {"part": "delivered", "ref": met, "rank": rank, "score": score}
    for cut in item.dropped:
        if list(_of(ref, [cut.ref])):
            yield {"part": "dropped", **cut._asdict()}


def _derived_json(
    lookups: Lookups, found: Impact, run: Sequence[Occurrence], texts: Texts
) -> list[Json]:
    captured = walk.texts_of(lookups, run)
    return [
        {
            "kind": item.ref.partition(":")[0],
            "ref": item.ref,
            "graph_id": item.operation.graph_id,
            "operation": str(item.operation.key),
            "from": _before_json(found, item),
            "text": texts.one(captured.get(item.ref)),
        }
        for item in run
    ]


def _before_json(found: Impact, item: Occurrence) -> Json | None:
    before = found.before.get(occurrence_key(item))
    return None if before is None else {"ref": before.ref, "operation": str(before.user)}
