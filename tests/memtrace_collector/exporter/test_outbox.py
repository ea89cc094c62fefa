from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memtrace_collector.exporter.delivery import DELIVERED, Delivery
from memtrace_collector.exporter.otlp import OtlpDestination
from memtrace_collector.exporter.outbox import (
    FORGOTTEN_AT_ONCE,
    KEPT_DAYS,
    ROWS_IN_A_TURN,
    OutboxSender,
    attempts_within,
)
from memtrace_collector.store.base import DEFAULT_DESTINATION, OutboxEntry
from memtrace_collector.store.postgres.cases import PostgresCaseStore
from tests.receivers import running

SECOND = 1_000_000_000


@dataclass
class Row:
    id: str
    payload: bytes = b""
    signal: str = "traces"
    attempts: int = 0
    not_before_ns: int = 0
    last_error: str = ""
    state: str = "pending"
    destination: str = "scripted"
    delivered_ns: int = 0

    def is_due(self, now_ns: int, destination: str) -> bool:
        waits = self.state == "pending" and self.destination == destination
        return waits and self.not_before_ns <= now_ns


@dataclass
class Outbox:
    """The outbox part of a case store, over a list."""

    rows: list[Row]

    def outbox_due(self, now_ns: int, limit: int = 100, destination: str = "scripted") -> list[Row]:
        due = [row for row in self.rows if row.is_due(now_ns, destination)]
        return sorted(due, key=lambda row: row.not_before_ns)[:limit]

    def outbox_take(
        self,
        sender: str,
        now_ns: int,
        lease_ns: int,
        limit: int = 1,
        destination: str = "scripted",
    ) -> list[Row]:
        return self.outbox_due(now_ns, limit, destination)

    def outbox_delivered(self, entry_id: str, now_ns: int, destination: str = "scripted") -> None:
        row = self._row(entry_id, destination)
        row.state, row.delivered_ns = "delivered", now_ns

    def outbox_failed(
        self, entry_id: str, error: str, retry_at_ns: int | None, destination: str = "scripted"
    ) -> None:
        row = self._row(entry_id, destination)
        row.attempts += 1
        row.last_error = error
        row.not_before_ns = retry_at_ns or 0
        row.state = "abandoned" if retry_at_ns is None else "pending"

    def outbox_declined(self, entry_id: str, reason: str, destination: str = "scripted") -> None:
        row = self._row(entry_id, destination)
        row.state, row.last_error, row.payload = "declined", reason, b""

    def outbox_forget(self, before_ns: int, limit: int = 1_000) -> int:
        kept = [row for row in self.rows if row.state == "delivered" and row.payload]
        old = [row for row in kept if row.delivered_ns < before_ns][:limit]
        for row in old:
            row.payload = b""
        return len(old)

    def _row(self, entry_id: str, destination: str) -> Row:
        return next(
            row for row in self.rows if (row.id, row.destination) == (entry_id, destination)
        )


@dataclass
class Scripted:
    """A destination that answers as told, then delivers."""

    answers: list[Delivery]
    name: str = "scripted"
    seen: list[bytes] = field(default_factory=list)

    def send(self, signal: str, payload: bytes, encoding: str = "protobuf") -> Delivery:
        self.seen.append(payload)
        return self.answers.pop(0) if self.answers else DELIVERED


class Clock:
    def __init__(self) -> None:
        self.now = 1_000 * SECOND

    def __call__(self) -> int:
        return self.now


def test_log_records_are_declined_where_only_traces_are_kept() -> None:
    nowhere = Delivery("refused", "HTTP 404", is_not_offered=True)
    outbox = Outbox([Row("record", b"1", "logs"), Row("span", b"2"), Row("bad", b"3", "logs")])
    bad = Delivery("refused", "HTTP 400")
    sender = OutboxSender(lambda: [outbox], Scripted([nowhere, nowhere, bad]), clock_ns=Clock())
    sender.run_once()
    assert [row.state for row in outbox.rows] == ["declined", "abandoned", "abandoned"]


def test_rows_are_delivered_once() -> None:
    outbox, destination = Outbox([Row("a", b"1"), Row("b", b"2")]), Scripted([])
    sender = OutboxSender(lambda: [outbox], destination, clock_ns=Clock())
    assert [sender.run_once(), sender.run_once()] == [2, 0]
    assert destination.seen == [b"1", b"2"]
    assert {row.state for row in outbox.rows} == {"delivered"}


