"""Recorded cases -> scored rows: loads each case from its store and attributes it."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from memtrace_collector.attribution.attribute import attribute
from memtrace_collector.attribution.verdict import Decisive, Verdict
from memtrace_collector.bench import baselines, variants
from memtrace_collector.bench.folder import Unit
from memtrace_collector.bench.planned import Outcome
from memtrace_collector.bench.score import Judgement, Named, Reading, Row, Truth, mark
from memtrace_collector.bench.variants import Variant
from memtrace_collector.graph.case import Case
from memtrace_collector.graph.facts import Flag, Operation, OperationKey
from memtrace_collector.graph.flags import flagged_answers
from memtrace_collector.graph.loader import load_case
from memtrace_collector.graph.reader import GraphReader
from memtrace_collector.processor.projector import Projector
from memtrace_collector.processor.reading import RecordReader
from memtrace_collector.store.base import FactStore
from memtrace_collector.store.sqlite_facts import SqliteFactStore
from memtrace_otel import semconv, variables

CHUNK_CASES = 40
_CACHE_KIB = 32 * 1024

Progress = Callable[[int, int], object]
"""Cases judged so far, and of how many."""


def silent(*_: object) -> None:
    """Progress that nobody watches."""


class Asked(NamedTuple):
    """A case that counts, as it stands in the recorded traces."""

    outcome: Outcome
    answer: OperationKey
    flag: Flag
    truth: Truth
    source: str


@dataclass(frozen=True, slots=True)
class Collected:
    """The cases of one unit, and what was wrong with the others.

    ``problems``: one line per case whose record does not hold what its outcome says.
    """

    unit: Unit
    asked: tuple[Asked, ...]
    not_counted: tuple[Outcome, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Task:
    """Cases to judge in variants that share a store; ``unit`` names where it is recorded."""

    unit: Unit
    variants: tuple[Variant, ...]
    asked: tuple[Asked, ...]
    spared: frozenset[OperationKey]


def facts_path(unit: Unit) -> Path:
    return unit.traces / "facts.db"


def log_folder(unit: Unit) -> Path:
    return unit.traces / "log"


def project(unit: Unit) -> None:
    """Bring the unit's store up to its log. What was projected stays: remove ``facts.db`` to have
    it made anew by another version of the dialects.
    """
    with closing(_opened(facts_path(unit))) as store:
        Projector(log_folder(unit), store, RecordReader()).run_once()


def collect(unit: Unit, sources: Mapping[str, str], only: str = "") -> Collected:
    """The unit's cases with their flags, once its store is up to date.

    Args:
        sources: dialogue -> data set.
        only: the id of the one case that is wanted; empty: all.
    """
    asked: list[Asked] = []
    rest: list[Outcome] = []
    problems: list[str] = []
    with closing(_opened(facts_path(unit))) as store:
        flags = {found.answer.key: found.flag for found in flagged_answers(store)}
        for outcome in unit.outcomes():
            if only and outcome.case.id != only:
                continue
            if not outcome.counts:
                rest.append(outcome)
                continue
            key = OperationKey(outcome.trace_id, outcome.span_id)
            answer = _operation(store, key)
            if answer is None:
                problems.append(f"{outcome.case.id}: the answer {key} was not recorded")
                continue
            truth, missing = _truth(store, outcome)
            problems += (f"{outcome.case.id}: {each}" for each in missing)
            if not truth.decisive:
                continue
            flag = flags.get(key) or _flag(outcome)
            source = sources.get(outcome.case.dialogue, "")
            asked.append(Asked(outcome, key, flag, truth, source))
    return Collected(unit, tuple(asked), tuple(rest), tuple(problems))


def judge_all(
    collected: Sequence[Collected],
    wanted: Sequence[Variant],
    *,
    processes: int = 0,
    progress: Progress = silent,
) -> list[Row]:
    """Judge every case in every variant.

    Args:
        processes: how many at once; 0: one per processor; 1: in this process.

    Returns:
        Rows by variant, unit and case, whatever the number of processes.
    """
    tasks = list(_tasks(collected, wanted))
    total = sum(len(task.asked) * len(task.variants) for task in tasks)
    found: list[list[Row]] = [[] for _ in tasks]
    done = 0
    for number, rows in _run(tasks, processes or os.cpu_count() or 1):
        found[number] = rows
        done += len(rows)
        progress(done, total)
    order = {(variant.name, variant.seed): place for place, variant in enumerate(wanted)}
    rows = [row for part in found for row in part]
    return sorted(rows, key=lambda row: (order[row.variant, row.seed], row.system, row.case))


def judge_case(store: GraphReader, asked: Asked, variant: Variant) -> tuple[Case, Verdict]:
    """Load one case in one variant and attribute it."""
    case = _load(store, asked, variant)
    return case, attribute(case)


def _load(store: GraphReader, asked: Asked, variant: Variant) -> Case:
    answer = _operation(store, asked.answer)
    if answer is None:
        raise LookupError(f"the answer {asked.answer} is not in the store")
    flag = variants.flag_in(variant, asked.flag)
    return load_case(store, answer, flag, evidence_given=variant.evidence)


def _tasks(collected: Sequence[Collected], wanted: Sequence[Variant]) -> Iterator[_Task]:
    sharing: dict[object, list[Variant]] = defaultdict(list)
    for variant in wanted:
        sharing[variant.damage].append(variant)
    for unit in collected:
        spared = frozenset(asked.answer for asked in unit.asked)
        for group in sharing.values():
            # a store that was built for it takes all cases; the recorded one is open to many
            size = CHUNK_CASES if group[0].as_recorded else max(1, len(unit.asked))
            for first in range(0, len(unit.asked), size):
                part = unit.asked[first : first + size]
                yield _Task(unit.unit, tuple(group), part, spared)


def _run(tasks: Sequence[_Task], processes: int) -> Iterator[tuple[int, list[Row]]]:
    if processes == 1 or len(tasks) < 2:
        yield from ((number, _judge(task)) for number, task in enumerate(tasks))
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(processes, len(tasks)), mp_context=context) as pool:
        futures: dict[Future[list[Row]], int] = {
            pool.submit(_judge, task): number for number, task in enumerate(tasks)
        }
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _judge(task: _Task) -> list[Row]:
    if task.variants[0].as_recorded:
        with closing(_opened(facts_path(task.unit))) as store:
            return _rows(store, task)
    with tempfile.TemporaryDirectory(prefix="memtrace-bench-") as folder:
        path = Path(folder) / "facts.db"
        variants.build(task.variants[0], log_folder(task.unit), path, task.spared)
        with closing(_opened(path)) as store:
            return _rows(store, task)


def _rows(store: FactStore, task: _Task) -> list[Row]:
    return [
        _row(store, asked, variant)
        for variant in task.variants
        for asked in task.asked
        if variants.applies(variant, {each.error_type for each in asked.truth.decisive})
    ]


def _row(store: GraphReader, asked: Asked, variant: Variant) -> Row:
    started = time.perf_counter()
    loaded = started
    guesses: dict[str, Named] = {}
    try:
        case = _load(store, asked, variant)
        loaded = time.perf_counter()
        judgement = judgement_of(attribute(case), case)
        ended = time.perf_counter()
        if variant == variants.GIVEN:
            guesses = baselines.guesses(case)
    except Exception as error:  # one case that cannot be judged must not end the benchmark
        ended = time.perf_counter()
        reason = f"{type(error).__name__}: {error}"
        judgement = Judgement(error_type="insufficient_evidence", failed=reason)
    planned = asked.outcome.case
    return Row(
        case=planned.id,
        system=planned.system,
        dialogue=planned.dialogue,
        source=asked.source,
        category=planned.question.category,
        kinds=tuple(planting.kind for planting in planned.plantings),
        held_out=planned.held_out,
        variant=variant.name,
        seed=variant.seed,
        truth=asked.truth,
        judgement=judgement,
        marks=mark(asked.truth, judgement),
        load_ms=round((loaded - started) * 1e3, 3),
        attribute_ms=round((ended - loaded) * 1e3, 3),
        guesses=guesses,
    )


def judgement_of(verdict: Verdict, case: Case) -> Judgement:
    """The part of a verdict that is scored."""

    def named(each: Decisive) -> Named:
        operation = case.operations.get(each.operation)
        return Named(each.error_type, *each.operation, operation.step if operation else "")

    return Judgement(
        error_type=verdict.error_type,
        decisive=tuple(map(named, verdict.decisive)),
        also=tuple(map(named, verdict.also)),
        alternatives=tuple(
            Reading(other.error_type, tuple(map(named, other.decisive)))
            for other in verdict.alternatives
        ),
        score=verdict.score,
        basis=verdict.basis,
        absence=verdict.absence,
        lineage=verdict.lineage,
        missing=verdict.missing,
        explanation=verdict.explanation,
    )


def _truth(store: GraphReader, outcome: Outcome) -> tuple[Truth, list[str]]:
    """The truth with the steps of its operations, and what the record lacks of it."""
    problems: list[str] = []
    found: dict[str, list[Named]] = {"decisive": [], "also": []}
    for truth in outcome.truths:
        key = OperationKey(truth.trace_id, truth.span_id)
        operation = _operation(store, key) if truth.span_id else None
        if truth.span_id and operation is None:
            problems.append(f"the operation {key} of {truth.kind} was not recorded")
        step = operation.step if operation else ""
        named = Named(truth.error_type, truth.trace_id, truth.span_id, step)
        found.setdefault(truth.role, []).append(named)
    if not found["decisive"]:
        problems.append("no truth is decisive")
    return Truth(decisive=tuple(found["decisive"]), also=tuple(found["also"])), problems


def _flag(outcome: Outcome) -> Flag:
    """What an outcome itself says against its answer, where nothing was recorded."""
    evidence = (
        str(variables.VariableRef(semconv.KIND_MESSAGE, name, semconv.UNKNOWN_VERSION))
        for name in outcome.case.question.evidence
    )
    return Flag(
        graph_id=outcome.graph_id,
        trace_id=outcome.trace_id,
        span_id=outcome.span_id,
        expected=outcome.expected,
        evidence=tuple(evidence),
        source=outcome.flag_source,
        origin=f"{outcome.trace_id}:{outcome.span_id}",
    )


def _operation(store: GraphReader, key: OperationKey) -> Operation | None:
    found: Iterable[Operation] = store.trace_operations(key.trace_id)
    return next((item for item in found if item.span_id == key.span_id), None)


def _opened(path: Path) -> SqliteFactStore:
    return SqliteFactStore(path, cache_kib=_CACHE_KIB)
