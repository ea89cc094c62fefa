"""Looks into flagged answers: from flags to stored verdicts and rows of the outbox."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, NamedTuple

from memtrace_collector.attribution import writeback
from memtrace_collector.attribution.attribute import attribute
from memtrace_collector.attribution.judge import Judge
from memtrace_collector.attribution.writeback import WriteBack
from memtrace_collector.graph.case import Case
from memtrace_collector.graph.facts import Flag, Operation
from memtrace_collector.graph.flags import Flagged, flagged_answers
from memtrace_collector.graph.loader import load_case
from memtrace_collector.graph.reader import GraphSummary
from memtrace_collector.log.position import LogPosition
from memtrace_collector.store.base import CaseStore, FactStore, OutboxEntry
from memtrace_collector.telemetry.metrics import NULL_METRICS, Metrics

logger = logging.getLogger(__name__)

LEASE_SECONDS = 60.0
SETTLE_SECONDS = 10.0
"""How long an answer with gaps or unknown producers is waited for before it is judged as is."""
FIRST_AGAIN_SECONDS, LONGEST_AGAIN_SECONDS = 2.0, 600.0
"""How soon a settled case whose graph changed is judged again: doubles until a verdict changes."""
MAX_ATTEMPTS = 3
_NS = 1_000_000_000
DEFAULT_TARGET = WriteBack()
_ADDED_BY_STORING = ("id", "revision", "created", "case_trace")

Json = dict[str, Any]


class SetAside(NamedTuple):
    """A case that failed :data:`MAX_ATTEMPTS` times, and with what."""

    answer: Operation
    reason: str


@dataclass(slots=True)
class _Seen:
    """What this process knows of a case between two passes."""

    first_ns: int
    flag: Flag | None = None
    graph: GraphSummary | None = None
    settled: bool = False
    failures: int = 0
    again_seconds: float = FIRST_AGAIN_SECONDS
    due_ns: int = 0

    def is_due(self, flagged: Flagged, graph: GraphSummary | None, now_ns: int) -> bool:
        if not self.settled or self.flag != flagged.flag:
            return True
        return self.graph != graph and now_ns >= self.due_ns

    def judged(self, now_ns: int, *, changed: bool) -> None:
        if changed:
            self.again_seconds = FIRST_AGAIN_SECONDS
        self.due_ns = now_ns + int(self.again_seconds * _NS)
        self.again_seconds = min(self.again_seconds * 2, LONGEST_AGAIN_SECONDS)


def case_id(answer: Operation) -> str:
    """Deterministic: one case per tenant and answer span, 32 hex digits."""
    parts = f"{answer.tenant}\0{answer.trace_id}\0{answer.span_id}"
    return hashlib.sha256(parts.encode()).hexdigest()[:32]


class Worker:
    """Attributes the flagged answers of one tenant.

    Args:
        reader: the tenant's graphs; its cursor moves whenever they may have changed.
        cases: where verdicts, leases and the outbox live.
        judge: how a case comes to its verdict.
        target: what the destination of verdicts takes; None: they stay here.
        interval_seconds: pause between two passes of :meth:`run`.
        clock_ns: nanoseconds since the Unix epoch.
    """

    def __init__(
        self,
        reader: FactStore,
        cases: CaseStore,
        *,
        judge: Judge = attribute,
        target: WriteBack | None = DEFAULT_TARGET,
        interval_seconds: float = 1.0,
        clock_ns: Callable[[], int] = time.time_ns,
        metrics: Metrics = NULL_METRICS,
    ) -> None:
        self._reader = reader
        self._cases = cases
        self._judge_by = judge
        self._target = target
        self._interval = interval_seconds
        self._clock_ns = clock_ns
        self._name = uuid.uuid4().hex
        self._metrics = metrics
        self._cursor: LogPosition | None = None
        self._is_waiting = False
        """Something was left for a later pass, though the graphs may stay as they are."""
        self._not_written: dict[str, Json] | None = None
        self._seen: dict[str, _Seen] = {}
        self._lock = threading.Lock()
        self._set_aside: dict[str, SetAside] = {}

    def run(self, stop: threading.Event) -> None:
        """Look whenever the graphs have changed, until ``stop``."""
        while not stop.is_set():
            try:
                self.look(stop)
            except Exception:
                logger.exception("a pass over the flagged answers failed")
                self._metrics.add("memtrace.attribution.failures", 1)
            stop.wait(self._interval)

    def look(self, stop: threading.Event | None = None) -> list[Json]:
        """One background pass: judge what is new, changed or was not settled; new verdicts.

        Ends early when ``stop`` is set, and does nothing while :meth:`run_once` runs.
        """
        cursor = self._reader.cursor()
        if cursor == self._cursor and not self._is_waiting:
            return []
        if not self._lock.acquire(blocking=False):
            return []
        try:
            answers = flagged_answers(self._reader)
            self._is_waiting = False
            graphs = {s.graph_id: s for s in self._reader.graphs()} if answers else {}
            found: list[Json] = []
            for flagged in answers:
                if stop is not None and stop.is_set():
                    return found
                verdict = self._look_at(flagged, graphs.get(flagged.answer.graph_id))
                if verdict is not None:
                    found.append(verdict)
            self._cursor = cursor
            return found
        finally:
            self._lock.release()

    def _look_at(self, flagged: Flagged, graph: GraphSummary | None) -> Json | None:
        identity = case_id(flagged.answer)
        self._write_back_older(identity, flagged)
        if identity in self._set_aside:
            return None
        now = self._clock_ns()
        seen = self._seen.setdefault(identity, _Seen(now))
        verdict = None
        if seen.is_due(flagged, graph, now):
            seen.flag, seen.graph = flagged.flag, graph
            verdict = self._guarded(identity, flagged, self._judge_by, wait=True)
        self._is_waiting |= not seen.settled or seen.graph != graph
        return verdict

    def run_once(
        self, graph_id: str = "", evidence: bool = True, judge: Judge | None = None
    ) -> list[Json]:
        """Judge every flagged answer now; the current verdict of each, new or not.

        Args:
            graph_id: only answers of this graph; empty: all.
            evidence: False does as if no flag named its evidence; such verdicts are shown
                and not stored.
            judge: how, this time; None: as the worker always does.
        """
        judge = judge or self._judge_by
        with self._lock:
            found = []
            for flagged in flagged_answers(self._reader):
                if graph_id and flagged.answer.graph_id != graph_id:
                    continue
                identity = case_id(flagged.answer)
                if evidence:
                    self._set_aside.pop(identity, None)
                    self._insist(identity, flagged, judge)
                    verdict = self._cases.verdict(identity)
                else:
                    verdict = self._shown_only(identity, flagged, judge)
                if verdict is not None:
                    found.append(dict(verdict))
            return found

    def set_aside(self) -> dict[str, SetAside]:
        """By case: what could not be judged; :meth:`run_once` tries it again."""
        return dict(self._set_aside)

    def _insist(self, identity: str, flagged: Flagged, judge: Judge) -> None:
        """Judge until it succeeds or is set aside, unless another worker has it."""
        seen = self._seen.setdefault(identity, _Seen(self._clock_ns()))
        seen.failures = 0
        for _ in range(MAX_ATTEMPTS):
            self._guarded(identity, flagged, judge, wait=False)
            if not seen.failures:
                break

    def _shown_only(self, identity: str, flagged: Flagged, judge: Judge) -> Json:
        case = load_case(self._reader, flagged.answer, flagged.flag, evidence_given=False)
        return _stored_form(judge(case).to_json(), identity, 0, self._clock_ns())

    def _guarded(self, identity: str, flagged: Flagged, judge: Judge, *, wait: bool) -> Json | None:
        """Judge one case under its lease. A case that keeps failing is set aside."""
        now = self._clock_ns()
        seen = self._seen.setdefault(identity, _Seen(now))
        if not self._cases.claim(identity, self._name, now, int(LEASE_SECONDS * _NS)):
            return None
        try:
            return self._judge(identity, flagged, seen, judge, wait=wait)
        except Exception as error:
            seen.settled = False
            seen.failures += 1
            self._metrics.add("memtrace.attribution.failures", 1)
            logger.exception("case %s of answer %s failed", identity, flagged.answer.key)
            if seen.failures >= MAX_ATTEMPTS:
                seen.settled = True
                reason = f"{type(error).__name__}: {error}"
                self._set_aside[identity] = SetAside(flagged.answer, reason)
            return None
        finally:
            self._cases.release(identity, self._name)

    def _judge(
        self, identity: str, flagged: Flagged, seen: _Seen, judge: Judge, *, wait: bool
    ) -> Json | None:
        case = load_case(self._reader, flagged.answer, flagged.flag)
        now = self._clock_ns()
        seen.settled = is_settled(case) or _waited_long_enough(flagged.answer, seen, now)
        if wait and not seen.settled:
            return None
        verdict = self._stored(identity, case, judge, now)
        seen.failures = 0
        seen.judged(now, changed=verdict is not None)
        return verdict

    def _stored(self, identity: str, case: Case, judge: Judge, now: int) -> Json | None:
        """The new verdict of a case; None when it says the same as the one before."""
        finding = judge(case).to_json()
        previous = self._cases.verdict(identity)
        if previous is not None and _finding_of(previous) == _finding_of(finding):
            return None
        revision = 1 if previous is None else int(str(previous["revision"])) + 1
        verdict = _stored_form(finding, identity, revision, now)
        if not self._cases.save_verdict(verdict, self._rows(verdict, case, now)):
            return None
        self._metrics.add(
            "memtrace.verdicts.stored", 1, stage=verdict["stage"], error_type=verdict["error_type"]
        )
        return verdict

    def _write_back_older(self, identity: str, flagged: Flagged) -> None:
        """Enqueue a verdict that was stored when there was nowhere to send it."""
        if self._target is None:
            return
        if self._not_written is None:
            self._not_written = {str(v["id"]): v for v in self._cases.verdicts_without_outbox()}
        verdict = self._not_written.pop(identity, None)
        if verdict is not None:
            case = load_case(self._reader, flagged.answer, flagged.flag)
            self._cases.enqueue(self._rows(verdict, case, self._clock_ns()))

    def _rows(self, verdict: Json, case: Case, now: int) -> Iterable[OutboxEntry]:
        if self._target is None:
            return ()
        return writeback.entries(
            verdict, case.operations, case.answer, now_ns=now, target=self._target
        )


def _waited_long_enough(answer: Operation, seen: _Seen, now_ns: int) -> bool:
    return now_ns - min(answer.end_ns, seen.first_ns) >= SETTLE_SECONDS * _NS


def is_settled(case: Case) -> bool:
    """Whether nothing is known to be still on its way: every producer known, no gap open."""
    return case.lineage != "incomplete" and not case.closure.losses


def _stored_form(finding: Mapping[str, Any], identity: str, revision: int, now_ns: int) -> Json:
    moment = datetime.fromtimestamp(now_ns / _NS, tz=timezone.utc)
    return {
        "id": identity,
        "revision": revision,
        "created": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        **finding,
        "case_trace": writeback.case_trace_id(identity, revision) if revision else None,
    }


def _finding_of(verdict: Mapping[str, Any]) -> str:
    finding = {name: value for name, value in verdict.items() if name not in _ADDED_BY_STORING}
    return json.dumps(finding, sort_keys=True)
