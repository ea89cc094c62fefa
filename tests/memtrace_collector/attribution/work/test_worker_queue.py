"""What the worker waits for, how fast it goes, and what it leaves to others."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NoReturn

import pytest
from msgspec.structs import replace

from memtrace_collector.attribution.attribute import attribute
from memtrace_collector.attribution.verdict import Verdict
from memtrace_collector.attribution.work import intake, look
from memtrace_collector.attribution.work import worker as worker_module
from memtrace_collector.attribution.work.intake import case_id
from memtrace_collector.attribution.work.worker import Worker, WorkerSettings
from memtrace_collector.graph.case import Case
from memtrace_collector.graph.facts import Flag, Operation, SpanFacts
from memtrace_collector.log.position import LogPosition
from memtrace_collector.store.in_memory import InMemoryFactStore
from memtrace_collector.store.queue import JUDGED, UNRESOLVED, WAITING
from memtrace_collector.store.sqlite_cases import SqliteCaseStore
from memtrace_collector.telemetry.metrics import Exemplar, NullMetrics
from memtrace_collector.telemetry.telemetry import Telemetry
from tests.memtrace_collector.attribution.scripts import Script

SECOND = 1_000_000_000
AT = LogPosition(0, 1)


class Clock:
    """Nanoseconds that only a test moves."""

    def __init__(self, now_ns: int) -> None:
        self.now_ns = now_ns

    def __call__(self) -> int:
        return self.now_ns

    def move(self, seconds: float) -> None:
        self.now_ns += int(seconds * SECOND)


class Counting(NullMetrics):
    def __init__(self) -> None:
        self.counted: dict[str, int] = {}

    def add(
        self, name: str, value: float, exemplar: Exemplar | None = None, /, **attributes: str
    ) -> None:
        self.counted[name] = self.counted.get(name, 0) + value


@pytest.fixture
def cases(tmp_path: Path) -> Iterator[SqliteCaseStore]:
    with closing(SqliteCaseStore(tmp_path / "cases.db")) as store:
        yield store


def forgotten() -> Script:
    """A record that was deleted before it was asked for; not flagged."""
    script = Script()
    _, version = script.remember("My barber is Enzo.")
    script.day(2)
    script.delete(version)
    script.ask("Who is my barber?")
    script.reply("I do not know.")
    return script


def several(count: int) -> InMemoryFactStore:
    script = forgotten()
    script.flag("Enzo")
    for number in range(1, count):
        script.ask("Who is my barber, again?", day=20 + number)
        script.reply("I do not know.")
        script.flag("Enzo")
    return script.store()


def clock_after(script: Script) -> Clock:
    return Clock(script.operations[-1].end_ns + 60 * SECOND)


def put(
    store: InMemoryFactStore, operations: Sequence[Operation] = (), flags: Sequence[Flag] = ()
) -> None:
    facts = [SpanFacts(operation=op) for op in operations]
    store.apply([(AT, each) for each in [*facts, SpanFacts(flags=tuple(flags))]], AT)


def test_a_settled_case_is_judged_at_once_though_its_tail_is_open(cases: SqliteCaseStore) -> None:
    script = forgotten().flag("Enzo")
    clock = Clock(script.operations[-1].end_ns)
    (verdict,) = Worker(script.store(), cases, clock_ns=clock).look()
    assert verdict["revision"] == 1


@pytest.mark.fault("F28", "F30")
def test_an_unknown_producer_is_waited_for_until_it_arrives(cases: SqliteCaseStore) -> None:
    script = Script()
    _, version = script.remember("My barber is Enzo.")
    script.ask("Who is my barber?")
    script.reply("I do not know.", version)
    script.flag("Enzo")
    writer = [op for op in script.operations if op.service == "writer"]
    unnumbered = [replace(op, sequence=None) for op in script.operations]
    store = InMemoryFactStore()
    put(store, unnumbered[len(writer) :], script.flags)
    clock = clock_after(script)
    telemetry = Telemetry("test")
    worker = Worker(store, cases, clock_ns=clock, metrics=telemetry)
    assert worker.look() == [] and cases.queue_counts()[WAITING] == 1
    assert worker.unseen.count() == 1
    clock.move(200)
    assert worker.look() == []
    put(store, unnumbered[: len(writer)])
    clock.move(1)
    (verdict,) = worker.look()
    assert verdict["lineage"] != "incomplete"
    shown = telemetry.render()[0].decode()
    assert "memtrace_references_wait_seconds_sum 201.0" in shown and worker.unseen.count() == 0
    assert f'memtrace_lineage_total{{status="{verdict["lineage"]}"}} 1.0' in shown
    telemetry.close()


@pytest.mark.fault("F28")
def test_a_span_lost_for_good_holds_up_only_the_first_case(cases: SqliteCaseStore) -> None:
    script = Script()
    script.lose()
    script.remember("My barber is Enzo.")
    script.ask("Who is my barber?")
    script.reply("I do not know.")
    script.flag("Enzo", *(r for op in script.operations for r in op.outputs if r[:4] == "msg:"))
    store = script.store()
    clock = clock_after(script)
    worker = Worker(store, cases, clock_ns=clock)
    assert worker.look() == []
    clock.move(300)
    assert len(worker.look()) == 1
    script.ask("Who is my barber, again?", day=21)
    script.reply("I do not know.")
    script.flag("Enzo", *script.flags[0].evidence)
    put(store, script.operations[-4:], script.flags[-1:])
    clock.move(1)
    assert len(worker.look()) == 1


def test_what_is_looked_into_by_hand_is_not_waited_for(cases: SqliteCaseStore) -> None:
    script = Script()
    script.lose()
    script.ask("Who is my barber?")
    script.reply("I do not know.")
    script.lose()
    script.ask("And my dentist?", day=21)
    script.flag("Enzo")
    worker = Worker(script.store(), cases, clock_ns=clock_after(script))
    assert worker.look() == []
    assert len(worker.run_once()) == 1


def test_the_settle_time_is_a_setting(cases: SqliteCaseStore) -> None:
    script = forgotten().flag("Enzo")
    script.operations[0] = replace(script.operations[0], sequence=None)
    settings = WorkerSettings(settle_seconds=0)
    worker = Worker(script.store(), cases, settings=settings, clock_ns=clock_after(script))
    assert len(worker.look()) == 1


@pytest.mark.fault("F30")
def test_a_verdict_that_supersedes_says_what_it_changed_and_the_old_stays_readable(
    cases: SqliteCaseStore,
) -> None:
    script = forgotten().flag("Enzo")
    store = script.store()
    clock = clock_after(script)
    worker = Worker(store, cases, clock_ns=clock)
    (first,) = worker.look()
    assert first["supersedes"] is None
    script.flag("I do not know.", source="user")
    put(store, flags=script.flags[-1:])
    (second,) = worker.look()
    said = f"{first['stage']}/{first['error_type']}"
    superseded = second["supersedes"]
    assert superseded["says"] == f"Supersedes revision 1: it said {said}."
    assert second["explanation"].endswith(superseded["says"])
    assert superseded["case_trace"] == first["case_trace"] != second["case_trace"]
    assert cases.verdicts(history=True) == [first, second]
    assert cases.verdicts() == [second]
    assert worker.run_once() == [second], "the same finding is no new revision"


def test_a_flag_waits_for_its_answer_and_less_often_the_longer_it_takes(
    cases: SqliteCaseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = forgotten()
    answer = replace(script.operations[-1], response_id="resp-1")
    store = InMemoryFactStore()
    put(store, script.operations[:-1], [Flag(response_id="resp-1", expected="Enzo", origin="f")])
    clock = clock_after(script)
    worker = Worker(store, cases, clock_ns=clock)
    looked = 0
    genuine = store.response_operations

    def counted(response_id: str) -> list[Operation]:
        nonlocal looked
        looked += 1
        return genuine(response_id)

    monkeypatch.setattr(store, "response_operations", counted)
    for _ in range(600):
        assert worker.look() == []
        clock.move(1)
    assert looked == 12  # on arrival, at once, and after 1, 2, 4 … 512 seconds
    assert cases.queue_counts()[UNRESOLVED] == 1
    put(store, [answer])
    clock.move(1200)
    (verdict,) = worker.look()
    assert verdict["id"] == case_id(answer)
    assert cases.queue_counts()[UNRESOLVED] == 0


def test_a_flag_of_a_conversation_moves_on_to_its_later_answer(cases: SqliteCaseStore) -> None:
    script = Script()
    script.ask("Who is my barber?")
    script.retrieve()
    early = replace(script.answer("I do not know."), conversation_id="conv")
    script.ask("And my dentist?", day=21)
    script.retrieve()
    late = replace(script.answer("I do not know."), conversation_id="conv")
    store = InMemoryFactStore()
    flag = Flag(conversation_id="conv", expected="Enzo", origin="f")
    put(store, [*script.operations[:2], early], [flag])
    clock = clock_after(script)
    worker = Worker(store, cases, clock_ns=clock)
    assert [each["answer"]["spanId"] for each in worker.look()] == [early.span_id]
    put(store, [*script.operations[3:5], late])
    clock.move(10)
    assert [each["answer"]["spanId"] for each in worker.look()] == [late.span_id]
    clock.move(10_000)
    put(store, [replace(late, span_id="ab" * 8, outputs=(), sequence=None)])
    assert worker.look() == [], "the earlier answer is flagged no more"
    assert cases.queue_counts()[JUDGED] == 2


def test_the_pace_is_kept_and_counted(cases: SqliteCaseStore) -> None:
    metrics = Counting()
    store = several(7)
    clock = Clock(2 * 10**18)
    settings = WorkerSettings(cases_per_minute=3)
    worker = Worker(store, cases, settings=settings, clock_ns=clock, metrics=metrics)
    found = [len(worker.look())]
    for _ in range(3):
        clock.move(20)
        found.append(len(worker.look()))
    assert found == [3, 1, 1, 1]
    assert metrics.counted["memtrace.attribution.rate_limited"] == 4
    assert metrics.counted["memtrace.attribution.cases"] == 6
    assert len(worker.run_once()) == 7, "who asks by hand does not wait"


def test_no_more_cases_are_looked_at_at_once_than_configured(cases: SqliteCaseStore) -> None:
    together = threading.Barrier(3)
    now = 0
    most = 0
    lock = threading.Lock()

    def judge(case: Case) -> Verdict:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        together.wait(20)
        with lock:
            now -= 1
        return attribute(case)

    settings = WorkerSettings(concurrency=3)
    worker = Worker(several(6), cases, judge=judge, settings=settings, clock_ns=Clock(2 * 10**18))
    assert len({each["id"] for each in worker.look()}) == 6
    assert most == 3


def test_a_worker_that_lost_its_lease_stores_nothing(cases: SqliteCaseStore) -> None:
    clock = Clock(2 * 10**18)
    store = several(1)
    metrics = Counting()

    def slow(case: Case) -> Verdict:
        clock.move(61)
        assert len(other.look()) == 1, "it was taken over meanwhile"
        return attribute(case)

    other = Worker(store, cases, clock_ns=clock)
    worker = Worker(store, cases, judge=slow, clock_ns=clock, metrics=metrics)
    assert worker.look() == []
    assert metrics.counted["memtrace.attribution.leases_lost"] == 1
    assert len(cases.verdicts(history=True)) == 1


def test_a_case_at_which_worker_after_worker_died_is_set_aside(cases: SqliteCaseStore) -> None:
    store = several(2)
    clock = Clock(2 * 10**18)

    class DiedError(BaseException):
        """Ends the worker where it stands."""

    poison: list[str] = []

    def deadly(case: Case) -> Verdict:
        poison[:] = poison or [case.answer.span_id]
        if case.answer.span_id in poison:
            raise DiedError
        return attribute(case)

    for _ in range(look.MAX_DEATHS):
        worker = Worker(store, cases, judge=deadly, clock_ns=clock)
        with pytest.raises(DiedError):
            worker.look()
        clock.move(61)
    assert Worker(store, cases, judge=deadly, clock_ns=clock).look() == []
    assert len(cases.verdicts()) == 1, "the other case was judged"
    (aside,) = cases.set_aside()
    assert aside.case.span_id in poison and "workers ended" in aside.reason


def test_nothing_is_judged_while_the_graphs_are_being_rebuilt(cases: SqliteCaseStore) -> None:
    ready = False
    worker = Worker(several(1), cases, ready=lambda: ready, clock_ns=Clock(2 * 10**18))
    assert worker.look() == [] and cases.read_until() is None
    ready = True
    assert len(worker.look()) == 1


def test_facts_that_were_rebuilt_bring_no_new_revisions(cases: SqliteCaseStore) -> None:
    clock = Clock(2 * 10**18)
    (verdict,) = Worker(several(1), cases, clock_ns=clock).look()
    clock.move(3600)
    assert Worker(several(1), cases, clock_ns=clock).look() == []
    assert cases.verdicts(history=True) == [verdict]


@pytest.mark.fault("F30")
def test_two_workers_share_a_queue_and_judge_every_case_once(cases: SqliteCaseStore) -> None:
    store = several(20)
    judged: list[str] = []

    def judge(case: Case) -> Verdict:
        judged.append(case.answer.span_id)
        return attribute(case)

    workers = [Worker(store, cases, judge=judge, clock_ns=Clock(2 * 10**18)) for _ in range(2)]
    threads = [threading.Thread(target=each.look) for each in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(judged)) == 20
    assert len(cases.verdicts(history=True)) == 20
    assert cases.queue_counts()[JUDGED] == 20


def test_a_flood_of_flags_is_read_in_parts_between_which_cases_are_judged(
    cases: SqliteCaseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "PART", 1)
    monkeypatch.setattr(intake, "PARTS", 2)
    store = InMemoryFactStore()
    script = forgotten().flag("Enzo")
    put(store, script.operations)
    for number in range(7):
        put(store, (), [replace(script.flags[0], origin=f"{number}")])
    worker = Worker(store, cases, clock_ns=Clock(2 * 10**18))
    places = []
    for _ in range(4):
        worker.look()
        places.append(cases.read_until())
    assert len(set(places)) == 4
    assert len(cases.verdicts()) == 1
    worker = Worker(store, cases, clock_ns=Clock(2 * 10**18))
    assert len(worker.run_once()) == 1
    assert cases.read_until() == store.changes(None).until


def test_a_pass_reads_only_the_flags_that_are_new(
    cases: SqliteCaseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = several(30)
    worker = Worker(store, cases, clock_ns=Clock(2 * 10**18))
    assert len(worker.look()) == 30

    def not_again(trace_id: str) -> list[Operation]:
        raise AssertionError(f"{trace_id} is read though nothing changed")

    monkeypatch.setattr(store, "trace_operations", not_again)
    monkeypatch.setattr(store, "flags", not_again)
    assert worker.look() == []


def test_a_pass_is_bounded_and_the_next_goes_on(
    cases: SqliteCaseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "MAX_IN_A_PASS", 4)
    worker = Worker(several(10), cases, clock_ns=Clock(2 * 10**18))
    assert [len(worker.look()) for _ in range(4)] == [4, 4, 2, 0]


@pytest.mark.fault("F28", "F30")
def test_a_gap_that_another_owners_span_closes_is_noticed(cases: SqliteCaseStore) -> None:
    script = Script()
    script.remember("My barber is Enzo.")
    (elsewhere,) = [script.add("ingest", graph="user:other", parent="")]
    script.day(2)
    script.say("Good morning.")
    script.ask("Who is my barber?")
    script.reply("I do not know.")
    script.flag("Enzo", *(r for op in script.operations for r in op.outputs if r[:4] == "msg:"))
    store = InMemoryFactStore()
    put(store, [op for op in script.operations if op is not elsewhere], script.flags)
    clock = clock_after(script)
    looked = 0

    def judge(case: Case) -> Verdict:
        nonlocal looked
        looked += 1
        return attribute(case)

    worker = Worker(store, cases, judge=judge, clock_ns=clock)
    worker.look()
    clock.move(300)
    (first,) = worker.look()
    put(store, [elsewhere])
    clock.move(400)
    (second,) = worker.look()
    assert (first["absence"], second["absence"]) == ("broken", "assumed")
    assert looked == 2


def test_what_a_model_found_stands_until_the_rules_find_something_new(
    cases: SqliteCaseStore,
) -> None:
    script = forgotten().flag("Enzo")
    store = script.store()
    clock = clock_after(script)
    worker = Worker(store, cases, clock_ns=clock)
    (by_rules,) = worker.look()

    def model(case: Case) -> Verdict:
        return dataclasses.replace(attribute(case), method="model", score=0.5)

    (by_model,) = worker.run_once(judge=model)
    assert (by_model["revision"], by_model["method"]) == (2, "model")
    script.day(30)
    script.say("Good morning.")
    put(store, script.operations[-2:])
    clock.move(3600)
    assert worker.look() == [] and cases.verdicts() == [by_model]
    script.flag("I do not know.", source="user")
    put(store, flags=script.flags[-1:])
    (changed,) = worker.look()
    assert (changed["revision"], changed["method"]) == (3, by_rules["method"])


@pytest.mark.fault("F1")
@pytest.mark.parametrize(("name", "found"), [("the only one", 1), ("", 0)])
def test_only_a_worker_of_the_same_name_takes_over_a_dead_one_s_lease_at_once(
    cases: SqliteCaseStore, name: str, found: int
) -> None:
    script = forgotten().flag("Enzo")
    clock = clock_after(script)

    def die(_: object) -> NoReturn:
        raise SystemExit

    named = WorkerSettings(name=name)
    with pytest.raises(SystemExit):
        Worker(script.store(), cases, judge=die, settings=named, clock_ns=clock).look()
    clock.move(1)
    again = Worker(script.store(), cases, settings=named, clock_ns=clock)
    assert len(again.look()) == found
