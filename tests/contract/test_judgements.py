"""What every case store promises about judgements of persons."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from memtrace_collector.store.base import CaseStore, ErasedCases
from memtrace_collector.store.queue import JUDGED, QueuedCase, Schedule
from tests.contract.test_case_stores import MAKERS, entry

CASE = QueuedCase("c", "aa", "bb", "g", 5)


@pytest.fixture(params=MAKERS)
def store(request: pytest.FixtureRequest) -> Iterator[CaseStore]:
    store = MAKERS[request.param](request)
    yield store
    store.close()


def found(case_id: str = "c", revision: int = 1, **said: Any) -> dict[str, Any]:
    return {
        "id": case_id,
        "revision": revision,
        "graph_id": "g",
        "created": f"2026-01-0{revision}T00:00:00Z",
        "stage": "update",
        "error_type": "overwritten",
        "method": "rules",
        **said,
    }


def judged(case_id: str = "c", revision: int = 2, agreement: str = "stage") -> dict[str, Any]:
    machine = {"revision": 1, "stage": "update", "error_type": "overwritten"}
    said = {"revision": revision - 1, "agreement": agreement, "machine": machine, "note": "é\0"}
    return found(
        case_id,
        revision,
        stage="extraction",
        error_type="omission",
        method="human",
        judgement=said,
        machine_now=None,
    )


def test_a_judgement_is_the_current_verdict_and_its_case_is_due_at_once(store: CaseStore) -> None:
    store.save_verdict(found(), [entry("c/1/case")])
    assert store.take("worker", 10, 5) == []
    assert store.judge(judged(), CASE, 10)
    assert store.verdict("c") == judged() and store.verdict("c", "rules") == found()
    assert store.revisions("c") == [found(), judged()]
    assert [each.case for each in store.take("worker", 10, 5)] == [CASE]
    assert store.judgement_counts() == {("update", "stage"): 1}


def test_of_two_who_judge_one_revision_one_succeeds(store: CaseStore) -> None:
    store.save_verdict(found(), [])
    barrier, results = threading.Barrier(4), []

    def say(agreement: str) -> None:
        barrier.wait(10)
        results.append((store.judge(judged(agreement=agreement), CASE, 10), agreement))

    names = ("confirmed", "stage", "type", "operation")
    threads = [threading.Thread(target=say, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    (first,) = [agreement for is_stored, agreement in results if is_stored]
    assert len(results) == 4 and store.judgement_counts() == {("update", first): 1}
    assert store.verdict("c") == judged(agreement=first)


def test_a_refused_judgement_makes_no_case_due(store: CaseStore) -> None:
    store.save_verdict(found(), [])
    store.save_verdict(found(revision=2), [])
    assert not store.judge(judged(), CASE, 10)
    assert store.queued() == [] and store.judgement_counts() == {}


def test_a_worker_that_read_an_older_revision_stores_nothing_and_keeps_its_lease(
    store: CaseStore,
) -> None:
    store.announce([CASE], (), None, 0)
    lease = store.claim("c", "worker", 0, 100)
    assert lease is not None
    store.save_verdict(found(), [])
    assert store.judge(judged(), CASE, 1)
    late = found(revision=2, stage="deletion", error_type="wrongly_deleted")
    assert not store.release(lease, Schedule(state=JUDGED), 2, late, [entry("late")])
    assert store.verdict("c") == judged() and store.outbox_due(99) == []
    assert store.take("other", 99, 5) == [] and len(store.take("other", 100, 5)) == 1


def test_what_the_machine_finds_by_now_is_kept_beside_and_counted(store: CaseStore) -> None:
    store.save_verdict(found(), [])
    store.judge(judged(), CASE, 1)
    now = {"stage": "extraction", "error_type": "omission", "agreement": "confirmed"}
    amended = judged() | {"machine_now": now}
    assert store.amend(amended)
    assert store.verdict("c") == amended and store.revisions("c") == [found(), amended]
    assert store.judgement_counts() == {("extraction", "confirmed"): 1}
    assert not store.amend(judged("unknown"))


def test_what_is_not_current_any_more_is_not_amended(store: CaseStore) -> None:
    store.save_verdict(found(), [])
    store.judge(judged(), CASE, 1)
    store.judge(found(revision=3, withdrawn={"revision": 2}), CASE, 2)
    assert not store.amend(judged() | {"machine_now": {"stage": "x", "error_type": "y"}})
    assert store.revisions("c")[1] == judged()


def test_only_judgements_in_force_are_counted(store: CaseStore) -> None:
    for case_id in ("c", "d", "e"):
        store.save_verdict(found(case_id), [])
        store.judge(judged(case_id), QueuedCase(case_id, "aa", "bb", "g"), 1)
    store.judge(judged(revision=3, agreement="confirmed"), CASE, 2)
    store.judge(found("d", 3, withdrawn={"revision": 2}), QueuedCase("d", "aa", "bb", "g"), 2)
    assert store.judgement_counts() == {("update", "confirmed"): 1, ("update", "stage"): 1}


def test_erasing_a_graph_takes_its_judgements(store: CaseStore) -> None:
    store.announce([CASE], (), None, 0)
    store.save_verdict(found(), [])
    store.judge(judged(), CASE, 1)
    other = judged("d") | {"graph_id": "other"}
    store.save_verdict(found("d") | {"graph_id": "other"}, [])
    store.judge(other, QueuedCase("d", "aa", "cc", "other"), 1)
    erased = ErasedCases(tasks=1, concerns=0, verdicts=2, outbox=0, judgements=1)
    assert store.erase("g") == erased
    assert store.judgement_counts() == {("update", "stage"): 1}
    assert store.verdict("d") == other


def test_what_was_erased_while_a_person_judged_it_does_not_come_back(store: CaseStore) -> None:
    store.announce([CASE], (), None, 0)
    store.save_verdict(found(), [])
    store.erase("g")
    assert not store.judge(judged(), CASE, 1)
    assert store.verdicts(history=True) == [] == store.queued()
    assert store.judgement_counts() == {}


@pytest.mark.fault("F32")
def test_judgements_of_tenants_are_apart(store: CaseStore) -> None:
    other = store.for_tenant("other")
    for each in (store, other):
        each.save_verdict(found(), [])
    assert store.judge(judged(), CASE, 1)
    assert other.judgement_counts() == {} and other.verdict("c") == found()
    assert not other.amend(judged())
    assert other.judge(judged(agreement="type"), CASE, 1)
    assert other.erase(None) == ErasedCases(tasks=1, concerns=0, verdicts=2, outbox=0, judgements=1)
    assert store.judgement_counts() == {("update", "stage"): 1}
