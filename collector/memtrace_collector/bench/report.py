"""From scored rows to the figures of a report. Pure: values of JSON, nothing printed.

Figures on cases of held-out dialogues or held-out kinds of faults stand apart from the others
(:func:`summary` gives each part the same shape).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memtrace_collector.attribution.verdict import STAGE_OF
from memtrace_collector.bench import baselines
from memtrace_collector.bench.score import CONFIDENT, LABEL_OF, RESPONSE, Row
from memtrace_collector.bench.statistics import Share, clustered_share, percentile, share

MEASURES = (
    "operation",
    "named",
    "stage",
    "type",
    "exact_type",
    "label",
    "joint",
    "top_three",
    "abstained",
)
ANSWERED = ("operation", "stage", "type", "label", "joint")
SHORT = ("operation", "stage", "type")
CUTS = (0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)
GROUPINGS: Mapping[str, Callable[[Row], str]] = {
    "system": lambda row: row.system,
    "kind": lambda row: row.kind,
    "category": lambda row: row.category,
    "source": lambda row: row.source or "unknown",
}
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Target:
    """One line of the acceptance. ``at_most``: the share must not be above ``wanted``."""

    what: str
    variant: str
    measure: str
    wanted: float
    at_most: bool = False


TARGETS = (
    Target("exact operation", "given", "operation", 0.92),
    Target("stage", "given", "stage", 0.95),
    Target("type (response taken for one)", "given", "type", 0.88),
    Target("exact operation, evidence found", "found", "operation", 0.85),
    Target("stage of those not abstained, no expected answer", "no_expected", "stage_told", 0.65),
    Target("abstention, no expected answer", "no_expected", "abstained", 0.40, at_most=True),
    Target("false blame on right answers", "given", "false_blame", 0.02, at_most=True),
    Target("confident wrong with 5 % of spans lost", "lossy", "confident_wrong", 0.03, True),
)


def summary(rows: Sequence[Row], confident: float = CONFIDENT) -> Json:
    """The figures of all cases, and of those looked at and kept aside."""
    parts = {
        "all": list(rows),
        "dev": [row for row in rows if not row.held_out],
        "held_out": [row for row in rows if row.held_out],
    }
    return {
        "confident_from": confident,
        "parts": {name: part(found) for name, found in parts.items() if found},
    }


def part(rows: Sequence[Row]) -> Json:
    """Every figure of one set of rows."""
    by_variant: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_variant[row.variant].append(row)
    given = by_variant.get("given", [])
    figures = {name: measures(found) for name, found in by_variant.items()}
    guessed = baselines.judgements(given)
    return {
        "cases": len({(row.system, row.case) for row in rows}),
        "dialogues": len({row.dialogue for row in rows}),
        "variants": figures,
        "baselines": {name: measures(found) for name, found in guessed.items() if found},
        "acceptance": acceptance(figures, by_variant),
        "groups": {name: _grouped(given, key) for name, key in GROUPINGS.items()},
        "confusion": {
            "stage": confusion(given, lambda kind: STAGE_OF[kind]),
            "type": confusion(given, _type_or_response),
            "inside_response": confusion(_response(given), str),
            "label": confusion(given, lambda kind: LABEL_OF.get(kind, "none")),
        },
        "coverage": coverage(given),
        "bases": _by_basis(given),
        "several_causes": _several(given),
        "shuffled": shuffled_beside_given(by_variant),
        "cost_ms": _cost(given),
        "failures": [f"{row.case}: {row.judgement.failed}" for row in rows if row.judgement.failed],
    }


def measures(rows: Iterable[Row]) -> Json:
    """Shares with intervals drawn by dialogue; controls count for false blame only, and with
    the others for confident wrong verdicts."""
    rows = list(rows)
    planted = [row for row in rows if not row.truth.control]
    told = [row for row in planted if not row.marks.abstained]
    controls = [row for row in rows if row.truth.control]
    found: dict[str, Share] = {name: _share(planted, name) for name in MEASURES}
    found |= {f"{name}_told": _share(told, name) for name in ANSWERED}
    found["with_operation"] = _share([row for row in planted if _has_operation(row)], "operation")
    found["response_exact_type"] = _share(_response(told), "exact_type")
    found["false_blame"] = _share(controls, "blames_memory")
    references = [row for row in planted if row.truth.error_type == "bad_reference"]
    found["reference_blame"] = _share(references, "blames_memory")
    found["confident_wrong"] = _share(rows, "confident_wrong")
    return {name: each.to_json() for name, each in found.items()}


def acceptance(figures: Mapping[str, Json], by_variant: Mapping[str, Sequence[Row]]) -> list[Json]:
    """Each line with what was reached; ``met`` is None where nothing was run."""
    lines = [_line(target, figures) for target in TARGETS]
    beside = shuffled_beside_given(by_variant)
    if beside is None:
        lines.append({"what": "shuffled and repeated: no worse", "wanted": "0", "met": None})
        return lines
    lines.append(
        {
            "what": "shuffled and repeated: no worse",
            "wanted": "0",
            "reached": f"{beside['worse']} of {beside['cases']} worse, {beside['other']} other",
            "met": beside["worse"] == 0,
        }
    )
    return lines


def shuffled_beside_given(by_variant: Mapping[str, Sequence[Row]]) -> Json | None:
    """How many cases are judged otherwise, and how many worse, when spans come shuffled."""
    given = {(row.system, row.case): row for row in by_variant.get("given", ())}
    pairs = [
        (given[row.system, row.case], row)
        for row in by_variant.get("shuffled", ())
        if (row.system, row.case) in given
    ]
    if not pairs:
        return None
    worse = [b.case for a, b in pairs if any(_lost(a, b, name) for name in SHORT)]
    other = [b.case for a, b in pairs if a.judgement != b.judgement]
    return {"cases": len(pairs), "worse": len(worse), "other": len(other), "which": other[:20]}


def coverage(rows: Iterable[Row]) -> list[Json]:
    """Acting only upon verdicts with at least some score: on how many, and how often right."""
    planted = [row for row in rows if not row.truth.control]
    points = []
    for cut in CUTS:
        taken = [r for r in planted if not r.marks.abstained and r.judgement.score >= cut]
        points.append(
            {
                "cut": cut,
                "coverage": len(taken) / len(planted) if planted else 0.0,
                **{name: share(getattr(r.marks, name) for r in taken).to_json() for name in SHORT},
            }
        )
    return points


def confusion(rows: Iterable[Row], name_of: Callable[[str], str]) -> dict[str, dict[str, int]]:
    """Truth -> verdict -> cases; of several causes the first. Controls included."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        found[name_of(row.truth.error_type)][name_of(row.judgement.error_type)] += 1
    return {truth: dict(counts.most_common()) for truth, counts in sorted(found.items())}


