"""One suite for every queue of cases: what :mod:`memtrace_collector.store.base` promises."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from memtrace_collector.store.base import CaseStore, Change
from memtrace_collector.store.queue import (
    JUDGED,
    SET_ASIDE,
    UNRESOLVED,
    WAITING,
    Lease,
    QueuedCase,
    Schedule,
)
from tests.contract.test_case_stores import MAKERS, entry, verdict

LEASE = 10


@pytest.fixture(params=MAKERS)
def store(request: pytest.FixtureRequest) -> Iterator[CaseStore]:
    store = MAKERS[request.param](request)
    yield store
    store.close()


def case(case_id: str, graph_id: str = "g", answered_ns: int = 0) -> QueuedCase:
    return QueuedCase(case_id, "aa" * 16, "bb" * 8, graph_id, answered_ns)


def announce(store: CaseStore, *cases: QueuedCase, now: int = 0) -> None:
    store.announce(cases, (), None, now)


def taken(store: CaseStore, now: int, worker: str = "one") -> Lease:
    (lease,) = store.take(worker, now, LEASE)
    return lease


def due(store: CaseStore, now: int) -> list[str]:
    """Ids that could be taken now, without keeping them."""
    leases = store.take("looker", now, 0, 100)
    return sorted(lease.case.case_id for lease in leases)


def test_an_announced_case_is_due_at_once_and_comes_as_it_was(store: CaseStore) -> None:
    queued = QueuedCase("c", "aa", "bb", "g", 7, "response", "conversation")
    announce(store, queued, now=5)
    assert store.take("one", 4, LEASE) == []
    lease = taken(store, 5)
    assert lease.case == queued
    assert (lease.since_ns, lease.attempts, lease.is_judged) == (5, 1, False)
    assert store.queue_counts() == {UNRESOLVED: 0, WAITING: 1, JUDGED: 0, SET_ASIDE: 0}


def test_a_lease_keeps_others_out_until_it_ends(store: CaseStore) -> None:
    announce(store, case("c"))
    first = taken(store, 0)
    assert store.take("two", 9, LEASE) == [] and store.claim("c", "two", 9, LEASE) is None
    second = taken(store, 10, "two")
    assert second.token != first.token and second.attempts == 2


def test_who_lost_its_lease_can_neither_write_nor_give_back(store: CaseStore) -> None:
    announce(store, case("c"))
    first = taken(store, 0)
    second = taken(store, 10, "two")
    again = Schedule(state=JUDGED)
    assert not store.release(first, again, 11, verdict("c", 1), [entry("a")])
    assert not store.fail(first, "late", None) and not store.resolve(first, [], 11)
    assert store.verdict("c") is None and store.outbox_due(99) == []
    assert store.release(second, again, 12, verdict("c", 1), [entry("b")])
    assert not store.release(second, again, 13), "given back once"
    assert [item.id for item in store.outbox_due(99)] == ["b"]


def test_an_expired_lease_that_nobody_took_over_still_writes(store: CaseStore) -> None:
    announce(store, case("c"))
    lease = taken(store, 0)
    assert store.release(lease, Schedule(state=JUDGED), 99, verdict("c", 1))
    assert store.verdict("c") == verdict("c", 1)


def test_renewing_prolongs_only_leases_that_have_not_run_out(store: CaseStore) -> None:
    announce(store, case("c"), case("d"))
    assert len(store.take("one", 0, 5, 1)) == len(store.take("one", 0, LEASE, 1)) == 1
    assert store.renew("one", 7, LEASE) == 1
    assert store.renew("two", 7, LEASE) == 0
    assert len(store.take("two", 16, LEASE, 5)) == 1


def test_of_many_workers_each_gets_cases_that_no_other_gets(store: CaseStore) -> None:
    announce(store, *(case(f"c{n:03}") for n in range(60)))
    got: list[str] = []

    def work(name: str) -> None:
        while leases := store.take(name, 1, LEASE, 3):
            got.extend(lease.case.case_id for lease in leases)

    threads = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == [f"c{n:03}" for n in range(60)]


def test_the_longest_due_comes_first(store: CaseStore) -> None:
    for number, name in enumerate(["late", "early"]):
        announce(store, case(name), now=10 - number)
    assert [taken(store, 20).case.case_id for _ in range(2)] == ["early", "late"]


def test_a_schedule_says_when_a_case_is_due_again(store: CaseStore) -> None:
    announce(store, case("c"), now=3)
    waiting = Schedule(state=WAITING, due_ns=50, step_ns=4, since_ns=3)
    assert store.release(taken(store, 3), waiting, 4)
    assert due(store, 49) == []
    lease = taken(store, 50)
    assert (lease.attempts, lease.step_ns, lease.since_ns) == (1, 4, 3)
    assert store.release(lease, Schedule(state=JUDGED), 51)
    assert due(store, 10**18) == []
    lease = store.claim("c", "one", 52, LEASE)
    assert lease is not None and lease.is_judged and lease.since_ns == 0


def test_a_changed_graph_brings_back_the_cases_it_concerns_not_before_their_time(
    store: CaseStore,
) -> None:
    announce(store, case("c"), case("d"))
    for name, graph_ids in (("c", ["g", "shared"]), ("d", ["g"])):
        lease = store.claim(name, "one", 0, LEASE)
        assert lease is not None
        judged = Schedule(state=JUDGED, not_before_ns=30, graph_ids=graph_ids)
        assert store.release(lease, judged, 1)
    store.announce((), ["other"], None, 2)
    assert due(store, 99) == []
    store.announce((), ["shared"], None, 2)
    assert due(store, 29) == [] and due(store, 30) == ["c"]


def test_a_new_flag_brings_a_case_back_at_once(store: CaseStore) -> None:
    announce(store, case("c"))
    assert store.release(taken(store, 0), Schedule(state=JUDGED, not_before_ns=30), 1)
    announce(store, case("c"), now=5)
    assert due(store, 5) == ["c"]


@pytest.mark.parametrize(("flagged", "then"), [(False, 30), (True, 8)])
def test_what_changes_while_a_case_is_looked_at_is_looked_at_afterwards(
    store: CaseStore, flagged: bool, then: int
) -> None:
    announce(store, case("c"))
    judged = Schedule(state=JUDGED, not_before_ns=30, graph_ids=["g"])
    assert store.release(taken(store, 0), judged, 1)
    lease = store.claim("c", "one", 5, LEASE)
    assert lease is not None
    store.announce([case("c")] if flagged else [], ["g"], None, 6)
    assert store.take("two", 7, LEASE) == []
    assert store.release(lease, judged, 8)
    assert due(store, then - 1) == [] and due(store, then) == ["c"]


def test_a_failed_case_is_retried_and_then_set_aside_with_its_reason(store: CaseStore) -> None:
    announce(store, case("c"), case("d", "other"))
    lease = store.claim("c", "one", 0, LEASE)
    assert lease is not None and store.fail(lease, "first", 40)
    lease = store.claim("c", "one", 40, LEASE)
    assert lease is not None and lease.attempts == 2
    assert store.fail(lease, "second", None)
    assert "c" not in due(store, 10**18)
    (aside,) = store.set_aside()
    assert (aside.case, aside.reason, aside.attempts) == (case("c"), "second", 2)
    assert store.set_aside("other") == [] and store.queue_counts()[SET_ASIDE] == 1
    store.announce((), ["g"], None, 50)
    assert "c" not in due(store, 10**18), "a graph that changes does not bring it back"


def test_what_waits_for_a_verdict_is_listed_latest_answer_first(store: CaseStore) -> None:
    announce(store, case("old")._replace(answered_ns=1), case("new")._replace(answered_ns=9))
    announce(store, case("judged"), case("failed"), case("flag", "")._replace(graph_id=""))
    for case_id in ("judged", "failed"):
        lease = store.claim(case_id, "one", 0, LEASE)
        assert lease is not None
        if case_id == "judged":
            assert store.release(lease, Schedule(state=JUDGED), 1)
        else:
            assert store.fail(lease, "poison", None)
    assert [each.case_id for each in store.waiting()] == ["new", "old"]
    assert [each.case_id for each in store.waiting(1)] == ["new"]
    assert store.for_tenant("other").waiting() == []


@pytest.mark.parametrize("by_flag", [True, False])
def test_what_was_set_aside_comes_back_by_a_flag_or_when_it_is_claimed(
    store: CaseStore, by_flag: bool
) -> None:
    announce(store, case("c"))
    assert store.fail(taken(store, 0), "poison", None)
    if by_flag:
        announce(store, case("c"), now=5)
        lease: Lease | None = taken(store, 5)
        assert lease is not None and lease.attempts == 1
    else:
        lease = store.claim("c", "one", 5, LEASE)
    assert lease is not None and store.set_aside() == []
    assert store.release(lease, Schedule(state=JUDGED), 6)
    assert store.queue_counts()[JUDGED] == 1


def test_a_flag_without_an_answer_gives_way_to_the_answer(store: CaseStore) -> None:
    unresolved = QueuedCase("u", response_id="r")
    announce(store, unresolved)
    assert store.unresolved() == [unresolved] and store.queued() == []
    assert store.queue_counts()[UNRESOLVED] == 1
    assert store.resolve(taken(store, 0), [case("c")], 1)
    assert store.unresolved() == [] and store.queued() == [case("c")]
    assert due(store, 1) == ["c"]


def test_answers_are_listed_oldest_first_in_parts_and_by_graph(store: CaseStore) -> None:
    cases = [case(f"c{n}", "even" if n % 2 == 0 else "odd", answered_ns=9 - n) for n in range(5)]
    announce(store, *cases)
    first = store.queued(limit=2)
    rest = store.queued(after=first[-1])
    assert [*first, *rest] == cases[::-1]
    assert [item.case_id for item in store.queued("odd")] == ["c3", "c1"]


def test_how_far_changes_were_read_is_kept_with_what_they_brought(store: CaseStore) -> None:
    assert store.read_until() is None
    store.announce([case("c")], (), Change(5, 7), 0)
    assert store.read_until() == Change(5, 7)
    announce(store, case("d"))
    assert store.read_until() == Change(5, 7)

    def failing() -> Iterator[QueuedCase]:
        yield case("e")
        raise RuntimeError("while reading")

    with pytest.raises(RuntimeError, match="while reading"):
        store.announce(failing(), (), Change(5, 8), 0)
    assert store.read_until() == Change(5, 7)
    assert [item.case_id for item in store.queued()] == ["c", "d"]
