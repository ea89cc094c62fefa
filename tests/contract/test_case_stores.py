"""One suite for every case store: what :mod:`memtrace_collector.store.base` promises."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timezone

import pytest

from memtrace_collector.log.position import START, LogPosition
from memtrace_collector.store.base import (
    DEFAULT_DESTINATION,
    CaseStore,
    Change,
    ErasedCases,
    OutboxEntry,
)
from memtrace_collector.store.postgres.cases import PostgresCaseStore
from memtrace_collector.store.queue import JUDGED, WAITING, QueuedCase, Schedule
from memtrace_collector.store.sqlite_cases import SqliteCaseStore

MAKERS: dict[str, Callable[[pytest.FixtureRequest], CaseStore]] = {
    "sqlite": lambda request: SqliteCaseStore(request.getfixturevalue("tmp_path") / "cases.db"),
    "postgresql": lambda request: PostgresCaseStore(request.getfixturevalue("postgres_url")),
}


@pytest.fixture(params=MAKERS)
def store(request: pytest.FixtureRequest) -> Iterator[CaseStore]:
    store = MAKERS[request.param](request)
    yield store
    store.close()


def verdict(case_id: str, revision: int, graph_id: str = "g") -> dict[str, object]:
    created = f"2026-01-0{revision}T00:00:00Z"
    return {"id": case_id, "revision": revision, "graph_id": graph_id, "created": created}


def entry(
    entry_id: str,
    not_before_ns: int = 0,
    destination: str = DEFAULT_DESTINATION,
    case_id: str = "c",
    revision: int = 1,
) -> OutboxEntry:
    return OutboxEntry(
        id=entry_id,
        case_id=case_id,
        revision=revision,
        signal="traces",
        payload=b"\x00bytes",
        destination=destination,
        not_before_ns=not_before_ns,
    )


def judged(store: CaseStore, case_id: str, graph_id: str, *concerns: str) -> None:
    """A case of a graph with a verdict and a row in the outbox."""
    store.announce([QueuedCase(case_id, "aa", "bb", graph_id)], (), None, 0)
    lease = store.claim(case_id, "worker", 0, 10)
    assert lease is not None
    schedule = Schedule(state=JUDGED, graph_ids=[graph_id, *concerns])
    row = entry(f"{case_id}/row", case_id=case_id)
    assert store.release(lease, schedule, 1, verdict(case_id, 1, graph_id), [row])


def test_the_current_verdict_is_the_latest_revision(store: CaseStore) -> None:
    assert store.save_verdict(verdict("c", 1), [])
    assert store.save_verdict(verdict("d", 2, "other"), [])
    assert store.save_verdict(verdict("c", 3), [])
    assert store.verdict("c") == verdict("c", 3)
    assert store.verdict("none") is None
    assert store.verdicts() == [verdict("d", 2, "other"), verdict("c", 3)]
    assert store.verdicts("g") == [verdict("c", 3)]
    assert store.verdicts("g", history=True) == [verdict("c", 1), verdict("c", 3)]


def test_every_revision_of_a_case_is_kept_in_order(store: CaseStore) -> None:
    for case_id, revision in (("c", 2), ("d", 1), ("c", 1)):
        store.save_verdict(verdict(case_id, revision), [])
    assert store.revisions("c") == [verdict("c", 1), verdict("c", 2)]
    assert store.revisions("none") == []
    assert store.for_tenant("other").revisions("c") == []


def test_current_verdicts_are_listed_in_short_newest_first(store: CaseStore) -> None:
    hop = {"decisive": True, "service": "writer", "system": "mem0", "operation": "decide"}
    found = {
        "stage": "update",
        "error_type": "overwritten",
        "method": "rules",
        "explanation": "why, in words: é",
        "answer": {"traceId": "aa", "spanId": "bb"},
        "decisive": [{"traceId": "cc", "spanId": "dd", "error_type": "overwritten"}],
        "path": [{"decisive": False, "service": "reader", "system": ""}, hop],
        "evidence": [{"says": "left out"}],
    }
    for case_id, revision in (("c", 1), ("d", 2), ("c", 3)):
        store.save_verdict(verdict(case_id, revision) | found, [])
    store.for_tenant("other").save_verdict(verdict("e", 4), [])
    first, second = store.short_verdicts()
    assert [(each.id, each.revision) for each in (first, second)] == [("c", 3), ("d", 2)]
    assert (first.stage, first.error_type, first.explanation) == (
        "update", "overwritten", "why, in words: é"
    )  # fmt: skip
    assert (first.system, first.service, first.operation) == ("mem0", "writer", "decide")
    assert first.answer_key == ("aa", "bb") and first.decisive_keys == (("cc", "dd"),)
    assert [each.id for each in store.short_verdicts(limit=1)] == ["c"]
    (bare,) = store.for_tenant("other").short_verdicts()
    assert (bare.system, bare.service, bare.decisive) == ("", "", ())


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


def test_the_longest_wait_is_told_of_cases_and_of_deliveries(store: CaseStore) -> None:
    assert store.longest() == (None, None)
    for case_id, now in (("late", 9), ("early", 4), ("done", 2)):
        store.announce([QueuedCase(case_id, "aa", "bb", "g")], (), None, now)
    lease = store.claim("done", "worker", 2, 10)
    assert lease is not None and store.release(lease, Schedule(state=JUDGED), 3)
    store.save_verdict(verdict("a", 1), [entry("a", case_id="a")])
    store.save_verdict(verdict("b", 2), [entry("b", case_id="b", revision=2)])
    seconds = datetime(2026, 1, 1, tzinfo=timezone.utc).timestamp()
    assert store.longest() == (4, seconds * 1_000_000_000)
    store.outbox_delivered("a", 5)
    assert store.longest() == (4, (seconds + 86_400) * 1_000_000_000)
    assert store.for_tenant("else").longest() == (None, None)


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


@pytest.mark.fault("F22")
def test_each_destination_has_a_state_and_a_back_off_of_its_own(store: CaseStore) -> None:
    store.enqueue([entry("a", destination="dead"), entry("a", destination="alive")])
    store.outbox_failed("a", "down", 50, "dead")
    assert [item.destination for item in store.outbox_due(9, destination="alive")] == ["alive"]
    store.outbox_delivered("a", 1, "alive")
    assert store.outbox_due(49, destination="dead") == []
    (waiting,) = store.outbox_due(50, destination="dead")
    assert (waiting.attempts, waiting.last_error) == (1, "down")
    assert store.outbox_due(50, destination="alive") == store.outbox_due(50) == []
    store.enqueue([entry("a", destination="alive")])
    assert store.outbox_counts() == {"pending": 1, "delivered": 1, "abandoned": 0}


@pytest.mark.fault("F22")
def test_rows_that_were_given_up_are_listed_and_can_be_tried_again(store: CaseStore) -> None:
    store.enqueue([entry("a"), entry("b", destination="other"), entry("d")])
    store.outbox_failed("b", "other: 400", None, "other")
    store.outbox_failed("a", "400", None)
    assert [(item.id, item.last_error) for item in store.outbox_abandoned()] == [
        ("a", "400"),
        ("b", "other: 400"),
    ]
    assert len(store.outbox_abandoned(limit=1)) == 1
    assert store.outbox_reopen(7) == 2 and store.outbox_abandoned() == []
    (again,) = store.outbox_due(7, destination="other")
    assert (again.id, again.attempts, again.last_error) == ("b", 0, "")
    assert [item.id for item in store.outbox_due(7)] == ["d", "a"]


def test_what_was_delivered_and_is_not_seen_is_sent_again_or_given_up(store: CaseStore) -> None:
    store.enqueue([entry("a"), entry("b"), entry("waiting")])
    for name in ("a", "b"):
        store.outbox_take("one", 1, 99)
        store.outbox_delivered(name, 2)
    assert store.outbox_not_seen("a", "not seen", 5)
    assert store.outbox_not_seen("b", "not seen again", None)
    assert not store.outbox_not_seen("waiting", "not seen", 5), "it was never delivered"
    assert not store.outbox_not_seen("b", "not seen", 5), "it was given up"
    assert not store.for_tenant("else").outbox_not_seen("a", "not seen", 5)
    (again,) = [row for row in store.outbox_take("two", 5, 20, 9) if row.id == "a"]
    assert (again.payload, again.last_error) == (b"\x00bytes", "not seen")
    assert [(row.id, row.last_error) for row in store.outbox_abandoned()] == [
        ("b", "not seen again")
    ]
    store.outbox_delivered("a", 6)
    store.outbox_forget(7)
    assert not store.outbox_not_seen("a", "not seen", 8), "its payload was dropped"


def test_what_the_destination_has_no_place_for_is_kept_without_its_payload(
    store: CaseStore,
) -> None:
    store.enqueue([entry("log"), entry("waiting")])
    store.outbox_declined("log", "HTTP 404")
    assert [row.id for row in store.outbox_due(99)] == ["waiting"]
    assert store.outbox_abandoned() == [] and store.outbox_reopen(5) == 0
    assert store.outbox_counts() == {"pending": 1, "delivered": 0, "declined": 1, "abandoned": 0}
    assert not store.outbox_not_seen("log", "not seen", 5)
    store.enqueue([entry("log")])
    assert [row.id for row in store.outbox_due(99)] == ["waiting"], "it is not put again"
    store.outbox_delivered("waiting", 6)
    store.outbox_declined("waiting", "HTTP 404")
    assert store.outbox_counts()["delivered"] == 1


@pytest.mark.fault("F1")
def test_a_row_is_in_the_hands_of_one_sender_until_the_lease_ends(store: CaseStore) -> None:
    store.enqueue([entry("later", 5), entry("now", 1), entry("far", 99), entry("x", 0, "other")])
    assert [row.id for row in store.outbox_take("one", 10, 20)] == ["now"]
    assert [row.id for row in store.outbox_take("two", 10, 20, 9)] == ["later"]
    assert store.outbox_take("two", 29, 20)[0].id == "later", "what it has comes again"
    assert [row.id for row in store.outbox_take("three", 29, 20, 9)] == []
    assert [row.id for row in store.outbox_due(29)] == ["now", "later"]
    (again,) = store.outbox_take("three", 30, 20, 9)
    assert (again.id, again.payload, again.attempts) == ("now", b"\x00bytes", 0)
    store.outbox_failed("now", "503", 40)
    assert [row.id for row in store.outbox_take("one", 40, 20, 9)] == ["now"]
    store.outbox_delivered("now", 41)
    assert [row.id for row in store.outbox_take("one", 120, 20, 9)] == ["later", "far"]
    assert [row.id for row in store.outbox_take("one", 120, 20, 9, "other")] == ["x"]
    assert store.for_tenant("else").outbox_take("one", 500, 20, 9) == []


def test_of_many_senders_each_gets_rows_that_no_other_gets(store: CaseStore) -> None:
    store.enqueue([entry(f"r{number:02}") for number in range(40)])
    got: list[str] = []

    def send(name: str) -> None:
        while rows := store.outbox_take(name, 1, 10, 3):
            for row in rows:
                got.append(row.id)
                store.outbox_delivered(row.id, 1)

    threads = [threading.Thread(target=send, args=(f"s{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == [f"r{number:02}" for number in range(40)]
    assert store.outbox_counts()["delivered"] == 40


def test_payloads_delivered_long_ago_are_dropped_and_nothing_else_is(store: CaseStore) -> None:
    rows = [entry(name) for name in ("first", "second", "late", "waiting", "refused")]
    store.save_verdict(verdict("c", 1), rows)
    for at_ns, name in enumerate(("first", "second", "late"), 10):
        store.outbox_delivered(name, at_ns)
    store.outbox_failed("refused", "400", None)
    other = store.for_tenant("other")
    other.save_verdict(verdict("c", 1), [entry("first")])
    other.outbox_delivered("first", 10)
    assert store.outbox_forget(10) == 0
    assert [store.outbox_forget(12, limit=1) for _ in range(3)] == [1, 1, 0]
    assert store.outbox_counts() == {"pending": 1, "delivered": 3, "abandoned": 1}
    assert store.verdict("c") == verdict("c", 1) and store.verdicts_without_outbox() == []
    store.enqueue(rows)
    assert store.outbox_reopen(20) == 1
    assert {row.id: row.payload for row in store.outbox_due(20)} == {
        "waiting": b"\x00bytes",
        "refused": b"\x00bytes",
    }
    assert store.outbox_forget(99) == 1, "the late one"
    assert other.outbox_forget(99) == 1


def test_places_in_the_log_are_kept_by_name(store: CaseStore) -> None:
    assert store.cursor("forward:a") == START
    store.set_cursor("forward:a", LogPosition(2, 7))
    store.set_cursor("forward:b", LogPosition(1, 1))
    store.set_cursor("forward:a", LogPosition(3, 0))
    assert store.cursor("forward:a") == LogPosition(3, 0)
    assert store.for_tenant("other").cursor("forward:b") == LogPosition(1, 1)


@pytest.mark.fault("F32")
def test_a_tenant_sees_and_changes_nothing_of_another(store: CaseStore) -> None:
    other = store.for_tenant("other")
    assert (store.tenant, other.tenant) == ("default", "other")
    judged(store, "c", "g")
    store.announce([], (), Change(5, 7), 0)
    assert other.verdict("c") is None and other.verdicts() == [] == other.verdicts(history=True)
    assert other.verdict_counts() == {} and other.read_until() is None
    assert other.outbox_due(99) == [] == other.queued() and other.claim("c", "w", 0, 10) is None
    other.outbox_delivered("c/row", 1)
    other.outbox_failed("c/row", "error", None)
    other.announce([], ["g"], Change(6, 1), 5)
    assert sum(other.queue_counts().values()) == sum(other.outbox_counts().values()) == 0
    assert other.erase(None) == ErasedCases(0, 0, 0, 0)
    assert store.outbox_counts()["pending"] == 1 and store.verdict("c") == verdict("c", 1)
    assert store.take("worker", 10**18, 10) == [] and store.read_until() == Change(5, 7)


@pytest.mark.fault("F32")
def test_tenants_may_use_the_same_ids(store: CaseStore) -> None:
    other = store.for_tenant("other")
    for each in (store, other):
        judged(each, "c", "g")
    other.outbox_delivered("c/row", 1)
    assert store.outbox_counts()["pending"] == other.outbox_counts()["delivered"] == 1
    assert store.tenants() == other.tenants() == ["default", "other"]
    other.announce((), ["g"], None, 5)
    assert store.take("worker", 5, 10) == [] and len(other.take("worker", 5, 10)) == 1


def test_erasing_a_graph_leaves_no_row_of_it(store: CaseStore) -> None:
    judged(store, "c", "gone")
    judged(store, "d", "kept")
    store.set_cursor("forward:a", LogPosition(2, 7))
    assert store.erase("gone") == ErasedCases(tasks=1, concerns=1, verdicts=1, outbox=1)
    assert store.erase("gone") == ErasedCases(0, 0, 0, 0)
    assert [each.case_id for each in store.queued()] == ["d"]
    assert store.verdicts(history=True) == [verdict("d", 1, "kept")]
    assert [row.id for row in store.outbox_due(99)] == ["d/row"]
    assert store.cursor("forward:a") == LogPosition(2, 7)


def test_what_was_found_with_the_help_of_an_erased_graph_is_judged_again(store: CaseStore) -> None:
    judged(store, "c", "kept", "gone")
    lease = store.claim("c", "worker", 2, 10)
    assert lease is not None
    assert store.erase("gone") == ErasedCases(tasks=0, concerns=1, verdicts=1, outbox=1)
    assert not store.release(lease, Schedule(state=JUDGED), 3, verdict("c", 2, "kept"))
    assert store.verdict("c") is None and store.queue_counts()[WAITING] == 1
    assert [each.case.case_id for each in store.take("worker", 3, 10)] == ["c"]


def test_erasing_a_tenant_leaves_the_others(store: CaseStore) -> None:
    other = store.for_tenant("other")
    for each in (store, other):
        judged(each, "c", "g")
        each.announce([QueuedCase("u", response_id="r")], (), Change(5, 7), 0)
    assert other.erase(None) == ErasedCases(tasks=2, concerns=1, verdicts=1, outbox=1)
    assert store.tenants() == ["default"] and other.read_until() is None
    assert store.unresolved() and store.verdict("c") and store.outbox_due(99)