def test_a_payload_delivered_a_week_ago_is_dropped_whoever_s_it_is() -> None:
    clock, stop = Clock(), threading.Event()
    many = Outbox([Row(f"{n}", b"1") for n in range(FORGOTTEN_AT_ONCE + 50)])
    one = Outbox([Row("a", b"1"), Row("waiting", b"1", destination="other")])
    sender = OutboxSender(lambda: [many, one], Scripted([]), clock_ns=clock)
    while sender.run_once():
        pass
    assert sender.forget() == 0
    clock.now += int((KEPT_DAYS - 0.1) * 86_400 * SECOND)
    assert sender.forget() == 0
    clock.now += int(0.2 * 86_400 * SECOND)
    assert [sender.forget(), sender.forget(), sender.forget()] == [FORGOTTEN_AT_ONCE + 1, 50, 0]
    assert [row.payload for row in one.rows] == [b"", b"1"]
    late = Row("late", b"1", state="delivered", delivered_ns=1)
    one.rows.append(late)
    assert sender.forget() == 0, "it looks once an hour"
    clock.now += 3_600 * SECOND
    thread = threading.Thread(target=sender.run, args=(stop,))
    thread.start()
    give_up = time.monotonic() + 20
    while late.payload and time.monotonic() < give_up:
        time.sleep(0.01)
    stop.set()
    thread.join(10)
    assert not late.payload and not thread.is_alive()


@pytest.mark.fault("F22")
@pytest.mark.otlp_rule("C16")
def test_a_refused_row_is_abandoned_with_its_reason_and_the_next_goes_out() -> None:
    outbox = Outbox([Row("a"), Row("b")])
    destination = Scripted([Delivery("refused", "2 rejected: no", rejected=2)])
    assert OutboxSender(lambda: [outbox], destination, clock_ns=Clock()).run_once() == 1
    assert [row.state for row in outbox.rows] == ["abandoned", "delivered"]
    assert outbox.rows[0].last_error == "2 rejected: no"


@pytest.mark.fault("F22")
@pytest.mark.otlp_rule("C25")
def test_a_row_is_retried_later_and_later_until_it_is_given_up() -> None:
    clock, outbox = Clock(), Outbox([Row("a")])
    destination = Scripted([Delivery("retry", "down")] * 10_000)
    sender = OutboxSender(lambda: [outbox], destination, clock_ns=clock, give_up_days=1)
    waits = []
    row = outbox.rows[0]
    while row.state == "pending":
        sender.run_once()
        assert sender.run_once() == 0, "not before its time"
        if row.state == "pending":
            waits.append((row.not_before_ns - clock.now) / SECOND)
            clock.now = row.not_before_ns
    assert row.state == "abandoned"
    assert "given up" in row.last_error
    assert waits[0] <= 1
    assert max(waits) <= 300
    assert 0.7 * 86_400 < sum(waits) <= 86_400
    assert len(destination.seen) == row.attempts == attempts_within(86_400)


@pytest.mark.otlp_rule("C25")
@pytest.mark.parametrize(("wish", "expected"), [(30.0, 30.0), (1e9, 300.0)])
def test_the_destination_s_own_wish_is_respected_within_reason(
    wish: float, expected: float
) -> None:
    clock, outbox = Clock(), Outbox([Row("a")])
    destination = Scripted([Delivery("retry", "busy", wish)])
    OutboxSender(lambda: [outbox], destination, clock_ns=clock).run_once()
    assert outbox.rows[0].not_before_ns == clock.now + expected * SECOND


def test_a_dead_destination_costs_one_attempt_per_pass() -> None:
    outbox = Outbox([Row("a"), Row("b"), Row("c")])
    destination = Scripted([Delivery("retry", "down")] * 3)
    OutboxSender(lambda: [outbox], destination, clock_ns=Clock()).run_once()
    assert len(destination.seen) == 1


def test_a_dead_destination_holds_up_no_other() -> None:
    clock = Clock()
    outbox = Outbox([Row("a", b"1", destination=name) for name in ("dead", "alive")])
    dead, alive = Scripted([Delivery("retry", "down")] * 3, "dead"), Scripted([], "alive")
    senders = [OutboxSender(lambda: [outbox], each, clock_ns=clock) for each in (dead, alive)]
    assert [sender.run_once() for sender in senders] == [0, 1]
    assert [row.state for row in outbox.rows] == ["pending", "delivered"]
    clock.now = outbox.rows[0].not_before_ns
    assert [sender.run_once() for sender in senders] == [0, 0]
    assert (len(dead.seen), len(alive.seen)) == (2, 1), "what one has, it does not get again"


@pytest.mark.fault("F24")
def test_tenants_take_turns_at_a_destination() -> None:
    busy = Outbox([Row(f"busy{n}", b"busy") for n in range(3 * ROWS_IN_A_TURN)])
    quiet = Outbox([Row("quiet", b"quiet")])
    destination = Scripted([])
    sender = OutboxSender(lambda: [busy, quiet], destination, clock_ns=Clock())
    assert sender.run_once() == ROWS_IN_A_TURN + 1
    assert destination.seen[-1] == b"quiet" and not sender.is_empty()


def _row(name: str) -> OutboxEntry:
    return OutboxEntry(id=name, case_id="c", revision=1, signal="traces", payload=name.encode())


