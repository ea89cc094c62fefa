"""The messages that bear on a question: those a flag names, else those a search finds."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import NamedTuple

from memtrace_collector.graph import content, terms
from memtrace_collector.graph.facts import Flag, Operation, OperationKey
from memtrace_collector.graph.history import current_at
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.resolution import Occurrence, innermost
from memtrace_otel import semconv, variables

FOUND_PER_GRAPH = 3
_MAX_SEARCHED_GRAPHS = 200
"""Graphs of other owners that are searched for what this owner's do not have."""
_MAX_EXPECTED_TERMS = 40
_STATED = 0.6
"""Share of a text's words that a message must have to state it."""
_MAX_FOREIGN_GRAPHS = 500
_MAX_READERS = 8
_MAX_RELATED = 2
_RECORD_KINDS = (semconv.KIND_MEMORY, semconv.KIND_DOCUMENT)
_SEARCHED_KINDS = (semconv.KIND_MESSAGE, semconv.KIND_DOCUMENT)


class Evidence(NamedTuple):
    """``foreign``: references found only in a graph this answer does not read."""

    refs: tuple[str, ...]
    occurrences: tuple[Occurrence, ...]
    foreign: dict[str, str]


def locate(
    lookups: Lookups, refs: Sequence[str], answer: Operation, graph_ids: Sequence[str]
) -> Evidence:
    """Where evidence that was named entered memory.

    A version that was not seen (``?``, another key, or left out) joins by its record.
    """
    found: dict[str, list[Occurrence]] = {}
    foreign: dict[str, str] = {}
    for ref in refs:
        for graph_id in graph_ids:
            occurrences = _occurrences(lookups, graph_id, ref, answer)
            if occurrences:
                found[ref] = occurrences
                break
    missing = [ref for ref in refs if ref not in found]
    if missing:
        for summary in lookups.reader.graphs()[:_MAX_FOREIGN_GRAPHS]:
            if summary.graph_id in graph_ids:
                continue
            for ref in missing:
                occurrences = _occurrences(lookups, summary.graph_id, ref, answer)
                if occurrences and ref not in found:
                    found[ref] = occurrences
                    foreign[occurrences[0].ref] = summary.graph_id
    resolved = tuple(found[ref][0].ref if ref in found else ref for ref in refs)
    occurrences_found = tuple(item for items in found.values() for item in items)
    return Evidence(tuple(dict.fromkeys(resolved)), occurrences_found, foreign)


def search(
    lookups: Lookups,
    text: str,
    answer: Operation,
    graph_ids: Sequence[str],
    ancestors: Container[OperationKey] = (),
) -> Evidence:
    """The best matching messages and documents that entered before the answer."""
    if not text.strip():
        return Evidence((), (), {})
    found: list[Occurrence] = []
    for graph_id in graph_ids:
        hits = lookups.reader.search_values(
            graph_id, text, _SEARCHED_KINDS, limit=FOUND_PER_GRAPH * 4
        )
        bearing = [
            occurrences[0]
            for hit in hits
            if (occurrences := _occurrences(lookups, graph_id, hit.ref, answer))
            and _bears(occurrences[0].operation, answer, ancestors)
        ]
        found.extend(bearing[:FOUND_PER_GRAPH])
    refs = tuple(dict.fromkeys(item.ref for item in found))
    return Evidence(refs, tuple(found), {})


def search_elsewhere(
    lookups: Lookups, wanted: Sequence[str], answer: Operation, graph_ids: Sequence[str],
    hits: Evidence,
) -> Evidence:  # fmt: skip
    """A message of this owner's conversations that only another graph of the tenant has and that
    states one of the ``wanted`` texts (the expected answer, the question).

    Looks into the graphs written last before the answer, and only when no hit states the first
    of them. Other owners may have said the same: of theirs only those count that the same process
    took in and whose declared ids continue the ids of this owner's messages (``conv-7/12``).
    """
    leads = [each for each in (terms.leads(text, _MAX_EXPECTED_TERMS) for text in wanted) if each]
    own = {_conversation(each) for each in hits.occurrences} - {("", "")}
    if not leads or not own or any(_states(lookups, each, leads[0]) for each in hits.occurrences):
        return Evidence((), (), {})
    strangers = [
        summary
        for summary in lookups.reader.graphs()
        if summary.graph_id not in graph_ids and summary.first_ns <= answer.end_ns
    ]
    strangers.sort(key=lambda summary: -min(summary.last_ns, answer.end_ns))
    for summary in strangers[:_MAX_SEARCHED_GRAPHS]:
        for hit in lookups.reader.search_values(
            summary.graph_id, "\n".join(wanted), (semconv.KIND_MESSAGE,), limit=FOUND_PER_GRAPH
        ):
            found = _occurrences(lookups, summary.graph_id, hit.ref, answer)[:1]
            if any(
                _conversation(each) in own and _states(lookups, each, lead)
                for each in found
                for lead in leads
            ):
                return Evidence((found[0].ref,), tuple(found), {found[0].ref: summary.graph_id})
    return Evidence((), (), {})


