"""What there is to draw of an answer: its ancestry, or its case."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from memtrace_collector.api.explorer.elements import Counts, everything_counts
from memtrace_collector.graph import content
from memtrace_collector.graph.ancestry import ancestry, merge_parents, parents_of
from memtrace_collector.graph.facts import Operation, OperationKey
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.questions.answers import case_of
from memtrace_collector.graph.questions.operations import operation_at, values_of
from memtrace_collector.graph.questions.shapes import is_span, parse_answer
from memtrace_collector.graph.reader import GraphReader
from memtrace_otel import variables

ANCESTRY, CASE = "ancestry", "case"


@dataclass(frozen=True, slots=True)
class Scene:
    """``texts`` gives the captured texts of references, as far as they are known."""

    operations: Mapping[OperationKey, Operation]
    parents: Mapping[OperationKey, tuple[OperationKey, ...]]
    lineage: str
    missing: tuple[str, ...]
    texts: Callable[[Collection[str]], Mapping[str, str]]
    counts: Counts = everything_counts


def scene(reader: GraphReader, answer: Operation, of: str, named: Collection[str]) -> Scene:
    """``named``: nodes that are drawn at any rate, also where the answer does not rest on them."""
    return _of_case(reader, answer) if of == CASE else _of_ancestry(reader, answer, named)


def _of_case(reader: GraphReader, answer: Operation) -> Scene:
    case = case_of(reader, str(answer.key))

    def counts(key: OperationKey, ref: str) -> bool:
        return key not in case.met or variables.record_of(ref) in case.histories

    def texts(refs: Collection[str]) -> Mapping[str, str]:
        return {ref: case.texts[ref] for ref in refs if ref in case.texts}

    return Scene(case.operations, case.parents, case.lineage, (), texts, counts)


def _of_ancestry(reader: GraphReader, answer: Operation, named: Collection[str]) -> Scene:
    lookups = Lookups(reader)
    back = ancestry(lookups, answer)
    keys = {parse_answer(node) for node in named if is_span(node)} - back.operations.keys()
    others = [item for key in sorted(keys) if (item := operation_at(reader, key)) is not None]
    parents = parents_of(lookups, others)
    made_for_them = {key: lookups.known(key) for found in parents.values() for key in found}
    operations = {**back.operations, **made_for_them, **{item.key: item for item in others}}
    graph_ids = list(dict.fromkeys(item.graph_id for item in operations.values()))

    def texts(refs: Collection[str]) -> Mapping[str, str]:
        values = values_of(reader, graph_ids, refs)
        quoted = {ref for value in values.values() for ref in content.references(value)}
        known = {**values_of(reader, graph_ids, quoted - values.keys()), **values}
        return {ref: content.expand(value, known) for ref, value in values.items()}

    return Scene(operations, merge_parents(back.parents, parents), back.status, back.missing, texts)
