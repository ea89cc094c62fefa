"""Looks into flagged answers: from the queue of cases to stored verdicts and rows of the outbox.

Everything a worker must remember is in the case store, so that any number of workers share one
queue and each may end at any point. A verdict, its outbox rows and the end of the lease are one
transaction, and only the current holder of the lease can make it.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from memtrace_collector.attribution.attribute import attribute
from memtrace_collector.attribution.judge import Judge
from memtrace_collector.attribution.superseding import Json
from memtrace_collector.attribution.work import intake
from memtrace_collector.attribution.work.look import Look
from memtrace_collector.attribution.work.pace import Pace
from memtrace_collector.attribution.work.settling import WaitedFor
from memtrace_collector.attribution.work.unseen import Unseen
from memtrace_collector.attribution.writeback.target import WriteBack
from memtrace_collector.graph import flags
from memtrace_collector.graph.facts import Flag
from memtrace_collector.graph.loader import load_case
from memtrace_collector.store.base import CaseStore, FactStore
from memtrace_collector.store.queue import Lease, QueuedCase
from memtrace_collector.telemetry.metrics import NULL_METRICS, Metrics
from memtrace_collector.telemetry.passes import Passes

logger = logging.getLogger(__name__)

MAX_IN_A_PASS = 200
"""Cases that one thread looks at before what has changed meanwhile is read."""
_NS = 1_000_000_000
DEFAULT_TARGET = WriteBack()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """Times in seconds."""

    interval_seconds: float = 1.0
    """Pause between two passes of :meth:`Worker.run`."""
    settle_seconds: float = 300.0
    """How long a case with gaps or unknown producers is waited for before it is judged as is."""
    lease_seconds: float = 60.0
    max_attempts: int = 3
    """A case that failed so often is set aside."""
    cases_per_minute: int = 6_000
    concurrency: int = 1
    """Cases that this worker looks at at the same time."""
    name: str = ""
    """Of the only worker that these cases ever have: what an earlier one of that name had leased
    when it died is due at once. Empty: one of many."""


DEFAULT_SETTINGS = WorkerSettings()


class Worker:
    """Attributes the flagged answers of one tenant.

    Args:
        reader: the tenant's graphs.
        cases: where the queue, verdicts and the outbox live.
        judge: how a case comes to its verdict.
        target: what the destination of verdicts takes; None: they stay here.
        ready: False while the graphs are still being rebuilt; nothing is judged until then.
        clock_ns: nanoseconds since the Unix epoch.
    """

    def __init__(
        self,
        reader: FactStore,
        cases: CaseStore,
        *,
        judge: Judge = attribute,
        target: WriteBack | None = DEFAULT_TARGET,
        settings: WorkerSettings = DEFAULT_SETTINGS,
        ready: Callable[[], bool] = lambda: True,
        clock_ns: Callable[[], int] = time.time_ns,
        metrics: Metrics = NULL_METRICS,
    ) -> None:
        self._reader = reader
        self._cases = cases
        self._judge = judge
        self._settings = settings
        self._ready = ready
        self._clock_ns = clock_ns
        self._metrics = metrics
        self._name = settings.name or uuid.uuid4().hex
        self._lease_ns = int(settings.lease_seconds * _NS)
        self._pace = Pace(settings.cases_per_minute, clock_ns())
        self._lock = threading.Lock()
        self._is_behind = False
        """The last pass left something that the next should not wait for."""
        self._written_back: str | None = "" if target else None
        """Verdicts of cases up to this one have been sent or need not be; None: of all."""
        self.unseen = Unseen(metrics, clock_ns)
        """What its last looks at cases missed."""
        self._look = Look(
            reader,
            cases,
            target,
            settings.settle_seconds,
            settings.max_attempts,
            clock_ns,
            metrics,
            WaitedFor(),
            self.unseen,
        )
        if settings.name:
            cases.renew(settings.name, clock_ns(), 0)

    def run(self, stop: threading.Event) -> None:
        """Work until ``stop``, and keep the leases of what is being judged."""

        def renew() -> float:
            self.renew()
            return self._settings.lease_seconds / 4

        counter, pause = "memtrace.attribution.failures", self._settings.interval_seconds
        renewing = Passes(
            "leases could not be renewed", counter, self._metrics, pause_seconds=pause
        )
        passes = Passes(
            "a pass over the flagged answers failed", counter, self._metrics, pause_seconds=pause
        )
        keeper = threading.Thread(
            target=renewing.run, args=(renew, stop), name="memtrace-leases", daemon=True
        )
        keeper.start()
        passes.run(lambda: self.turn(stop), stop)
        keeper.join()

    def turn(self, stop: threading.Event, limit: int = 0) -> float:
        """One background pass, as :meth:`look`; the seconds to pause after it."""
        self.look(stop, limit)
        return 0.0 if self._is_behind else self._settings.interval_seconds

    def renew(self) -> None:
        """Keep the leases of what is being judged."""
        self._cases.renew(self._name, self._clock_ns(), self._lease_ns)

    def look(self, stop: threading.Event | None = None, limit: int = 0) -> list[Json]:
        """One background pass: look at the cases that are due; the new verdicts.

        Ends early when ``stop`` is set, the pace is reached or every thread has looked at
        ``limit`` cases (0: :data:`MAX_IN_A_PASS`), and does nothing while :meth:`run_once` runs.
        """
        self._is_behind = False
        if not self._ready() or not self._lock.acquire(blocking=False):
            return []
        try:
            self._is_behind = not self._read_changes(stop)
            self._write_back_older(stop)
            if self._settings.concurrency == 1:
                return list(self._work_off(stop, limit))
            count = self._settings.concurrency
            with ThreadPoolExecutor(count, thread_name_prefix="memtrace-case") as threads:
                parts = threads.map(lambda _: list(self._work_off(stop, limit)), range(count))
                return [verdict for part in parts for verdict in part]
        finally:
            self._lock.release()

    def run_once(
        self, graph_id: str = "", evidence: bool = True, judge: Judge | None = None
    ) -> list[Json]:
        """Judge every flagged answer now, settled or not, also what was set aside; the current
        verdict of each, new or not.

        Args:
            graph_id: only answers of this graph; empty: all.
            evidence: False does as if no flag named its evidence; such verdicts are shown
                and not stored.
            judge: how, this time; None: as the worker always does.
        """
        judge = judge or self._judge
        with self._lock:
            while not self._read_changes():
                pass
            self._resolve_all()
            found = []
            for case in self._queued(graph_id):
                if evidence:
                    self._insist(case, judge)
                    verdict = self._cases.verdict(case.case_id)
                else:
                    verdict = self._look.shown(case, judge)
                if verdict is not None:
                    found.append(dict(verdict))
            return found

    def _read_changes(self, stop: threading.Event | None = None) -> bool:
        return intake.read_changes(self._reader, self._cases, self._clock_ns(), stop)

    def _work_off(self, stop: threading.Event | None, limit: int) -> Iterator[Json]:
        for _ in range(limit or MAX_IN_A_PASS):
            if stop is not None and stop.is_set():
                return
            if not self._pace.spend(self._clock_ns()):
                self._metrics.add("memtrace.attribution.rate_limited", 1)
                return
            leases = self._cases.take(self._name, self._clock_ns(), self._lease_ns)
            if not leases or not leases[0].case.is_resolved:
                self._pace.give_back()
            if not leases:
                return
            verdict = self._look.guarded(leases[0], self._judge, wait=True).verdict
            if verdict is not None:
                yield verdict
        self._is_behind = True

    def _queued(self, graph_id: str) -> Iterator[QueuedCase]:
        part = self._cases.queued(graph_id)
        while part:
            yield from part
            part = self._cases.queued(graph_id, part[-1])

    def _resolve_all(self) -> None:
        part = self._cases.unresolved()
        while part:
            for case in part:
                lease = self._claim(case)
                if lease is not None:
                    self._look.guarded(lease, self._judge, wait=False)
            part = self._cases.unresolved(part[-1])

    def _insist(self, case: QueuedCase, judge: Judge) -> None:
        """Judge until it succeeds or is set aside, unless another worker has it."""
        for _ in range(self._settings.max_attempts):
            lease = self._claim(case)
            if lease is None:
                return
            if not self._look.guarded(lease, judge, wait=False).failed:
                return

    def _claim(self, case: QueuedCase) -> Lease | None:
        return self._cases.claim(case.case_id, self._name, self._clock_ns(), self._lease_ns)

    def _write_back_older(self, stop: threading.Event | None) -> None:
        """Enqueue verdicts that were stored when there was nowhere to send them."""
        while self._written_back is not None and not (stop is not None and stop.is_set()):
            verdicts = self._cases.verdicts_without_outbox(self._written_back)
            for verdict in verdicts:
                self._write_back_guarded(verdict)
            self._written_back = str(verdicts[-1]["id"]) if verdicts else None

    def _write_back_guarded(self, verdict: Mapping[str, Any]) -> None:
        try:
            self._write_back(verdict)
        except Exception:
            self._metrics.add("memtrace.attribution.failures", 1)
            logger.exception("verdict %s could not be written back", verdict["id"])

    def _write_back(self, verdict: Mapping[str, Any]) -> None:
        key = verdict["answer"]
        target = Flag(trace_id=key["traceId"], span_id=key["spanId"])
        answer = flags.resolve(self._reader, target)
        flag = flags.flag_of(self._reader, answer) if answer is not None else None
        if answer is not None and flag is not None:
            case = load_case(self._reader, answer, flag)
            self._cases.enqueue(self._look.rows(dict(verdict), case, self._clock_ns()))
