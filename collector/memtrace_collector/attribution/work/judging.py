"""Judgements of persons: from what is said of a verdict to the verdict that stands then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import structs

from memtrace_collector.attribution.judging import judged
from memtrace_collector.attribution.judging.said import CONFIRM, WITHDRAW, Said, corrected
from memtrace_collector.attribution.work.intake import case_id, queued
from memtrace_collector.attribution.work.telling import tell_stored
from memtrace_collector.errors import ConflictError, NotFoundError
from memtrace_collector.graph.case import Case
from memtrace_collector.graph.facts import DEFAULT_TENANT
from memtrace_collector.store.base import CaseStore
from memtrace_collector.telemetry.metrics import NULL_METRICS, Metrics

Json = dict[str, Any]


class Judging:
    """Takes judgements on the cases of one tenant; the worker delivers what they make current.

    Args:
        cases: where verdicts live.
        clock_ns: nanoseconds since the Unix epoch.
    """

    def __init__(
        self, cases: CaseStore, clock_ns: Callable[[], int], metrics: Metrics = NULL_METRICS
    ) -> None:
        self._cases = cases
        self._clock_ns = clock_ns
        self._metrics = metrics

    def judge(self, case: Case, said: Said) -> Json:
        """The verdict that stands now. The same judgement a second time changes nothing.

        Raises:
            NotFoundError: there is no verdict on the case, or no judgement to be withdrawn.
            WrongUseError: that cannot be said of this case.
            ConflictError: another revision is current than the one that was looked at.
        """
        current = self._current(case)
        said = self._completed(said, current)
        if said.revision != current["revision"]:
            return self._repeated(case, said, current)
        made = self._made(case, said, current)
        if judged.is_judged(current) and judged.says_the_same(current, made):
            return current
        if not self._cases.judge(made, queued(case.answer), self._clock_ns()):
            return self._repeated(case, said, self._current(case))
        self._count(made, case)
        return made

    def _completed(self, said: Said, current: Mapping[str, Any]) -> Said:
        """Who gives no name is known by the tenant of their token."""
        tenant = self._cases.tenant
        return structs.replace(
            said,
            revision=said.revision or current["revision"],
            by=_storable(said.by) or ("" if tenant == DEFAULT_TENANT else tenant),
            note=_storable(said.note),
            last_right=said.last_right and _storable(said.last_right),
            first_wrong=said.first_wrong and _storable(said.first_wrong),
        )

    def _made(self, case: Case, said: Said, current: Mapping[str, Any]) -> Json:
        now = self._clock_ns()
        if said.action == WITHDRAW:
            return self._restored(said, current, now)
        if said.action == CONFIRM:
            return judged.confirmed(current, said, now)
        return judged.corrected(current, said, corrected(said, case.operations), now)

    def _restored(self, said: Said, current: Mapping[str, Any], now_ns: int) -> Json:
        if not judged.is_judged(current):
            raise NotFoundError("nobody judged this verdict: there is nothing to withdraw")
        machine = machine_verdict(self._cases, current)
        if machine is None and current.get("machine_now") is None:
            raise NotFoundError("what was judged is not kept any more: judge it anew instead")
        return judged.restored(current, machine or {}, said, now_ns)

    def _repeated(self, case: Case, said: Said, current: Mapping[str, Any]) -> Json:
        """What stands, when it is what ``said`` makes of the revision that it names.

        Raises:
            ConflictError: it is something else.
        """
        looked_at = next(
            (
                dict(each)
                for each in self._cases.revisions(str(current["id"]))
                if each["revision"] == said.revision
            ),
            None,
        )
        if looked_at is not None and current["revision"] == said.revision + 1:
            made = self._made(case, said, looked_at)
            if judged.is_by_hand(current) and _is_same(said, current, made):
                return dict(current)
        raise ConflictError(_changed(said.revision, current))

    def _current(self, case: Case) -> Json:
        found = self._cases.verdict(case_id(case.answer))
        if found is None:
            raise NotFoundError(
                "there is no verdict on this answer yet: flag it, and `memtrace-otel attribute` "
                "looks into it"
            )
        return dict(found)

    def _count(self, made: Mapping[str, Any], case: Case) -> None:
        tell_stored(self._metrics, made, case)
        if made.get("withdrawn"):
            self._metrics.add("memtrace.judgements.withdrawn", 1)
        else:
            self._metrics.add("memtrace.judgements", 1, agreement=made["judgement"]["agreement"])


def _storable(text: str) -> str:
    """Half a surrogate pair, which UTF-8 does not carry, becomes a question mark."""
    return text.encode(errors="replace").decode()


def _is_same(said: Said, current: Mapping[str, Any], made: Mapping[str, Any]) -> bool:
    if said.action == WITHDRAW:
        return bool(current.get("withdrawn"))
    return judged.says_the_same(current, made)


def machine_verdict(cases: CaseStore, verdict: Mapping[str, Any]) -> Json | None:
    """The machine's verdict that a person's is about; None when it is not kept."""
    revision = verdict["judgement"]["machine"]["revision"]
    found = (each for each in cases.revisions(verdict["id"]) if each["revision"] == revision)
    return next((dict(each) for each in found), None)


def _changed(revision: int, current: Mapping[str, Any]) -> str:
    said = current.get("judgement") or {}
    who = f", {said['action']} by {said['by'] or 'a person'}" if said else ""
    return (
        f"not revision {revision} of the verdict is current but revision {current['revision']}: "
        f"{current['stage']}/{current['error_type']} ({current['method']}{who}), "
        f"of {current['created']}; look at that one and judge again"
    )
