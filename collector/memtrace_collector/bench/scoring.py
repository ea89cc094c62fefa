"""A run's folder -> judged cases, report and failures: what follows once the pipelines ran."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from memtrace_collector.bench import report, report_text, variants
from memtrace_collector.bench.folder import RunFolder, write_whole
from memtrace_collector.bench.judging import (
    Collected,
    Progress,
    collect,
    judge_all,
    project,
    silent,
)
from memtrace_collector.bench.planned import Outcome, PlannedCase
from memtrace_collector.bench.score import CONFIDENT, Row
from memtrace_collector.bench.variants import Variant
from memtrace_collector.errors import NotFoundError

Json = dict[str, Any]
SPLITS = ("all", "dev", "held-out")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which recorded cases are judged, and how. Empty: all."""

    systems: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    split: str = "all"
    variants: tuple[str, ...] = ()

    def takes(self, case: PlannedCase) -> bool:
        if self.split != "all" and case.held_out != (self.split == "held-out"):
            return False
        kinds = {planting.kind for planting in case.plantings} or {"control"}
        return not self.kinds or not kinds.isdisjoint(self.kinds)

    def told(self) -> str:
        """In words, for the report."""
        parts = {
            "systems": self.systems,
            "kinds": self.kinds,
            "variants": self.variants,
            "split": (self.split,),
        }
        return "; ".join(f"{name} {', '.join(of) or 'all'}" for name, of in parts.items())

    def wanted(self) -> list[Variant]:
        return [v for v in variants.VARIANTS if not self.variants or v.name in self.variants]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """What scoring gave: the rows, and the figures as they were written."""

    rows: tuple[Row, ...]
    run: Json
    figures: Json


def score(
    folder: RunFolder,
    selection: Selection,
    *,
    processes: int = 0,
    confident: float = CONFIDENT,
    progress: Progress = silent,
) -> Scored:
    """Judge what was recorded and write ``cases.jsonl``, ``report.md`` and ``report.json``.

    Raises:
        NotFoundError: the folder holds no run, or no case of it counts.
    """
    info = folder.info()
    units = folder.units(selection.systems)
    for unit in units:
        project(unit)
    collected = [_selected(collect(unit, info.sources), selection) for unit in units]
    if not any(each.asked for each in collected):
        raise NotFoundError(f"{folder.root} holds no case that counts and fits; {_why(collected)}")
    rows = judge_all(collected, selection.wanted(), processes=processes, progress=progress)
    run = run_figures(folder, collected, selection)
    figures = report.summary(rows, confident)
    folder.save_rows(rows)
    document = {"run": run, **figures}
    text = json.dumps(document, indent=1, ensure_ascii=False)
    write_whole(folder.root / "report.json", text.encode())
    write_whole(folder.root / "report.md", report_text.markdown(info, run, figures).encode())
    return Scored(rows=tuple(rows), run=run, figures=figures)


def run_figures(folder: RunFolder, collected: Sequence[Collected], selection: Selection) -> Json:
    """What ran, what counts, and why the rest does not."""
    planned = [case for case in folder.plan() if selection.takes(case)]
    if selection.systems:
        planned = [case for case in planned if case.system in selection.systems]
    asked = [each for unit in collected for each in unit.asked]
    rest = [outcome for unit in collected for outcome in unit.not_counted]
    return {
        "selection": selection.told(),
        "planned": len(planned),
        "ran": len(asked) + len(rest),
        "counted": len(asked),
        "controls": sum(each.truth.control for each in asked),
        "not_counted": dict(Counter(map(why_not, rest)).most_common()),
        "not_counted_by_kind": _by_kind(rest),
        "problems": [problem for unit in collected for problem in unit.problems],
    }


def why_not(outcome: Outcome) -> str:
    """Why an outcome is no case, in a few words."""
    if outcome.skipped:
        return f"skipped: {outcome.skipped.partition(':')[0]}"
    if not outcome.clean_right:
        return "the pipeline answers wrongly without any fault"
    if not outcome.truths:
        return "the fault took no effect"
    if outcome.right:
        return "the fault did not change the answer"
    return "a control was answered wrongly"


def worst(rows: Iterable[Row], variant: str, count: int) -> list[Json]:
    """Failures of a variant grouped by what was planted and what was said, most frequent
    first; each with some of its cases. A right operation and type is no failure. What is kept
    aside is left out, unless the rows are of nothing else.
    """
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    rows = list(rows)
    for row in [row for row in rows if not row.held_out] or rows:
        failed = row.marks.blames_memory if row.truth.control else not row.marks.joint
        if row.variant == variant and failed:
            groups[row.kind, _said(row)].append(row)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return [
        {
            "planted": kind,
            "verdict": verdict,
            "count": len(found),
            "systems": dict(Counter(row.system for row in found).most_common()),
            "cases": [row.case for row in found[:5]],
        }
        for (kind, verdict), found in ordered[:count]
    ]


def _said(row: Row) -> str:
    """The type of a verdict, and how far its operation is off."""
    if row.marks.abstained:
        return row.judgement.error_type
    where = "" if row.marks.operation else " and more" if row.marks.named else " elsewhere"
    return f"{row.judgement.error_type}{where}"


def _selected(collected: Collected, selection: Selection) -> Collected:
    return Collected(
        collected.unit,
        tuple(each for each in collected.asked if selection.takes(each.outcome.case)),
        tuple(each for each in collected.not_counted if selection.takes(each.case)),
        collected.problems,
    )


def _why(collected: Iterable[Collected]) -> str:
    reasons = Counter(why_not(o) for each in collected for o in each.not_counted)
    problems = sum(len(each.problems) for each in collected)
    told = [f"{count} x {why}" for why, count in reasons.most_common(3)]
    return "; ".join([*told, f"{problems} problems"])


def _by_kind(outcomes: Iterable[Outcome]) -> dict[str, dict[str, int]]:
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for outcome in outcomes:
        kinds = "+".join(each.kind for each in outcome.case.plantings) or "control"
        found[kinds][why_not(outcome)] += 1
    return {kind: dict(counts) for kind, counts in sorted(found.items())}