def test_what_one_sender_is_just_sending_is_sent_by_no_other(postgres_url: str) -> None:
    with closing(PostgresCaseStore(postgres_url)) as outbox:
        outbox.enqueue([_row(name) for name in "abcd"])
        seen: list[bytes] = []
        sent: list[int] = []

        class Busy:
            name = DEFAULT_DESTINATION

            def send(self, signal: str, payload: bytes, encoding: str = "protobuf") -> Delivery:
                seen.append(payload)
                if payload == b"a":
                    sent.append(other.run_once())
                    assert not other.is_empty(), "the row that is just sent"
                return DELIVERED

        one, other = (OutboxSender(lambda: [outbox], Busy()) for _ in range(2))
        sent.append(one.run_once())
        assert (seen, sent) == ([b"a", b"b", b"c", b"d"], [3, 1])
        assert outbox.outbox_counts()["delivered"] == 4 and one.is_empty()


@pytest.mark.fault("F1", "F22")
def test_the_rows_of_a_sender_that_died_go_to_another(postgres_url: str) -> None:
    class Died(BaseException):
        """As SIGKILL: nobody behind it runs."""

    class Killing:
        name = DEFAULT_DESTINATION

        def send(self, signal: str, payload: bytes, encoding: str = "protobuf") -> Delivery:
            raise Died

    clock = Clock()
    with closing(PostgresCaseStore(postgres_url)) as outbox:
        outbox.enqueue([_row("a")])
        with pytest.raises(Died):
            OutboxSender(lambda: [outbox], Killing(), clock_ns=clock).run_once()
        destination = Scripted([], DEFAULT_DESTINATION)
        sender = OutboxSender(lambda: [outbox], destination, clock_ns=clock)
        assert sender.run_once() == 0
        clock.now += 60 * SECOND
        assert sender.run_once() == 1 and destination.seen == [b"a"]


@pytest.mark.fault("F22")
def test_a_destination_that_flaps_gets_each_row_once() -> None:
    clock = Clock()
    outbox = Outbox([Row(f"r{n}", b"%d" % n) for n in range(9)])
    answers = [DELIVERED if n % 3 else Delivery("retry", "flapping") for n in range(40)]
    destination = Scripted(answers)
    sender = OutboxSender(lambda: [outbox], destination, clock_ns=clock)
    delivered = 0
    for _ in range(40):
        delivered += sender.run_once()
        clock.now += 400 * SECOND
    assert delivered == 9 and {row.state for row in outbox.rows} == {"delivered"}


@pytest.mark.fault("F22")
def test_a_row_that_is_refused_for_ever_is_seen_and_holds_up_nothing() -> None:
    counted: Counter[str] = Counter()

    class Counting:
        def add(self, name: str, value: int, **attributes: str) -> None:
            counted[name] += value

    outbox = Outbox([Row("bad"), Row("good")])
    destination = Scripted([Delivery("refused", "HTTP 400: no such field")])
    OutboxSender(lambda: [outbox], destination, clock_ns=Clock(), metrics=Counting()).run_once()
    assert [row.state for row in outbox.rows] == ["abandoned", "delivered"]
    assert counted["memtrace.outbox.abandoned"] == 1


def test_an_outbox_that_fails_does_not_end_the_sender(caplog: pytest.LogCaptureFixture) -> None:
    failed = threading.Event()
    stop = threading.Event()

    class Failing(Outbox):
        def outbox_take(self, *_: object) -> list[Row]:
            failed.set()
            raise OSError("disk I/O error")

    sender = OutboxSender(lambda: [Failing([])], Scripted([]))
    thread = threading.Thread(target=sender.run, args=(stop,))
    thread.start()
    assert failed.wait(10)
    assert thread.is_alive()
    stop.set()
    thread.join(10)
    assert not thread.is_alive()
    assert "outbox could not be read" in caplog.text


def test_what_waited_for_a_dead_receiver_arrives_when_it_is_up(tmp_path: Path) -> None:
    with running(tmp_path / "before") as before:
        port = before.server.http_port
    request = ExportTraceServiceRequest()
    request.resource_spans.add().scope_spans.add().spans.add(trace_id=b"\1" * 16, span_id=b"\2" * 8)
    outbox = Outbox([Row("a", request.SerializeToString())])
    destination = OtlpDestination("scripted", f"http://127.0.0.1:{port}")
    stop = threading.Event()
    thread = threading.Thread(target=OutboxSender(lambda: [outbox], destination).run, args=(stop,))
    thread.start()
    give_up = time.monotonic() + 20
    while not outbox.rows[0].attempts and time.monotonic() < give_up:
        time.sleep(0.01)
    assert outbox.rows[0].state == "pending"
    with running(tmp_path / "after", http_port=port) as after:
        while outbox.rows[0].state == "pending" and time.monotonic() < give_up:
            time.sleep(0.01)
        stop.set()
        thread.join(10)
        assert [record.body for record in after.records()] == [request.SerializeToString()]
    destination.close()
    assert outbox.rows[0].state == "delivered"
