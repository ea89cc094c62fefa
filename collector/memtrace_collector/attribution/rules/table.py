"""The decision table in its order: one function per row, the first that holds is the verdict."""

from __future__ import annotations

from collections.abc import Callable

from memtrace_collector.attribution.carrying.carriers import Sought
from memtrace_collector.attribution.findings import Finding, abstain
from memtrace_collector.attribution.rules import (
    first_stored,
    found,
    invented,
    kept,
    not_deleted,
    not_stored,
    not_updated,
    sanity,
    scope,
    shown,
    told,
    used,
)

Row = Callable[[Sought], Finding | None]

ROWS: tuple[Row, ...] = (
    sanity.bad_reference,
    told.wrong_graph,
    told.lost_at_ingest,
    told.never_told,
    first_stored.omission,
    first_stored.distortion,
    invented.invented,
    not_stored.not_stored,
    kept.overwritten,
    kept.merged_wrong,
    kept.compacted_away,
    not_updated.not_updated,
    kept.wrongly_deleted,
    not_deleted.not_deleted,
    found.not_searched,
    scope.wrong_scope,
    found.bad_query,
    found.unseen_writer,
    found.stale_retrieved,
    found.ranked_out,
    found.not_retrieved,
    shown.cut_from_context,
    shown.garbled_in_context,
    used.no_content,
    used.wrong_abstention,
    used.distracted,
    used.wrong_reasoning,
    used.ignored_context,
    used.hallucinated,
)
"""``sanity.bad_judge`` and ``sanity.failed_call`` come before them: they ask about the whole need,
not one item."""


def judged(sought: Sought, finding: Finding) -> tuple[Finding, str]:
    """A finding with its absence: a claim of absence over a known loss becomes an abstention."""
    window = finding.window
    if window is None:
        return finding, "proven"
    absence = sought.view.case.closure.absence(window.start_ns, window.end_ns, window.processes)
    if absence == "broken":
        return abstain("gap", claims=finding.claims), absence
    return finding, absence


def walk(sought: Sought) -> tuple[Finding, str, list[Finding]]:
    """The first row that holds with its absence, and what later rows would say."""
    first: tuple[Finding, str] | None = None
    others: list[Finding] = []
    for row in ROWS:
        finding = row(sought)
        if finding is None:
            continue
        if first is None:
            first = judged(sought, finding)
            if finding.stage in ("not_memory", "unknown"):
                break
        elif finding.stage not in ("unknown", "not_memory", first[0].stage):
            others.append(finding)
    if first is None:
        return abstain(*sought.why_open(sought.view.current_versions)), "proven", []
    return (*first, others)
