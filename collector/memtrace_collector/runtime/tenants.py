"""What works for a tenant: one worker, one watch and one way to ask for each.

Tenants share the folder, the judges and the destination of verdicts; they take turns, so that
the flagged answers of one hold up those of another by a few at most. Graphs, cases, verdicts and
budgets of replays are their own.
"""

from __future__ import annotations

import functools
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from memtrace_collector.api.questions import Json, Replaying
from memtrace_collector.api.service import Service, Work
from memtrace_collector.attribution.judge import Judge
from memtrace_collector.attribution.work.judging import Judging
from memtrace_collector.attribution.work.worker import Worker, WorkerSettings
from memtrace_collector.attribution.writeback.target import WriteBack
from memtrace_collector.config import Config, is_database
from memtrace_collector.runtime.data import Data
from memtrace_collector.runtime.invariant_flags import InvariantFlags
from memtrace_collector.runtime.invariant_watch import InvariantWatch
from memtrace_collector.runtime.judges import Judges
from memtrace_collector.runtime.replaying import Replays
from memtrace_collector.settings.attribution import AttributionConfig
from memtrace_collector.store.base import CaseStore
from memtrace_collector.telemetry.metrics import Metrics
from memtrace_collector.telemetry.passes import Passes

MAX_TENANTS = 200
"""So many are worked for in the background; those beyond are counted, and can still ask."""
ONLY_WORKER = "owner of the folder"
IN_A_TURN = 10
"""Cases that each thread looks at before it is the next tenant's turn, when there are several."""


class Tenant(NamedTuple):
    """Everything of one tenant."""

    data: Data
    worker: Worker
    watch: InvariantWatch
    replays: Replays
    service: Service


class Tenants:
    """Makes what works for a tenant when the tenant is first met; :meth:`close` when done.

    Args:
        data: the folder, of whichever tenant.
        named: tenants who may come in; those who have cases are worked for as well.
    """

    def __init__(
        self,
        data: Data,
        config: Config,
        judges: Judges,
        metrics: Metrics,
        named: Callable[[], Collection[str]],
    ) -> None:
        self._data, self._config, self._judges = data, config, judges
        self._metrics = metrics
        self._named = named
        self._lock = threading.Lock()
        self._made: dict[str, Tenant] = {}
        self._is_caught_up = data.catching_up()  # half a graph misleads

    def of(self, name: str) -> Tenant:
        """The tenant of that name. Only names that the server itself gave come here."""
        with self._lock:
            found = self._made.get(name)
            if found is None:
                found = self._made[name] = self._make(name)
            return found

    def all(self) -> list[Tenant]:
        """Everybody who may come in or has cases, at most ``MAX_TENANTS``."""
        names = sorted({*self._named(), *self._data.cases.tenants()})
        self._metrics.add("memtrace.tenants.unattended", max(0, len(names) - MAX_TENANTS))
        return [self.of(name) for name in names[:MAX_TENANTS]]

    def data(self) -> list[Data]:
        """The folder, once for each of :meth:`all`."""
        return [tenant.data for tenant in self.all()]

    def outboxes(self) -> list[CaseStore]:
        """The cases of each of :meth:`all`."""
        return [tenant.data.cases for tenant in self.all()]

    def findings(self) -> Counter[str]:
        """Broken invariants by kind, of all tenants."""
        counts: Counter[str] = Counter()
        for tenant in self.all():
            counts.update(tenant.watch.counts())
        return counts

    def unseen(self) -> int:
        """References that the cases of all tenants miss, as this process last looked."""
        return sum(tenant.worker.unseen.count() for tenant in self.all())

    def work(self, stop: threading.Event) -> None:
        """Attribute flagged answers until ``stop``, and keep the leases of what is judged."""
        settings = _worker_settings(self._config.attribution)
        renewing = _Turns(
            "leases could not be renewed", "memtrace.attribution.failures", self._metrics
        )
        working = _Turns(
            "a pass over the flagged answers failed", "memtrace.attribution.failures", self._metrics
        )

        def renew(tenant: Tenant) -> float:
            tenant.worker.renew()
            return settings.lease_seconds / 4

        keeper = threading.Thread(
            target=lambda: renewing.run(self.all, renew, stop), name="memtrace-leases", daemon=True
        )
        keeper.start()
        working.run(self.all, lambda tenant: tenant.worker.turn(stop, self._in_a_turn()), stop)
        keeper.join()

    def watch(self, stop: threading.Event) -> None:
        """Watch the memory invariants until ``stop``."""
        turns = _Turns(
            "the memory invariants could not be checked",
            "memtrace.invariants.failures",
            self._metrics,
        )
        turns.run(self.all, lambda tenant: tenant.watch.turn(stop), stop)

    def close(self) -> None:
        """Nobody works any more."""
        for tenant in self._made.values():
            tenant.replays.close()

    def _in_a_turn(self) -> int:
        return 0 if len(self._made) == 1 else IN_A_TURN

    def _make(self, name: str) -> Tenant:
        data = self._data.for_tenant(name)
        kinds = self._config.attribution.flag_invariants
        flagging = InvariantFlags(data.facts, kinds, data.append, self._metrics)
        watch = InvariantWatch(data.facts, self._metrics, report=flagging.flag)
        replays = Replays(data, self._config)
        worker = Worker(
            data.facts,
            data.cases,
            judge=replays.usual(self._judges.named()),
            target=_write_back(self._config),
            settings=_worker_settings(
                self._config.attribution, "" if is_database(self._config.store) else ONLY_WORKER
            ),
            ready=self._is_caught_up,
            metrics=self._metrics,
        )
        service = _service(data, self._judges, replays, worker, self._metrics)
        return Tenant(data, worker, watch, replays, service)