def with_elsewhere(
    lookups: Lookups, expected: str | None, asked: str, answer: Operation,
    graph_ids: Sequence[str], hits: Evidence,
) -> Evidence:  # fmt: skip
    """What a search found, with what :func:`search_elsewhere` adds when an answer was expected."""
    if not expected:
        return hits
    abroad = search_elsewhere(lookups, (expected, asked), answer, graph_ids, hits)
    return together(hits, abroad)


def together(one: Evidence, other: Evidence) -> Evidence:
    """What two searches found."""
    return Evidence(
        tuple(dict.fromkeys((*one.refs, *other.refs))),
        (*one.occurrences, *other.occurrences),
        {**one.foreign, **other.foreign},
    )


def _conversation(item: Occurrence) -> tuple[str, str]:
    """Who took a message in and what its declared id continues: a process and ``conv-7`` of
    ``msg:conv-7/12``; empty where either is not known."""
    sequence = item.operation.sequence
    if sequence is None or "/" not in item.ref:
        return "", ""
    return sequence.process, item.ref.partition(":")[2].partition("/")[0]


def _states(lookups: Lookups, item: Occurrence, expected: Sequence[str]) -> bool:
    values = lookups.reader.values(item.operation.graph_id, [item.ref])
    said = [terms.terms(content.plain_text(value)) for value in values.values()]
    words = {word for each in said for word in each}
    had = sum(any(word.startswith(lead) for word in words) for lead in expected)
    return had >= _STATED * len(expected)


def others(hits: Evidence, found: Evidence) -> Evidence:
    """Of what a search found the best that are not the evidence already, in order of time."""
    more = [item for item in hits.occurrences if item.ref not in found.refs][:_MAX_RELATED]
    more.sort(key=lambda item: (item.operation.start_ns, item.ref))
    return Evidence(tuple(dict.fromkeys(item.ref for item in more)), tuple(more), {})


def bearing_records(
    lookups: Lookups, text: str, graph_ids: Sequence[str], limit: int
) -> tuple[str, ...]:
    """The versions of records that best match a text, whoever wrote them."""
    return tuple(
        dict.fromkeys(
            value.ref
            for graph_id in graph_ids
            for value in lookups.reader.search_values(graph_id, text, _RECORD_KINDS, limit=limit)
        )
    )


def searched_for(asked: str, flag: Flag) -> str:
    """The question with the expected answer: what to search for."""
    # twice: the answer's words tell its message better than the question's do
    return "\n".join([asked, *[flag.expected or ""] * 2])


def question_text(lookups: Lookups, operations: Sequence[Operation]) -> str:
    """The question as asked, and as it was rewritten."""
    parts: dict[str, None] = {}
    for operation in operations:
        refs = [
            ref
            for ref in (*operation.inputs, *operation.outputs)
            if ref.startswith(f"{semconv.KIND_QUERY}:")
        ]
        values = lookups.reader.values(operation.graph_id, refs) if refs else {}
        for value in values.values():
            parts[content.plain_text(value)] = None
    return "\n".join(parts)


def _bears(operation: Operation, answer: Operation, ancestors: Container[OperationKey]) -> bool:
    """Entered in an earlier turn (a message of the answer's own trace is its question), by
    the clock or because the answer came from it."""
    if operation.trace_id == answer.trace_id:
        return False
    return operation.key in ancestors or operation.start_ns <= answer.end_ns


def _occurrences(lookups: Lookups, graph_id: str, ref: str, answer: Operation) -> list[Occurrence]:
    exact = lookups.producers(graph_id, [ref]).get(ref)
    if exact:
        return [Occurrence(ref, item) for item in innermost(lookups, exact)]
    record = variables.record_of(ref)
    writes = lookups.history(graph_id, record)
    if not writes:
        return _first_readers(lookups, graph_id, ref)
    for write in writes:
        if ref in (*write.operation.supersedes, *write.operation.inputs):
            return [Occurrence(ref, write.operation)]
    write = current_at(writes, answer.end_ns) or writes[0]
    return [Occurrence(write.version, write.operation)]


def _first_readers(lookups: Lookups, graph_id: str, ref: str) -> list[Occurrence]:
    """Who read what nobody was seen to take in: the nearest to its entry that is known.

    A version that the asker did not know (``?``) is any that was read of the record.
    """
    record = variables.record_of(ref)
    any_version = variables.version_of(ref) == semconv.UNKNOWN_VERSION
    readers = [
        (version, item)
        for item in lookups.record_users(graph_id, [record]).get(record, ())
        for version in item.inputs
        if version == ref or (any_version and variables.record_of(version) == record)
    ]
    readers.sort(key=lambda reader: (reader[1].start_ns, reader[1].span_id))
    versions = {item.key: version for version, item in readers[:_MAX_READERS]}
    known = innermost(lookups, [item for _, item in readers[:_MAX_READERS]])
    return [Occurrence(versions[item.key], item) for item in known]
