"""The report as Markdown. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memtrace_collector.bench.folder import RunInfo

Json = dict[str, Any]
PARTS = {"dev": "Looked at while developing", "held_out": "Kept aside", "all": "All cases"}
_COLUMNS = {
    "operation": "operation",
    "named": "named among others",
    "stage": "stage",
    "type": "type",
    "exact_type": "exact type",
    "label": "7 labels",
    "joint": "joint",
    "top_three": "top 3",
    "abstained": "abstained",
    "operation_told": "op. if not abst.",
    "stage_told": "stage if not abst.",
    "confident_wrong": "confident wrong",
    "false_blame": "false blame",
}
_SHORT = ("operation", "stage", "type", "top_three", "abstained")


def markdown(info: RunInfo, run: Json, figures: Json) -> str:
    """The whole report.

    Args:
        info: what was asked for.
        run: what ran (:func:`memtrace_collector.bench.scoring.run_figures`).
        figures: :func:`memtrace_collector.bench.report.summary`.
    """
    sections = [_head(info, run)]
    parts = figures["parts"]
    sections += [
        _part(title, parts[name], figures["confident_from"])
        for name, title in PARTS.items()
        if name in parts and (name != "all" or len(parts) > 2)
    ]
    return "\n\n".join(sections) + "\n"


def _head(info: RunInfo, run: Json) -> str:
    lines = [
        "# Attribution benchmark",
        "",
        f"Seed {info.seed}, {info.per_kind} cases per kind and system, split {info.split}.",
        f"Planned {run['planned']}, ran {run['ran']}, counted {run['counted']} "
        f"({run['controls']} of them controls).",
        f"Judged here: {run['selection']}.",
        "Shares with 95 % intervals, drawn by dialogue in the first tables, by case (Wilson) in "
        "the groups. An abstention counts as not right. `type` takes the types inside `response` "
        "for one. Controls are in no accuracy.",
    ]
    lines += [f"- {system} was left out: {why}" for system, why in info.skipped_systems.items()]
    if run["not_counted"]:
        lines += ["", "Not counted:", ""]
        lines += [f"- {why}: {count}" for why, count in run["not_counted"].items()]
        lines += ["", "By kind:", "", *map(_not_counted, run["not_counted_by_kind"].items())]
    if run["problems"]:
        lines += ["", f"Records that do not hold what ran ({len(run['problems'])}):", ""]
        lines += [f"- {each}" for each in run["problems"][:20]]
    return "\n".join(lines)


def _not_counted(kind: tuple[str, Mapping[str, int]]) -> str:
    whys = ", ".join(f"{why} {count}" for why, count in kind[1].items())
    return f"- {kind[0]}: {whys}"


def _part(title: str, figures: Json, confident: float) -> str:
    sections = [
        f"## {title}: {figures['cases']} cases of {figures['dialogues']} dialogues",
        _acceptance(figures["acceptance"]),
        "### Variants and baselines\n\n"
        + _measures({**figures["variants"], **_marked(figures["baselines"])}),
        f"Confident: a score of at least {confident:g}. Sub-types inside `response`, where both "
        f"say response: {_figure(_given(figures).get('response_exact_type'))}. Operation where "
        f"the truth names one: {_figure(_given(figures).get('with_operation'))}. Memory blamed "
        f"where the reference was wrong: {_figure(_given(figures).get('reference_blame'))}.",
    ]
    for name, groups in figures["groups"].items():
        sections.append(f"### By {name} (given)\n\n" + _groups(name, groups, _SHORT))
    sections += [
        "### By basis (given, not abstained)\n\n"
        + _groups("basis", figures["bases"], ("operation", "stage", "type")),
        "### Abstaining below a score (given)\n\n" + _coverage(figures["coverage"]),
        "### Several causes (given)\n\n" + _several(figures["several_causes"]),
    ]
    for name, matrix in figures["confusion"].items():
        sections.append(f"### Confusion: {name.replace('_', ' ')} (given)\n\n{_matrix(matrix)}")
    sections.append("### Time per case in ms (given)\n\n" + _cost(figures["cost_ms"]))
    if figures["failures"]:
        sections.append("### Could not be judged\n\n" + _bullets(figures["failures"][:20]))
    return "\n\n".join(sections)


def _given(figures: Json) -> Json:
    found: Json = figures["variants"].get("given", {})
    return found


def _marked(figures: Mapping[str, Json]) -> dict[str, Json]:
    return {f"*{name}*": each for name, each in figures.items()}


def _acceptance(lines: Iterable[Json]) -> str:
    words = {True: "met", False: "**missed**", None: "not run"}
    rows = [
        (
            line["what"],
            line["wanted"],
            line.get("reached") or _figure(line.get("figure")),
            words[line["met"]],
        )
        for line in lines
    ]
    return _table(("acceptance", "wanted", "reached", ""), rows)


def _measures(figures: Mapping[str, Json]) -> str:
    rows = [
        (name, each["operation"]["total"], *(_figure(each.get(m)) for m in _COLUMNS))
        for name, each in figures.items()
    ]
    return _table(("", "cases", *_COLUMNS.values()), rows)


def _groups(name: str, groups: Mapping[str, Json], columns: Sequence[str]) -> str:
    rows = [
        (group, each["operation"]["total"], *(_figure(each[column]) for column in columns))
        for group, each in groups.items()
    ]
    return _table((name, "cases", *(_COLUMNS[column] for column in columns)), rows)


def _coverage(points: Iterable[Json]) -> str:
    rows = [
        (f"{point['cut']:g}", f"{point['coverage']:.1%}", *(_figure(point[m]) for m in _SHORT[:3]))
        for point in points
    ]
    return _table(("score at least", "coverage", "operation", "stage", "type"), rows)


def _several(figures: Json) -> str:
    total = figures["all_named"]["total"]
    if not total:
        return "None."
    return (
        f"{total} cases: all operations named {_figure(figures['all_named'])}, at least one "
        f"{_figure(figures['some_named'])}, stages {_figure(figures['stage'])}."
    )


def _matrix(matrix: Mapping[str, Mapping[str, int]]) -> str:
    rows = [
        (truth, sum(counts.values()), counts.get(truth, 0), _others(truth, counts))
        for truth, counts in matrix.items()
    ]
    return _table(("planted", "cases", "found", "taken for"), rows)


def _others(truth: str, counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items() if name != truth)


def _cost(figures: Json) -> str:
    labels = ("median", "p95", "max")
    rows = [(name, *(figures[f"{name}_{each}"] for each in labels)) for name in _COSTS]
    return _table(("", *labels), rows)


_COSTS = ("load", "attribute")


def _figure(figure: Json | None) -> str:
    if not figure or figure["share"] is None:
        return "–"
    return f"{figure['share']:.1%} ({figure['low']:.0%}–{figure['high']:.0%})"


def _table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [_row(header), _row("---" for _ in header)]
    return "\n".join([*lines, *map(_row, rows)])


def _row(cells: Iterable[object]) -> str:
    return f"| {' | '.join(str(cell).replace('|', '/') for cell in cells)} |"


def _bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)
