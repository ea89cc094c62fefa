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
from typing import Any

from memtrace_collector.attribution import writeback
from memtrace_collector.attribution.attribute import attribute
from memtrace_collector.attribution.writeback import WriteBack
from memtrace_collector.graph.case import Case
from memtrace_collector.graph.facts import Operation
from memtrace_collector.graph.flags import Flagged, flagged_answers
from memtrace_collector.graph.loader import load_case
from memtrace_collector.log.position import LogPosition
from memtrace_collector.metrics import NULL_METRICS, Metrics
from memtrace_collector.store.base import CaseStore, FactStore, OutboxEntry

logger = logging.getLogger(__name__)

LEASE_SECONDS = 60.0
SETTLE_SECONDS = 10.0
"""How long an answer with gaps or unknown producers is waited for before it is judged as is."""
MAX_ATTEMPTS = 3
_NS = 1_000_000_000
_ADDED_BY_STORING = ("id", "revision", "created", "case_trace")

Json = dict[str, Any]


@dataclass(slots=True)
class _Seen:
    """What this process knows of a case between two passes."""

    first_ns: int
    looked_at: object = None
    settled: bool = False
    failures: int = 0


def case_id(answer: Operation) -> str:
    """Deterministic: one case per tenant and answer span, 32 hex digits."""
    parts = f"{answer.tenant}\0{answer.trace_id}\0{answer.span_id}"
    return hashlib.sha256(parts.encode()).hexdigest()[:32]


class Worker:
    """Attributes the flagged answers of one tenant.

    Args:
        reader: the tenant's graphs; its cursor moves whenever they may have changed.
        cases: where verdicts, leases and the outbox live.
        profile: how late verdict spans are written: jaeger, tempo or none.
        write_back: whether verdicts go into the outbox at all.
        quotes: whether explanations that go out may quote content.
        interval_seconds: pause between two passes of :meth:`run`.
        clock_ns: nanoseconds since the Unix epoch.
    """

    def __init__(
        self,
        reader: FactStore,
        cases: CaseStore,
        *,
        profile: str = "jaeger",
        write_back: bool = True,
        quotes: bool = False,
        interval_seconds: float = 1.0,
        clock_ns: Callable[[], int] = time.time_ns,
        metrics: Metrics = NULL_METRICS,
    ) -> None:
        self._reader = reader
        self._cases = cases
        self._target = WriteBack(profile=profile, quotes=quotes) if write_back else None
        self._interval = interval_seconds
        self._clock_ns = clock_ns
        self._name = uuid.uuid4().hex
        self._metrics = metrics
        self._cursor: LogPosition | None = None
        self._seen: dict[str, _Seen] = {}
        self._lock = threading.Lock()
        self.set_aside: dict[str, str] = {}
        """Cases that failed :data:`MAX_ATTEMPTS` times, with the reason."""

    def run(self, stop: threading.Event) -> None:
        """Look whenever the graphs have changed, until ``stop``."""
        while not stop.is_set():
            try:
                self.look()
            except Exception:
                logger.exception("a pass over the flagged answers failed")
                self._metrics.add("memtrace.attribution.failures", 1)
            stop.wait(self._interval)

    def look(self) -> list[Json]:
        """One background pass: judge what is new, changed or was not settled; new verdicts."""
        with self._lock:
            cursor = self._reader.cursor()
            if cursor == self._cursor and all(seen.settled for seen in self._seen.values()):
                return []
            answers = flagged_answers(self._reader)
            graphs = {s.graph_id: s for s in self._reader.graphs()} if answers else {}
            found = []
            for flagged in answers:
                identity = case_id(flagged.answer)
                seen = self._seen.setdefault(identity, _Seen(self._clock_ns()))
                state = (graphs.get(flagged.answer.graph_id), flagged.flag)
                if identity in self.set_aside or (seen.settled and seen.looked_at == state):
                    continue
                seen.looked_at = state
                verdict = self._guarded(identity, flagged, wait=True)
                if verdict is not None:
                    found.append(verdict)
            self._cursor = cursor
            return found

    def run_once(self, graph_id: str = "", evidence: bool = True) -> list[Json]:
        """Judge every flagged answer now; the current verdict of each, new or not.

        Args:
            graph_id: only answers of this graph; empty: all.
            evidence: False does as if no flag named its evidence; such verdicts are shown
                and not stored.
        """
        with self._lock:
            found = []
            for flagged in flagged_answers(self._reader):
                if graph_id and flagged.answer.graph_id != graph_id:
                    continue
                identity = case_id(flagged.answer)
                if evidence:
                    self.set_aside.pop(identity, None)
                    self._guarded(identity, flagged, wait=False)
                    verdict = self._cases.verdict(identity)
                else:
                    verdict = self._shown_only(identity, flagged)
                if verdict is not None:
                    found.append(dict(verdict))
            return found

    def _shown_only(self, identity: str, flagged: Flagged) -> Json:
        case = load_case(self._reader, flagged.answer, flagged.flag, evidence_given=False)
        return _stored_form(attribute(case).to_json(), identity, 0, self._clock_ns())

    def _guarded(self, identity: str, flagged: Flagged, *, wait: bool) -> Json | None:
        """Judge one case under its lease. A case that keeps failing is set aside."""
        now = self._clock_ns()
        seen = self._seen.setdefault(identity, _Seen(now))
        if not self._cases.claim(identity, self._name, now, int(LEASE_SECONDS * _NS)):
            return None
        try:
            return self._judge(identity, flagged, seen, wait=wait)
        except Exception as error:
            seen.settled = False
            seen.failures += 1
            self._metrics.add("memtrace.attribution.failures", 1)
            logger.exception("case %s of answer %s failed", identity, flagged.answer.key)
            if seen.failures >= MAX_ATTEMPTS:
                seen.settled = True
                self.set_aside[identity] = f"{type(error).__name__}: {error}"
            return None
        finally:
            self._cases.release(identity, self._name)

    def _judge(self, identity: str, flagged: Flagged, seen: _Seen, *, wait: bool) -> Json | None:
        case = load_case(self._reader, flagged.answer, flagged.flag)
        now = self._clock_ns()
        seen.settled = is_settled(case) or _waited_long_enough(flagged.answer, seen, now)
        if wait and not seen.settled:
            return None
        finding = attribute(case).to_json()
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