def _line(target: Target, figures: Mapping[str, Json]) -> Json:
    figure = figures.get(target.variant, {}).get(target.measure)
    reached = figure["share"] if figure else None
    met = None
    if reached is not None:
        met = reached <= target.wanted if target.at_most else reached >= target.wanted
    bound = "<=" if target.at_most else ">="
    wanted = f"{bound} {target.wanted:.0%}"
    return {"what": target.what, "wanted": wanted, "figure": figure, "met": met}


def _share(rows: Sequence[Row], measure: str) -> Share:
    return clustered_share([(row.dialogue, getattr(row.marks, measure)) for row in rows])


def _grouped(rows: Sequence[Row], key: Callable[[Row], str]) -> Json:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if not row.truth.control:
            groups[key(row)].append(row)
    return {
        name: {
            measure: share(getattr(row.marks, measure) for row in found).to_json()
            for measure in (*SHORT, "top_three", "abstained")
        }
        for name, found in sorted(groups.items())
    }


def _by_basis(rows: Iterable[Row]) -> Json:
    told = [row for row in rows if not row.truth.control and not row.marks.abstained]
    found = _grouped(told, lambda row: "+".join(row.judgement.basis))
    return {name: {m: figures[m] for m in SHORT} for name, figures in found.items()}


def _several(rows: Iterable[Row]) -> Json:
    """Cases with several decisive operations: all named, one of them named."""
    several = [row for row in rows if len(_operations(row)) > 1]
    some = (
        bool(_operations(row) & {each.operation for each in row.judgement.decisive})
        for row in several
    )
    return {
        "all_named": share(row.marks.operation for row in several).to_json(),
        "some_named": share(some).to_json(),
        "stage": share(row.marks.stage for row in several).to_json(),
    }


def _cost(rows: Sequence[Row]) -> Json:
    return {
        f"{name}_{label}": round(percentile((getattr(r, f"{name}_ms") for r in rows), where), 2)
        for name in ("load", "attribute")
        for label, where in (("median", 0.5), ("p95", 0.95), ("max", 1.0))
    }


def _operations(row: Row) -> set[tuple[str, str] | None]:
    return {each.operation for each in row.truth.decisive} - {None}


def _has_operation(row: Row) -> bool:
    return bool(_operations(row))


def _response(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row.truth.stage == row.judgement.stage == RESPONSE]


def _type_or_response(error_type: str) -> str:
    return RESPONSE if STAGE_OF[error_type] == RESPONSE else error_type


def _lost(before: Row, after: Row, measure: str) -> bool:
    return getattr(before.marks, measure) and not getattr(after.marks, measure)
