"""What is counted of verdicts that a worker stores, over the contract's vectors."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memtrace_collector.attribution.attribute import attribute
from memtrace_collector.attribution.verdict import Verdict
from memtrace_collector.attribution.work.worker import Worker
from memtrace_collector.graph.case import Case
from memtrace_collector.store.in_memory import InMemoryFactStore
from memtrace_collector.store.sqlite_cases import SqliteCaseStore
from memtrace_collector.telemetry.catalog import METRICS
from memtrace_collector.telemetry.metrics import Exemplar, NullMetrics
from tests.contract import scenarios

NAMES = ("overwritten", "omission", "stale_retrieved", "lost_span")


class Told(NullMetrics):
    """What was counted and recorded, by name and attributes, and with which exemplars."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, ...]] = Counter()
        self.values: list[tuple[str, float]] = []
        self.exemplars: dict[str, set[str]] = {}

    def add(
        self, name: str, value: float, exemplar: Exemplar | None = None, /, **attributes: str
    ) -> None:
        ordered = (attributes[each] for each in METRICS[name].attributes)
        self.counts[(name.removeprefix("memtrace."), *ordered)] += value
        self._keep(name, exemplar)

    def record(
        self, name: str, value: float, exemplar: Exemplar | None = None, /, **attributes: str
    ) -> None:
        self.values.append((attributes["stage"], value))
        self._keep(name, exemplar)

    def _keep(self, name: str, exemplar: Exemplar | None) -> None:
        if exemplar is not None:
            self.exemplars.setdefault(name, set()).add(exemplar.trace_id)


@pytest.fixture
def cases(tmp_path: Path) -> Iterator[SqliteCaseStore]:
    with closing(SqliteCaseStore(tmp_path / "cases.db")) as store:
        yield store


def failures() -> InMemoryFactStore:
    return InMemoryFactStore.of(each for name in NAMES for each in scenarios.facts(name))


def test_each_stored_verdict_is_counted_once_with_its_case_trace(cases: SqliteCaseStore) -> None:
    told = Told()
    worker = Worker(failures(), cases, metrics=told)
    verdicts = worker.run_once()
    worker.run_once()
    assert len(verdicts) == len(NAMES)
    stored = {key[1:]: count for key, count in told.counts.items() if key[0] == "verdicts.stored"}
    assert stored == Counter(
        (each["stage"], each["error_type"], "stub" if each["decisive"] else "", "rules")
        for each in verdicts
    )
    assert sorted(told.values) == sorted((each["stage"], each["score"]) for each in verdicts)
    traces = {each["case_trace"] for each in verdicts}
    assert told.exemplars == {
        "memtrace.verdicts.stored": traces,
        "memtrace.verdict.score": traces,
    }
    assert told.counts["verdicts.abstained", "gap"] == 1
    lineages = Counter(each["lineage"] for each in verdicts)
    assert {k[1]: n for k, n in told.counts.items() if k[0] == "lineage"} == lineages


def test_without_a_destination_no_case_trace_is_named(cases: SqliteCaseStore) -> None:
    told = Told()
    Worker(failures(), cases, target=None, metrics=told).run_once()
    assert told.exemplars == {} and len(told.values) == len(NAMES)


def test_a_replay_is_counted_by_its_result(cases: SqliteCaseStore) -> None:
    def replayed(case: Case) -> Verdict:
        return dataclasses.replace(attribute(case), replay={"result": "confirmed", "runs": 3})

    told = Told()
    Worker(failures(), cases, judge=replayed, metrics=told).run_once()
    assert told.counts["replays", "confirmed"] == len(NAMES)
