"""Delivering outboxes: each row until it is taken, refused or too old."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Protocol

from memtrace_collector.exporter.backoff import delay_seconds
from memtrace_collector.exporter.delivery import Delivery, Outcome
from memtrace_collector.log.format import Encoding, Signal
from memtrace_collector.telemetry.metrics import NULL_METRICS, Metrics
from memtrace_collector.telemetry.passes import Passes

logger = logging.getLogger(__name__)

GIVE_UP_DAYS = 7.0
ROWS_IN_A_TURN = 20
KEPT_DAYS = 7.0
"""How long a payload is kept that was delivered, for whoever looks into what was sent."""
FORGOTTEN_AT_ONCE = 200
_FIRST_RETRY_SECONDS = 1.0
_LONGEST_RETRY_SECONDS = 300.0
_IDLE_SECONDS = 0.5
_AFTER_FAILURE_SECONDS = 5.0
_NS = 1_000_000_000
_DAY_NS = 86_400 * _NS
_FORGET_EVERY_NS = 3_600 * _NS
_LEASE_NS = 60 * _NS
"""Longer than any attempt to send: what a sender had that died goes to another after it."""


class Entry(Protocol):
    """One row; see ``store.base.OutboxEntry``."""

    @property
    def id(self) -> str: ...
    @property
    def signal(self) -> str: ...
    @property
    def payload(self) -> bytes: ...
    @property
    def attempts(self) -> int: ...
    @property
    def last_error(self) -> str: ...


class Outbox(Protocol):
    """The outbox part of ``store.base.CaseStore``."""

    def outbox_due(
        self, now_ns: int, limit: int = ..., destination: str = ...
    ) -> Sequence[Entry]: ...
    def outbox_take(
        self, sender: str, now_ns: int, lease_ns: int, limit: int = ..., destination: str = ...
    ) -> Sequence[Entry]: ...
    def outbox_delivered(self, entry_id: str, now_ns: int, destination: str = ...) -> None: ...
    def outbox_failed(
        self, entry_id: str, error: str, retry_at_ns: int | None, destination: str = ...
    ) -> None: ...
    def outbox_declined(self, entry_id: str, reason: str, destination: str = ...) -> None: ...
    def outbox_not_seen(
        self, entry_id: str, reason: str, retry_at_ns: int | None, destination: str = ...
    ) -> bool: ...
    def outbox_forget(self, before_ns: int, limit: int = ...) -> int: ...


class Destination(Protocol):
    """See :class:`~memtrace_collector.exporter.otlp.OtlpDestination`."""

    @property
    def name(self) -> str: ...
    def send(self, signal: Signal, payload: bytes, encoding: Encoding = ...) -> Delivery: ...


def tell_nobody(outbox: Outbox, entry: Entry) -> None:
    """Of what was delivered."""


class OutboxSender:
    """Sends the due rows of every outbox to one destination.

    Each destination has a sender of its own, and rows of its own: one that is dead holds up no
    other. Several processes may send to one destination: each row is in the hands of one of them.

    Args:
        outboxes: those of all tenants, asked for at each pass; they take turns.
        clock_ns: nanoseconds since the Unix epoch.
        give_up_days: how long a row is tried, counted in the back-offs behind it.
        name: of the only sender that these outboxes ever have for the destination: after a
            restart it goes on with what it had. Empty: there may be others.
        delivered: told of each row that the destination took.
    """

    def __init__(
        self,
        outboxes: Callable[[], Sequence[Outbox]],
        destination: Destination,
        *,
        clock_ns: Callable[[], int] = time.time_ns,
        give_up_days: float = GIVE_UP_DAYS,
        name: str = "",
        delivered: Callable[[Outbox, Entry], None] = tell_nobody,
        metrics: Metrics = NULL_METRICS,
    ) -> None:
        self._outboxes = outboxes
        self._name = name or uuid.uuid4().hex
        self._destination = destination
        self._clock_ns = clock_ns
        self._max_attempts = attempts_within(give_up_days * 86_400)
        self._delivered = delivered
        self._metrics = metrics
        self._forget_at_ns = 0
        self.is_held_up = False
        """The destination did not take the last row, which is tried again."""

    def run_once(self, stop: threading.Event | None = None) -> int:
        """One pass over what is due, until ``stop``; the number of rows delivered.

        Stops at the first row that has to be retried: the destination may be down, and the
        next row would only wait for the same time-out. A row that is due for longer goes before
        one that failed since, so that no row is in the way of all others.
        """
        delivered = 0
        for outbox in self._outboxes():
            for _ in range(ROWS_IN_A_TURN):
                if stop is not None and stop.is_set():
                    return delivered
                outcome = self._deliver_one(outbox)
                if outcome is None:
                    break
                delivered += outcome == "delivered"
                if outcome == "retry":
                    return delivered
        return delivered

    def is_empty(self) -> bool:
        """Nothing is due, and nobody is just sending anything."""
        name, now_ns = self._destination.name, self._clock_ns()
        return not any(outbox.outbox_due(now_ns, 1, name) for outbox in self._outboxes())

    def run(self, stop: threading.Event) -> None:
        """Deliver until ``stop``."""
        passes = Passes(
            "the outbox could not be read or written",
            "memtrace.outbox.failures",
            self._metrics,
            pause_seconds=_AFTER_FAILURE_SECONDS,
        )
        passes.run(lambda: self._pass(stop), stop)

    def forget(self) -> int:
        """Drop payloads that were delivered long ago, some at a time; how many. Looks for more
        once an hour."""
        now_ns = self._clock_ns()
        if now_ns < self._forget_at_ns:
            return 0
        before_ns = now_ns - int(KEPT_DAYS * _DAY_NS)
        forgotten = [
            outbox.outbox_forget(before_ns, FORGOTTEN_AT_ONCE) for outbox in self._outboxes()
        ]
        if FORGOTTEN_AT_ONCE not in forgotten:
            self._forget_at_ns = now_ns + _FORGET_EVERY_NS
        self._metrics.add("memtrace.outbox.forgotten", sum(forgotten))
        return sum(forgotten)

    def _pass(self, stop: threading.Event) -> float:
        """Seconds to pause after it."""
        if self.run_once(stop):
            return 0.0
        self.forget()
        return _IDLE_SECONDS

    def _deliver_one(self, outbox: Outbox) -> Outcome | None:
        """None: no row is due that nobody else has."""
        taken = outbox.outbox_take(
            self._name, self._clock_ns(), _LEASE_NS, 1, self._destination.name
        )
        return self._deliver(outbox, taken[0]) if taken else None

    def _deliver(self, outbox: Outbox, entry: Entry) -> Outcome:
        delivery = self._send(entry)
        self._metrics.add("memtrace.outbox.attempts", 1, outcome=delivery.outcome)
        self.is_held_up = delivery.outcome == "retry"
        if delivery.outcome == "delivered":
            outbox.outbox_delivered(entry.id, self._clock_ns(), self._destination.name)
            self._delivered(outbox, entry)
        elif delivery.is_not_offered and entry.signal == "logs":
            # Jaeger and Tempo keep traces only; the verdict stands there
            outbox.outbox_declined(entry.id, delivery.message, self._destination.name)
        elif delivery.outcome == "refused":
            self._abandon(outbox, entry, delivery.message)
        else:
            self._retry_later(outbox, entry, delivery)
        return delivery.outcome

    def _send(self, entry: Entry) -> Delivery:
        if entry.signal not in ("traces", "logs"):
            return Delivery("refused", f"no such signal: {entry.signal!r}")
        signal: Signal = "traces" if entry.signal == "traces" else "logs"
        return self._destination.send(signal, entry.payload)

    def _retry_later(self, outbox: Outbox, entry: Entry, delivery: Delivery) -> None:
        attempt = entry.attempts + 1
        if attempt >= self._max_attempts:
            self._abandon(outbox, entry, f"given up after {attempt} attempts: {delivery.message}")
            return
        delay = max(_retry_delay(attempt, entry.id), delivery.retry_after_s or 0)
        at_ns = self._clock_ns() + int(min(delay, _LONGEST_RETRY_SECONDS) * _NS)
        outbox.outbox_failed(entry.id, delivery.message, at_ns, self._destination.name)

    def _abandon(self, outbox: Outbox, entry: Entry, reason: str) -> None:
        logger.warning("outbox %s: not delivered: %s", entry.id, reason)
        self._metrics.add("memtrace.outbox.abandoned", 1)
        outbox.outbox_failed(entry.id, reason, None, self._destination.name)


def attempts_within(seconds: float) -> int:
    """How many attempts fit into a time, with the longest back-offs between them."""
    attempts, elapsed, delay = 1, 0.0, _FIRST_RETRY_SECONDS
    while elapsed < seconds:
        elapsed += delay
        delay = min(_LONGEST_RETRY_SECONDS, delay * 2)
        attempts += 1
    return attempts


def _retry_delay(attempt: int, key: str) -> float:
    return delay_seconds(
        attempt, first=_FIRST_RETRY_SECONDS, longest=_LONGEST_RETRY_SECONDS, key=key
    )
