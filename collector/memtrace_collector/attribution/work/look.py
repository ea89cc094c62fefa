"""One look at a leased case: resolve, wait, judge, store; or what went wrong instead."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from memtrace_collector.attribution import superseding
from memtrace_collector.attribution.judge import Judge
from memtrace_collector.attribution.judging import judged
from memtrace_collector.attribution.superseding import Json
from memtrace_collector.attribution.work import intake, settling
from memtrace_collector.attribution.work.judging import machine_verdict
from memtrace_collector.attribution.work.settling import WaitedFor
from memtrace_collector.attribution.work.telling import tell
from memtrace_collector.attribution.work.unseen import Unseen
from memtrace_collector.attribution.writeback.rows import entries
from memtrace_collector.attribution.writeback.target import WriteBack
from memtrace_collector.graph import flags
from memtrace_collector.graph.case import Case
from memtrace_collector.graph.loader import load_case
from memtrace_collector.graph.reader import GraphReader
from memtrace_collector.store.base import CaseStore, OutboxEntry
from memtrace_collector.store.queue import JUDGED, Lease, QueuedCase, Schedule
from memtrace_collector.telemetry.metrics import Metrics

logger = logging.getLogger(__name__)

FIRST_RETRY_SECONDS = 1.0
MAX_DEATHS = 10
"""A case whose worker ended so often while looking at it is set aside unjudged."""
_NS = 1_000_000_000


class Outcome(NamedTuple):
    """What a look led to."""

    verdict: Json | None = None
    """A new verdict that was stored."""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    """Looks at cases that the caller has leased; ends every lease it is given.

    ``settle_seconds``: how long a case that is not settled is waited for. ``max_attempts``:
    failures after which a case is set aside. The rest as for the worker.
    """

    reader: GraphReader
    cases: CaseStore
    target: WriteBack | None
    settle_seconds: float
    max_attempts: int
    clock_ns: Callable[[], int]
    metrics: Metrics
    waited_for: WaitedFor
    unseen: Unseen

    def guarded(self, lease: Lease, judge: Judge, *, wait: bool) -> Outcome:
        """A look that never raises for what a case holds.

        ``wait``: leave a case that is not settled for later; else it is judged as it is.
        """
        if lease.attempts > MAX_DEATHS:
            self._set_aside(lease, f"{MAX_DEATHS} workers ended while they looked at it")
            return Outcome(failed=True)
        try:
            return Outcome(self._look(lease, judge, wait=wait))
        except Exception as error:
            self._failed(lease, error)
            return Outcome(failed=True)

    def shown(self, case: QueuedCase, judge: Judge) -> Json | None:
        """The verdict without the evidence that flags name; nothing is stored."""
        answer = flags.resolve(self.reader, intake.flag_named_by(case))
        flag = flags.flag_of(self.reader, answer) if answer is not None else None
        if answer is None or flag is None:
            return None
        loaded = load_case(self.reader, answer, flag, evidence_given=False)
        return superseding.shown_form(judge(loaded).to_json(), case.case_id, self.clock_ns())

    def rows(self, verdict: Json, case: Case, now_ns: int) -> Iterable[OutboxEntry]:
        """What goes out with a verdict."""
        if self.target is None:
            return ()
        return entries(verdict, case.operations, case.answer, now_ns=now_ns, target=self.target)

    def _look(self, lease: Lease, judge: Judge, *, wait: bool) -> Json | None:
        answer = flags.resolve(self.reader, intake.flag_named_by(lease.case))
        if answer is None:
            self._release(lease, settling.unresolved_again(lease, self.clock_ns()))
            return None
        if not lease.case.is_resolved:
            self.cases.resolve(lease, [intake.queued(answer)], self.clock_ns())
            return None
        meant = flags.meant(self.reader, answer)
        if meant.others:
            others = [intake.queued(each) for each in meant.others]
            self.cases.announce(others, (), None, self.clock_ns())
        if meant.flag is None:
            self._release(lease, Schedule(state=JUDGED))
            return None
        case = load_case(self.reader, answer, meant.flag)
        self.unseen.looked(lease.case.case_id, case.unseen)
        self._deliver_by_hand(lease.case.case_id, case)
        if wait and self._is_waited_for(lease, case):
            return None
        return self._judged(lease, case, judge)

    def _is_waited_for(self, lease: Lease, case: Case) -> bool:
        open_ends = settling.open_ends(case)
        if not self.waited_for.remaining(open_ends):
            return False
        now = self.clock_ns()
        deadline = (lease.since_ns or now) + int(self.settle_seconds * _NS)
        if now >= deadline:
            self.waited_for.add(open_ends)
            return False
        self._release(lease, settling.look_again(case, lease, now, deadline))
        return True

    def _judged(self, lease: Lease, case: Case, judge: Judge) -> Json | None:
        """Store what is new. What a method finds again supersedes nothing, least of all what
        another method found about the same case later."""
        case_id = lease.case.case_id
        finding = judge(case).to_json()
        now = self.clock_ns()
        verdict = None
        before = self.cases.verdict(case_id, finding["method"])
        current = self.cases.verdict(case_id)
        if current is not None and judged.is_judged(current):
            self._keep_beside(current, before, finding)
        elif before is None or not superseding.is_known(before, finding):
            verdict = superseding.stored_form(finding, case_id, now, current)
        schedule = settling.after_verdict(
            case, lease, now, changed=verdict is not None, is_settled=not settling.open_ends(case)
        )
        rows = self.rows(verdict, case, now) if verdict else ()
        kept = self._release(lease, schedule, verdict, rows)
        self.metrics.add("memtrace.attribution.cases", 1)
        if verdict is None or not kept:
            return None
        tell(self.metrics, verdict, case, is_sent=self.target is not None)
        return verdict

    def _deliver_by_hand(self, case_id: str, case: Case) -> None:
        """Have delivered what a person made current, wherever they did; what has its rows keeps
        them."""
        current = self.cases.verdict(case_id) if self.target else None
        if current is not None and judged.is_by_hand(current):
            self.cases.enqueue(self.rows(current, case, self.clock_ns()))

    def _keep_beside(self, current: Json, before: Json | None, finding: Json) -> None:
        """A person's verdict is not superseded by a finding: what is new stands beside it."""
        amended = judged.beside(current, machine_verdict(self.cases, current), before, finding)
        if amended is not None and self.cases.amend(amended):
            self.metrics.add("memtrace.judgements.outdated", 1)

    def _release(
        self,
        lease: Lease,
        schedule: Schedule,
        verdict: Json | None = None,
        rows: Iterable[OutboxEntry] = (),
    ) -> bool:
        kept = self.cases.release(lease, schedule, self.clock_ns(), verdict, rows)
        if not kept:
            self.metrics.add("memtrace.attribution.leases_lost", 1)
        if not kept and verdict is not None:  # a person may have judged meanwhile: look again
            self.cases.fail(lease, "another verdict was stored meanwhile", self.clock_ns())
        return kept

    def _failed(self, lease: Lease, error: Exception) -> None:
        self.metrics.add("memtrace.attribution.failures", 1)
        logger.error(
            "case %s of answer %s:%s failed",
            *(lease.case.case_id, lease.case.trace_id, lease.case.span_id),
            exc_info=error,
        )
        says = f"{type(error).__name__}: {error}"
        if lease.attempts >= self.max_attempts:
            self._set_aside(lease, says)
            return
        pause = FIRST_RETRY_SECONDS * 2 ** (lease.attempts - 1)
        self.cases.fail(lease, says, self.clock_ns() + int(pause * _NS))

    def _set_aside(self, lease: Lease, reason: str) -> None:
        self.metrics.add("memtrace.attribution.set_aside", 1)
        self.cases.fail(lease, reason, None)
