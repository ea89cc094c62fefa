"""The worker finds flagged answers, waits for what is on its way, and stores what changed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memtrace_collector.attribution.attribute import attribute
from memtrace_collector.attribution.verdict import Verdict
from memtrace_collector.attribution.work import intake
from memtrace_collector.attribution.work.intake import case_id
from memtrace_collector.attribution.work.worker import DEFAULT_SETTINGS, Worker, WorkerSettings
from memtrace_collector.graph.case import Case
from memtrace_collector.graph.facts import SpanFacts
from memtrace_collector.log.position import LogPosition
from memtrace_collector.store.in_memory import InMemoryFactStore
from memtrace_collector.store.sqlite_cases import SqliteCaseStore
from tests.memtrace_collector.attribution.scripts import Script

SECOND = 1_000_000_000


class Clock:
    """Nanoseconds that only a test moves."""

    def __init__(self, now_ns: int) -> None:
        self.now_ns = now_ns

    def __call__(self) -> int:
        return self.now_ns


@pytest.fixture
def cases(tmp_path: Path) -> Iterator[SqliteCaseStore]:
    with closing(SqliteCaseStore(tmp_path / "cases.db")) as store:
        yield store


def _deleted() -> Script:
    script = Script()
    message, version = script.remember("My barber is Enzo.")
    script.day(2)
    script.delete(version)
    script.ask("Who is my barber?")
    script.reply("I do not know.")
    return script.flag("Enzo", message)


def _clock(script: Script, seconds: float) -> Clock:
    return Clock(script.operations[-1].end_ns + int(seconds * SECOND))


def test_a_flagged_answer_gets_one_verdict_and_its_outbox_rows(cases: SqliteCaseStore) -> None:
    script = _deleted()
    worker = Worker(script.store(), cases, clock_ns=_clock(script, 60))
    (verdict,) = worker.look()
    assert verdict["id"] == case_id(script.operations[-1])
    assert (verdict["revision"], verdict["error_type"]) == (1, "wrongly_deleted")
    assert verdict["created"].endswith("Z")
    assert cases.verdict(verdict["id"]) == verdict
    assert cases.outbox_counts()["pending"] == 4
    assert worker.look() == []
    assert cases.outbox_counts()["pending"] == 4


def test_run_once_prints_the_current_verdict_new_or_not(cases: SqliteCaseStore) -> None:
    script = _deleted()
    worker = Worker(script.store(), cases, clock_ns=_clock(script, 0))
    assert worker.run_once() == worker.run_once()
    assert worker.run_once(graph_id="user:nobody") == []
    assert len(cases.verdicts()) == 1


def test_without_write_back_the_outbox_stays_empty(cases: SqliteCaseStore) -> None:
    script = _deleted()
    Worker(script.store(), cases, target=None).run_once()
    assert sum(cases.outbox_counts().values()) == 0


def test_evidence_can_be_left_out_without_touching_what_is_stored(cases: SqliteCaseStore) -> None:
    script = _deleted()
    worker = Worker(script.store(), cases)
    (stored,) = worker.run_once()
    (shown,) = worker.run_once(evidence=False)
    assert (shown["revision"], shown["id"]) == (0, stored["id"])
    assert cases.verdict(stored["id"]) == stored


@pytest.mark.fault("F28", "F30")
def test_an_open_gap_is_waited_for_and_a_late_span_makes_a_new_revision(
    cases: SqliteCaseStore,
) -> None:
    script = _deleted()
    late = next(op for op in script.operations if op.step == "delete")
    store = InMemoryFactStore()
    facts = [SpanFacts(operation=op) for op in script.operations if op is not late]
    rest = SpanFacts(values=tuple(script.values), flags=tuple(script.flags))
    begin = LogPosition(0, 0)
    store.apply(((begin, each) for each in [*facts, rest]), LogPosition(0, 1))
    clock = _clock(script, 1)
    worker = Worker(store, cases, clock_ns=clock)
    # the writer goes on: its next number shows that one is missing
    script.day(21)
    script.say("Thanks!")
    more = [SpanFacts(operation=op) for op in script.operations[-2:]]
    store.apply(((begin, each) for each in more), LogPosition(0, 2))
    assert worker.look() == []
    clock.now_ns += 290 * SECOND
    assert worker.look() == []
    clock.now_ns += 10 * SECOND
    (first,) = worker.look()
    assert first["revision"] == 1
    assert first["error_type"] != "wrongly_deleted"
    store.apply([(begin, SpanFacts(operation=late))], LogPosition(0, 3))
    clock.now_ns += 3 * SECOND
    (second,) = worker.look()
    assert (second["revision"], second["error_type"]) == (2, "wrongly_deleted")
    assert second["case_trace"] != first["case_trace"]


@pytest.mark.fault("F30")
def test_a_second_flag_is_the_same_case(cases: SqliteCaseStore) -> None:
    script = _deleted()
    script.flag(None, source="user")
    (verdict,) = Worker(script.store(), cases).run_once()
    assert verdict["error_type"] == "wrongly_deleted"


def test_a_case_leased_by_another_worker_is_left_alone(cases: SqliteCaseStore) -> None:
    script = _deleted()
    clock = _clock(script, 60)
    answer = script.operations[-1]
    cases.announce([intake.queued(answer)], (), None, clock())
    assert cases.claim(case_id(answer), "somebody else", clock(), 5 * SECOND)
    worker = Worker(script.store(), cases, clock_ns=clock)
    assert worker.look() == []
    clock.now_ns += 10 * SECOND
    assert len(worker.look()) == 1


def test_a_case_that_keeps_failing_is_set_aside_and_the_others_go_on(
    cases: SqliteCaseStore,
) -> None:
    script = _deleted()
    first = script.operations[-1]
    script.ask("Who is my barber, again?", day=22)
    script.reply("I do not know.")
    script.flag("Enzo", *script.flags[0].evidence)
    poison = {first.key}

    def failing(case: Case) -> Verdict:
        if case.answer.key in poison:
            raise RuntimeError("poison")
        return attribute(case)

    clock = _clock(script, 60)
    store = script.store()
    worker = Worker(store, cases, judge=failing, clock_ns=clock)
    assert [verdict["answer"]["spanId"] for verdict in worker.look()] == [
        script.operations[-1].span_id
    ]
    # attempts are kept: another worker goes on where this one ended
    worker = Worker(store, cases, judge=failing, clock_ns=clock)
    for _ in range(DEFAULT_SETTINGS.max_attempts - 1):
        assert cases.set_aside() == []
        clock.now_ns += 10 * SECOND
        worker.look()
    (poisoned,) = cases.set_aside()
    assert (poisoned.case.span_id, poisoned.reason) == (first.span_id, "RuntimeError: poison")
    clock.now_ns += 3600 * SECOND
    assert worker.look() == [], "what is set aside is left alone"
    assert len(worker.run_once()) == 1
    assert len(cases.set_aside()) == 1, "it was tried again"
    poison.clear()
    assert len(worker.run_once()) == 2
    assert cases.set_aside() == []


def test_a_new_flag_brings_back_what_was_set_aside(cases: SqliteCaseStore) -> None:
    script = _deleted()
    poison = True

    def failing(case: Case) -> Verdict:
        if poison:
            raise RuntimeError("poison")
        return attribute(case)

    clock = _clock(script, 60)
    store = script.store()
    settings = WorkerSettings(max_attempts=1)
    worker = Worker(store, cases, judge=failing, settings=settings, clock_ns=clock)
    assert worker.look() == [] and len(cases.set_aside()) == 1
    poison = False
    script.flag("Enzo")
    store.apply([(LogPosition(0, 0), SpanFacts(flags=script.flags[-1:]))], LogPosition(0, 9))
    assert len(worker.look()) == 1 and cases.set_aside() == []


def test_a_settled_case_of_a_busy_graph_is_judged_again_less_and_less_often(
    cases: SqliteCaseStore,
) -> None:
    script = _deleted()
    store = script.store()
    clock = _clock(script, 60)
    judged = 0

    def counted(case: Case) -> Verdict:
        nonlocal judged
        judged += 1
        return attribute(case)

    worker = Worker(store, cases, judge=counted, clock_ns=clock)
    script.day(22)
    for second in range(120):
        script.say(f"Message {second}.")
        more = [SpanFacts(operation=op) for op in script.operations[-2:]]
        store.apply(((LogPosition(0, 0), each) for each in more), LogPosition(0, 1 + second))
        worker.look()
        clock.now_ns += SECOND
    assert judged == 6  # after 0, 2, 6, 14, 30 and 62 seconds; next after 126
    clock.now_ns += 10 * SECOND
    worker.look()
    assert judged == 7


def test_a_new_flag_is_looked_into_at_once(cases: SqliteCaseStore) -> None:
    script = _deleted()
    store = script.store()
    worker = Worker(store, cases, clock_ns=_clock(script, 60))
    (first,) = worker.look()
    script.flag("Enzo Ferrari", *script.flags[0].evidence)
    store.apply([(LogPosition(0, 0), SpanFacts(flags=script.flags[-1:]))], LogPosition(0, 9))
    (second,) = worker.look()
    assert (first["revision"], second["revision"]) == (1, 2)


def test_a_verdict_from_before_there_was_a_destination_is_written_back_once(
    cases: SqliteCaseStore,
) -> None:
    script = _deleted()
    clock = _clock(script, 60)
    store = script.store()
    (verdict,) = Worker(store, cases, target=None, clock_ns=clock).look()
    assert cases.verdicts_without_outbox() == [verdict]
    assert cases.verdicts_without_outbox(after=verdict["id"]) == []
    for _ in range(2):
        Worker(store, cases, clock_ns=clock).look()
        assert cases.outbox_counts()["pending"] == 4
        assert cases.verdicts_without_outbox() == []
    for entry in cases.outbox_due(clock()):
        cases.outbox_delivered(entry.id, clock())
    Worker(store, cases, clock_ns=clock).look()
    assert cases.outbox_counts()["pending"] == 0


def test_a_pass_ends_when_it_is_told_to_stop(cases: SqliteCaseStore) -> None:
    script = _deleted()
    worker = Worker(script.store(), cases, clock_ns=_clock(script, 60))
    stop = threading.Event()
    stop.set()
    assert worker.look(stop) == []
    assert len(worker.look()) == 1


def test_run_looks_until_it_is_stopped(cases: SqliteCaseStore) -> None:
    script = _deleted()
    settings = WorkerSettings(interval_seconds=0.01)
    worker = Worker(script.store(), cases, settings=settings, clock_ns=_clock(script, 60))
    stop = threading.Event()
    thread = threading.Thread(target=worker.run, args=(stop,))
    thread.start()
    deadline = threading.Event()
    while not cases.verdicts() and not deadline.wait(0.01):
        assert thread.is_alive()
    stop.set()
    thread.join(10)
    assert not thread.is_alive()
