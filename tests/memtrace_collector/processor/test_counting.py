"""What newly projected operations say, as they are counted on the way into the graphs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from memtrace_collector.graph.facts import Dropped, Operation
from memtrace_collector.log.format import LogRecord
from memtrace_collector.log.segments import SegmentLog
from memtrace_collector.processor.counting import count
from memtrace_collector.processor.projector import Projector
from memtrace_collector.processor.reading import RecordReader
from memtrace_collector.runtime.tally import Tally, gathered
from memtrace_collector.store.sqlite_facts import SqliteFactStore
from tests.contract import scenarios

DEADLINE = 20.0
SECOND = 1_000_000_000


class Counted:
    """What a tally holds, by name and the values of the attributes, joined by dots."""

    def __init__(self) -> None:
        self.tally = Tally()

    def take(self) -> dict[str, float]:
        counts, spreads = self.tally.take()
        found = {".".join([each.name, *each.attributes.values()]): each.value for each in counts}
        for each in spreads:
            name = ".".join([each.name, *each.attributes.values()])
            found[name] = sum(gathered(each).counts)
        return found


@pytest.fixture
def counted() -> Counted:
    return Counted()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SegmentLog]:
    with contextlib.closing(SegmentLog(tmp_path / "log", fsync=False)) as log:
        yield log


def operation(step: str, took: int = SECOND, **fields: object) -> Operation:
    made = {"graph_id": "g", "trace_id": "1" * 32, "span_id": "2" * 16, "name": step, "step": step}
    times = {"start_ns": SECOND, "end_ns": SECOND + took}
    return Operation(**{**made, **times, "system": "stub", **fields})


def append(log: SegmentLog, *names: str) -> None:
    for name in names:
        body = scenarios.request(name).SerializeToString()
        log.append(LogRecord("default", 1, "traces", "protobuf", body)).result(DEADLINE)


def test_the_contract_s_operations_are_counted_once_however_often_they_come(
    log: SegmentLog, counted: Counted, tmp_path: Path
) -> None:
    names = ("overwritten", "wrongly_deleted", "ranked_out", "omission")
    append(log, *names, *names)
    with contextlib.closing(SqliteFactStore(tmp_path / "facts.db")) as store:
        projector = Projector(log.folder, store, RecordReader(), metrics=counted.tally)
        projector.run_once()
        append(log, *names)
        projector.run_once()
        stored = [o for g in store.graphs() for o in store.all_operations(g.graph_id)]
    found = counted.take()
    by_name = dict.fromkeys(("memtrace.operations", "memtrace.operation.duration"), 0.0)
    for name, value in found.items():
        for counter in by_name:
            by_name[counter] += value if name.startswith(f"{counter}.") else 0
    assert set(by_name.values()) == {len(stored)}
    assert found["memtrace.projection.duplicates"] == 2 * len(stored)
    reads = [o for o in stored if o.step == "retrieve" and not o.composite]
    assert found["memtrace.retrievals.stub.delivered"] == sum(bool(o.delivered) for o in reads)
    assert found["memtrace.retrieval.delivered.stub"] == sum(len(o.delivered) for o in reads)
    assert found["memtrace.retrieval.dropped.stub.limit"] == sum(len(o.dropped) for o in reads) > 0
    assert found["memtrace.records.changed.stub.created"] > 0
    assert found["memtrace.records.changed.stub.updated"] == 1
    assert found["memtrace.records.changed.stub.deleted"] == 1


@pytest.mark.parametrize(
    ("fields", "change"),
    [
        ({"step": "create", "outputs": ("mem:a:1@b",)}, "created"),
        ({"step": "ingest", "outputs": ("doc:a:1@b", "doc:a:2@b")}, "created"),
        ({"step": "update", "outputs": ("mem:a:1@c",)}, "updated"),
        ({"step": "merge", "outputs": ("mem:a:1@c",), "supersedes": ("mem:a:1@b",)}, "updated"),
        ({"step": "merge", "outputs": ("mem:a:2@c",), "supersedes": ("mem:a:1@b",)}, "created"),
        ({"step": "delete", "outputs": ("mem:a:1@deleted",)}, "deleted"),
    ],
)
def test_a_change_of_a_record_is_told_by_what_it_superseded(
    counted: Counted, fields: dict[str, object], change: str
) -> None:
    count([operation(**fields)], counted.tally)
    changed = {k: v for k, v in counted.take().items() if "records.changed" in k}
    assert changed == {f"memtrace.records.changed.stub.{change}": len(fields["outputs"])}


@pytest.mark.parametrize(
    "fields",
    [
        {"step": "create", "outputs": ("mem:a:1@b",), "error_type": "timeout"},
        {"step": "add", "outputs": ("mem:a:1@b",), "composite": True},
        {"step": "extract", "outputs": ("fact:f@1",)},
        {"step": "retrieve", "outputs": ("mem:a:1@b",)},
    ],
)
def test_what_changed_no_record_is_no_change(counted: Counted, fields: dict[str, object]) -> None:
    count([operation(**fields)], counted.tally)
    assert not [name for name in counted.take() if "records.changed" in name]


def test_searches_are_told_apart_by_whether_they_found_anything(counted: Counted) -> None:
    hit = operation("retrieve", delivered=("mem:a:1@b", "mem:a:2@b"))
    cut = operation("retrieve", dropped=(Dropped("mem:a:1@b", 0.1, "threshold"),))
    failed = operation("retrieve", error_type="timeout")
    around = operation("retrieve", composite=True)
    count([hit, cut, failed, around], counted.tally)
    found = counted.take()
    assert found["memtrace.retrievals.stub.delivered"] == 1
    assert found["memtrace.retrievals.stub.empty"] == 1
    assert found["memtrace.retrieval.delivered.stub"] == 2
    assert found["memtrace.retrieval.dropped.stub.threshold"] == 1
    assert found["memtrace.operation.duration.stub.retrieve.ok"] == 3
    assert found["memtrace.operation.duration.stub.retrieve.error"] == 1


def test_durations_fall_into_buckets_and_none_is_negative(counted: Counted) -> None:
    times = (-5, 0, SECOND // 1_000, SECOND // 4, 90 * SECOND)
    count([operation("add", took=took) for took in times], counted.tally)
    _, (spread,) = counted.tally.take()
    values = gathered(spread)
    assert (values.counts[0], values.counts[-1], sum(values.counts)) == (3, 1, 5)
    assert (values.least, values.greatest, values.sum) == (0.0, 90.0, pytest.approx(90.251))


def test_distributions_of_several_batches_add_up(counted: Counted) -> None:
    for took in (1, 2, 3):
        count([operation("add", took=took * SECOND)], counted.tally)
    _, (spread,) = counted.tally.take()
    assert (sum(gathered(spread).counts), spread.sum, spread.greatest) == (3, 6.0, 3.0)
    assert counted.tally.take() == ((), ()), "it was taken"
