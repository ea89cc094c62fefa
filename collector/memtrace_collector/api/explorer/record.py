"""A record's life: its versions, who read them, which answers had them, what is wrong with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from memtrace_collector.api.explorer.judged import (
    FAILED,
    MAX_JUDGED,
    Judgement,
    answers_json,
    judgements,
)
from memtrace_collector.api.explorer.parts import part
from memtrace_collector.api.explorer.record_versions import Versions, decisive_keys
from memtrace_collector.api.explorer.timeline import timeline
from memtrace_collector.api.explorer.view import Parameters, needed
from memtrace_collector.api.exploring import Stores
from memtrace_collector.api.questions import Json
from memtrace_collector.graph import invariants
from memtrace_collector.graph.case import Write
from memtrace_collector.graph.facts import Operation, OperationKey
from memtrace_collector.graph.history import is_deleted
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.questions.shapes import span_json, span_key
from memtrace_collector.graph.questions.suggest import known_graph, no_such_record
from memtrace_collector.graph.reached import AnsweredWith, answers_with
from memtrace_collector.graph.reader import Near
from memtrace_collector.graph.readings import Places, Reading, by_write, met_by, readings
from memtrace_otel import semconv, variables

VERSIONS, READS, ANSWERS = 20, 15, 15
"""Of a page of each list."""
MET_FIRST, MET_LAST = 1_000, 30_000
"""Of the operations that merely met the record, those that are looked at."""
_ALL_TIME_NS = 2**62
MAX_VERDICT_GRAPHS = 50
"""Graphs whose verdicts are looked through for the record."""
MAX_CHECKED = 1_000
"""Of the operations that met the record, the last that are looked at for broken invariants."""
MAX_FINDINGS = 50
WRONG, NEEDED = "wrong", "needed"
_WRITTEN = frozenset(("update", "deletion"))
"""Stages at which a record that was right was made wrong."""


class _Role(NamedTuple):
    """What the record was to the failure of an answer of ``graph_id``: it carried what was
    ``wrong``, or held what was ``needed``."""

    name: str
    graph_id: str


def record(stores: Stores, parameters: Parameters) -> Json:
    """Everything about one record.

    Parameters: ``graph``, ``record`` (``kind:id``, or a reference to one of its versions, whose
    page is shown then), ``versions``, ``reads``, ``answers`` (places of the first item of the
    page of each list, from 0).

    Returns:
        ``record``, ``kind``, ``system``, ``current`` (number, reference, time, is it deleted),
        ``asked`` (number of the version that was asked for, or None), ``timeline``,
        ``versions`` (oldest first), ``reads`` (newest first), ``answers`` (failures first, then
        newest first; those that the record broke without being in them included), ``invariants``,
        ``checked`` and ``met`` (how many operations those rest on, of how many), ``is_all``
        (False: of those that met it only the first and the last were looked at).

    Raises:
        WrongUseError: a parameter is missing or malformed.
        NotFoundError: no such graph, or nobody was seen to write the record.
    """
    graph_id, given = needed(parameters, "graph"), needed(parameters, "record")
    known_graph(stores.graphs, graph_id)
    name = variables.record_of(given) if "@" in given else given
    lookups = Lookups(stores.graphs, Near(_ALL_TIME_NS, MET_FIRST, MET_LAST, 0))
    writes = lookups.history(graph_id, name)
    if not writes:
        raise no_such_record(stores.graphs, graph_id, name)
    met = met_by(lookups, graph_id, name)
    found = readings(name, met)
    used = answers_with(lookups, name, met)
    findings = invariants.of_record(lookups, graph_id, name, met[-MAX_CHECKED:])
    graph_ids = dict.fromkeys([graph_id, *(item.answer.graph_id for item in reversed(used))])
    verdicts = _verdicts_about(stores, list(graph_ids), name, writes)
    places = Places(writes)
    had = {item.answer.key: _had(places, item) for item in used}
    shown = Versions(
        lookups=lookups,
        graph_id=graph_id,
        record=name,
        writes=writes,
        reads=[sum(not item.reason for item in group) for group in by_write(writes, found)],
        answers=_answers_by_write(had.values(), len(writes)),
        flapped=frozenset(item.operation for item in findings if item.kind == invariants.FLAPPING),
        verdicts=verdicts,
    )
    asked = _asked(writes, given)
    known = {item.key: item for item in (*met, *(write.operation for write in writes))}
    return {
        "graph_id": graph_id,
        "record": name,
        "kind": name.partition(":")[0],
        "system": writes[-1].operation.system,
        "current": _current(writes),
        "asked": asked,
        "timeline": timeline(_lanes(writes, found, used)),
        "versions": _versions(shown, parameters, asked),
        "reads": _reads(lookups, found, places, parameters),
        "answers": _answers(stores, used, had, _roles(verdicts, writes), parameters),
        **_looked_at(findings, known, len(met)),
    }


def _looked_at(
    findings: Sequence[invariants.Finding], known: Mapping[OperationKey, Operation], met: int
) -> Json:
    """What is wrong with the record, and on how many operations that rests."""
    return {
        "invariants": [_finding(item, known) for item in findings[-MAX_FINDINGS:]],
        "invariants_left_out": max(0, len(findings) - MAX_FINDINGS),
        "checked": min(met, MAX_CHECKED),
        "met": met,
        "is_all": met < MET_FIRST + MET_LAST,
    }


def _answers_by_write(had: Iterable[Sequence[int]], writes: int) -> list[int]:
    """How many answers had the version of each write."""
    in_answers = Counter(place for each in had for place in each)
    return [in_answers[place] for place in range(writes)]


def _asked(writes: Sequence[Write], given: str) -> int | None:
    numbers = [number for number, write in enumerate(writes, 1) if write.version == given]
    return numbers[-1] if numbers else None


def _current(writes: Sequence[Write]) -> Json:
    last = writes[-1]
    return {
        "number": len(writes),
        "ref": last.version,
        "time_ns": last.operation.start_ns,
        "is_deleted": is_deleted(last.version),
    }


def _lanes(
    writes: Sequence[Write], found: Sequence[Reading], used: Sequence[AnsweredWith]
) -> Mapping[str, Sequence[int]]:
    gone = [write.operation.start_ns for write in writes if is_deleted(write.version)]
    return {
        "written": [w.operation.start_ns for w in writes if not is_deleted(w.version)],
        "deleted": gone,
        "delivered": [item.operation.start_ns for item in found if not item.reason],
        "cut": [item.operation.start_ns for item in found if item.reason],
        "answered": [item.answer.start_ns for item in used],
    }


def _versions(shown: Versions, parameters: Parameters, asked: int | None) -> Json:
    if asked and "versions" not in parameters:
        parameters = {**parameters, "versions": str((asked - 1) // VERSIONS * VERSIONS)}
    page = part(parameters, "versions", len(shown.writes), VERSIONS)
    return page.json(shown.json(page.start, page.size))


def _reads(
    lookups: Lookups, found: Sequence[Reading], places: Places, parameters: Parameters
) -> Json:
    page = part(parameters, "reads", len(found), READS)
    shown = page.of(found[::-1])
    lookups.read_traces([item.operation for item in shown])
    return page.json([_read(lookups, item, places) for item in shown])


def _had(places: Places, item: AnsweredWith) -> list[int]:
    """The places of the versions that an answer had."""
    found = (places.at(ref, item.answer.start_ns) for ref in item.refs)
    return sorted(place for place in found if place is not None)


def _read(lookups: Lookups, item: Reading, places: Places) -> Json:
    operation = item.operation
    place = places.at(item.ref, operation.start_ns)
    around = lookups.tree(operation.trace_id).enclosing(operation)
    return {
        "ref": item.ref,
        "number": None if place is None else place + 1,
        "rank": item.rank,
        "of": len(operation.delivered),
        "score": item.score,
        "score_kind": operation.score_kind,
        "reason": item.reason,
        "span": span_json(operation.key),
        "graph_id": operation.graph_id,
        "name": operation.name,
        "step": operation.step,
        "is_for_writing": any(each.step == semconv.STEP_ADD for each in around),
        "service": operation.service,
        "time_ns": operation.start_ns,
    }


def _answers(
    stores: Stores,
    used: Sequence[AnsweredWith],
    had: Mapping[OperationKey, Sequence[int]],
    roles: Mapping[OperationKey, _Role],
    parameters: Parameters,
) -> Json:
    """The blast radius: answers that had the record, and answers whose verdicts name it."""
    newest = [item.answer for item in reversed(used)]
    without = _answers_of(stores, {key: role for key, role in roles.items() if key not in had})
    judged = judgements(stores, [*without, *newest])
    everything = sorted([*without, *newest], key=lambda each: _importance(judged.get(each.key)))
    page = part(parameters, "answers", len(everything), ANSWERS)
    shown = page.of(everything)
    items = [
        item
        | {"had": [place + 1 for place in had.get(each.key, ())]}
        | {"is_without": each.key not in had}
        | {"role": roles[each.key].name if each.key in roles else None}
        for each, item in zip(shown, answers_json(stores.graphs, shown, judged))
    ]
    return {
        **page.json(items),
        "failed": sum(each.outcome == FAILED for each in judged.values()),
        "unlooked": max(0, len(everything) - MAX_JUDGED),
    }


def _roles(
    verdicts: Sequence[Mapping[str, Any]], writes: Sequence[Write]
) -> dict[OperationKey, _Role]:
    """By the answer of each verdict, what the record was to its failure."""
    record_name = variables.record_of(writes[0].version)
    wrote = {write.operation.key for write in writes}
    roles = {}
    for verdict in verdicts:
        carried = (
            ("first_wrong", "last_right") if verdict["stage"] in _WRITTEN else ("first_wrong",)
        )
        is_wrong = wrote.intersection(decisive_keys(verdict)) or (
            record_name in _carriers(verdict, *carried)
        )
        roles[span_key(verdict["answer"])] = _Role(
            WRONG if is_wrong else NEEDED, str(verdict["graph_id"])
        )
    return roles


def _importance(judgement: Judgement | None) -> int:
    return 0 if judgement is not None and judgement.outcome == FAILED else 1


def _answers_of(stores: Stores, roles: Mapping[OperationKey, _Role]) -> list[Operation]:
    """The answers of verdicts, as far as they are stored."""
    by_graph: dict[str, list[OperationKey]] = {}
    for key, role in roles.items():
        by_graph.setdefault(role.graph_id, []).append(key)
    found = (stores.graphs.operations(graph_id, each) for graph_id, each in by_graph.items())
    return [operation for each in found for operation in each.values()]


def _verdicts_about(
    stores: Stores, graph_ids: Sequence[str], name: str, writes: Sequence[Write]
) -> list[Mapping[str, Any]]:
    """Verdicts of these graphs that find a write of the record decisive, or say that it was the
    last right or the first wrong carrier."""
    keys = {write.operation.key for write in writes}
    return [
        verdict
        for graph_id in graph_ids[:MAX_VERDICT_GRAPHS]
        for verdict in stores.cases.verdicts(graph_id)
        if keys.intersection(decisive_keys(verdict))
        or name in _carriers(verdict, "last_right", "first_wrong")
    ]


def _carriers(verdict: Mapping[str, Any], *names: str) -> set[str]:
    """The records whose versions a verdict names so."""
    refs = [verdict.get(name) for name in names]
    stored = (f"{semconv.KIND_MEMORY}:", f"{semconv.KIND_DOCUMENT}:")
    return {variables.record_of(r) for r in refs if isinstance(r, str) and r.startswith(stored)}


def _finding(item: invariants.Finding, known: Mapping[OperationKey, Operation]) -> Json:
    operation = known.get(item.operation)
    return {
        "name": operation.name if operation else "",
        "service": operation.service if operation else "",
        "kind": item.kind,
        "graph_id": item.graph_id,
        "span": span_json(item.operation),
        "ref": item.ref,
        "says": item.says,
    }
