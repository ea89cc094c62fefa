"""One suite for every case store: what :mod:`memtrace_collector.store.base` promises."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memtrace_collector.store.base import CaseStore, OutboxEntry
from memtrace_collector.store.sqlite_cases import SqliteCaseStore

MAKERS: dict[str, Callable[[Path], CaseStore]] = {
    "sqlite": lambda folder: SqliteCaseStore(folder / "cases.db")
}


@pytest.fixture(params=MAKERS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CaseStore]:
    store = MAKERS[request.param](tmp_path)
    yield store
    store.close()


def verdict(case_id: str, revision: int, graph_id: str = "g") -> dict[str, object]:
    created = f"2026-01-0{revision}T00:00:00Z"
    return {"id": case_id, "revision": revision, "graph_id": graph_id, "created": created}


def entry(entry_id: str, not_before_ns: int = 0) -> OutboxEntry:
    return OutboxEntry(
        id=entry_id,
        case_id="c",
        revision=1,
        signal="traces",
        payload=b"\x00bytes",
        not_before_ns=not_before_ns,
    )


def test_the_current_verdict_is_the_latest_revision(store: CaseStore) -> None:
    assert store.save_verdict(verdict("c", 1), [])
    assert store.save_verdict(verdict("d", 2, "other"), [])
    assert store.save_verdict(verdict("c", 3), [])
    assert store.verdict("c") == verdict("c", 3)
    assert store.verdict("none") is None
    assert store.verdicts() == [verdict("d", 2, "other"), verdict("c", 3)]
    assert store.verdicts("g") == [verdict("c", 3)]
    assert store.verdicts("g", history=True) == [verdict("c", 1), verdict("c", 3)]


def test_the_last_verdict_of_a_method_is_found_behind_later_ones(store: CaseStore) -> None:
    for revision, method in ((1, "rules"), (2, "rules"), (3, "model")):
        store.save_verdict(verdict("c", revision) | {"method": method}, [])
    found = [store.verdict("c", method) for method in ("rules", "model", "")]
    assert [each and each["revision"] for each in found] == [2, 3, 3]
    assert store.verdict("c", "agent") is None


def test_current_verdicts_are_counted_by_stage_type_and_method(store: CaseStore) -> None:
    omission = {"stage": "extraction", "error_type": "omission", "method": "rules"}
    unknown = {"stage": "unknown", "error_type": "insufficient_evidence", "method": "rules"}
    assert store.verdict_counts() == {}
    for case_id, revision, found in (("c", 1, unknown), ("c", 2, omission), ("d", 1, omission)):
        store.save_verdict(verdict(case_id, revision) | found, [])
    assert store.verdict_counts() == {("extraction", "omission", "rules"): 2}


def test_a_revision_that_exists_changes_nothing_not_even_the_outbox(store: CaseStore) -> None:
    assert store.save_verdict(verdict("c", 1), [entry("a")])
    changed = {**verdict("c", 1), "stage": "other"}
    assert not store.save_verdict(changed, [entry("b")])
    assert store.verdict("c") == verdict("c", 1)
    assert [item.id for item in store.outbox_due(0)] == ["a"]


def test_verdict_and_outbox_are_written_together_or_not_at_all(store: CaseStore) -> None:
    def failing() -> Iterator[OutboxEntry]:
        yield entry("a")
        raise RuntimeError("while rendering")

    with pytest.raises(RuntimeError, match="while rendering"):
        store.save_verdict(verdict("c", 1), failing())
    assert store.verdict("c") is None and store.outbox_due(0) == []


def test_due_entries_come_with_their_bytes_and_oldest_first(store: CaseStore) -> None:
    store.save_verdict(verdict("c", 1), [entry("later", 5), entry("now", 1), entry("far", 99)])
    due = store.outbox_due(10)
    assert [item.id for item in due] == ["now", "later"]
    assert due[0].payload == b"\x00bytes" and due[0].attempts == 0
    assert len(store.outbox_due(10, limit=1)) == 1


def test_delivery_retry_and_giving_up_are_counted(store: CaseStore) -> None:
    store.save_verdict(verdict("c", 1), [entry("a"), entry("b"), entry("d")])
    store.outbox_delivered("a", 1)
    store.outbox_failed("b", "503", retry_at_ns=50)
    store.outbox_failed("d", "400", retry_at_ns=None)
    assert store.outbox_counts() == {"pending": 1, "delivered": 1, "abandoned": 1}
    assert store.outbox_due(49) == []
    (retried,) = store.outbox_due(50)
    assert (retried.id, retried.attempts, retried.last_error) == ("b", 1, "503")


def test_what_was_delivered_cannot_fail_afterwards(store: CaseStore) -> None:
    store.save_verdict(verdict("c", 1), [entry("a")])
    store.outbox_delivered("a", 1)
    store.outbox_failed("a", "late answer", retry_at_ns=2)
    assert store.outbox_counts()["delivered"] == 1