class _Turns:
    """Passes that tenants take in turn; what fails for one is counted and holds up no other."""

    def __init__(self, what: str, counter: str, metrics: Metrics) -> None:
        self._said = (what, counter, metrics)
        self._passes: dict[str, Passes] = {}

    def run(
        self,
        tenants: Callable[[], Iterable[Tenant]],
        turn: Callable[[Tenant], float],
        stop: threading.Event,
    ) -> None:
        """Give each its turn until ``stop``; the shortest pause that one asks for is made."""
        listing = self._of("")
        found: list[Tenant] = []

        def look() -> float:
            found[:] = tenants()
            return 0.0

        while not stop.is_set():
            pause = listing.once(look)
            pauses = [
                self._of(tenant.data.tenant).once(functools.partial(turn, tenant))
                for tenant in found
                if not stop.is_set()
            ]
            stop.wait(min(pauses, default=pause))

    def _of(self, name: str) -> Passes:
        passes = self._passes.get(name)
        if passes is None:
            what, counter, metrics = self._said
            passes = self._passes[name] = Passes(what, counter, metrics, pause_seconds=1.0)
        return passes


def _worker_settings(config: AttributionConfig, name: str = "") -> WorkerSettings:
    return WorkerSettings(
        interval_seconds=config.interval_seconds,
        settle_seconds=config.settle_seconds,
        max_attempts=config.max_attempts,
        cases_per_minute=config.cases_per_minute,
        concurrency=config.concurrency,
        name=name,
    )


def _write_back(config: Config) -> WriteBack | None:
    forward = config.forward
    return WriteBack(profile=forward.profile, quotes=forward.values) if forward.url else None


def _service(
    data: Data, judges: Judges, replays: Replays, worker: Worker, metrics: Metrics
) -> Service:
    def attribute(
        method: str, graph_id: str, evidence: bool, replay: Replaying | None
    ) -> list[Json]:
        judge: Judge = judges.named(method)
        if replay is None:
            return worker.run_once(graph_id, evidence, replays.usual(judge))
        with replays.asked(replay.runs, replay.model) as replayed:
            return worker.run_once(graph_id, evidence, replayed(judge))

    judging = Judging(data.cases, time.time_ns, metrics)
    work = Work(data.append, data.project, attribute, data.request_at, data.erase, judging.judge)
    return Service(data.facts, data.cases, work)
