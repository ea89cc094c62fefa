"""`bench import`: score attribution on MemTraceBench files and on cases that persons judged."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from memtrace_collector.bench import labelled, memtracebench
from memtrace_collector.bench.folder import write_whole
from memtrace_collector.bench.score import Row
from memtrace_collector.commands.options import format_option
from memtrace_collector.commands.output import on_terminal, plain, print_json, print_line, table
from memtrace_collector.errors import DamagedError


@click.command("import")
@click.argument(
    "files",
    nargs=-1,
    required=True,
    metavar="FILE…",
    type=click.Path(exists=True, path_type=Path),
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Folder for memtracebench.json: the figures, and each case with its verdict.",
)
@click.option(
    "--filter-non-memory-errors/--keep-non-memory-errors",
    "filtered",
    default=True,
    show_default=True,
    help="Leave out annotations that are labelled as wrong references or wrong judges.",
)
@click.option(
    "--no-evidence", is_flag=True, help="Search for the evidence instead of being given it."
)
@format_option()
def import_benchmark(
    files: tuple[Path, ...], out: Path, filtered: bool, no_evidence: bool, output_format: str
) -> None:
    """Attribute labelled failures, and score the verdicts by their labels.

    A FILE is one of MemTraceBench or smartcomment (ETA: the error type is named exactly, of seven;
    OIA: the operation is), or a case that a person judged, as `bench export` and `case` write it
    (all measures of `bench attribution`); or a folder: every JSON file below it. What cannot be
    read is named and skipped, with exit code 4.

    \b
    Example:
      memtrace-otel bench import ./MemTraceBench --out ./memtracebench
    """
    found = _read(_paths(files), evidence=not no_evidence, keep_non_memory=not filtered)
    figures: dict[str, Any] = {
        **memtracebench.summary(found.annotated),
        "judged": labelled.summary(found.judged, found.undecided),
        "problems": found.problems,
        "unlabelled": found.unlabelled,
    }
    out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(figures, indent=1, ensure_ascii=False)
    write_whole(out / "memtracebench.json", text.encode("utf-8", "replace"))
    if output_format == "json":
        print_json(figures)
    else:
        _print(figures)
        for name in found.unlabelled:
            print_line(f"{name}: no annotation and no judgement; `memtrace-otel import` takes it")
    if found.problems:
        raise DamagedError("\n".join(map(plain, found.problems)))


@dataclass(slots=True)
class _Found:
    """What files gave."""

    annotated: list[memtracebench.Scored] = field(default_factory=list)
    judged: list[Row] = field(default_factory=list)
    undecided: int = 0
    problems: list[str] = field(default_factory=list)
    unlabelled: list[str] = field(default_factory=list)


def _read(paths: Sequence[Path], *, evidence: bool, keep_non_memory: bool) -> _Found:
    found = _Found()
    for number, path in enumerate(paths, 1):
        if on_terminal():
            click.echo(f"{number}/{len(paths)} {plain(str(path))}", err=True)
        try:
            if labelled.is_export(memtracebench.read_document(path)):
                has_label = _read_judged(path, evidence, found)
            else:
                scored = memtracebench.read(
                    path, evidence=evidence, keep_non_memory=keep_non_memory
                )
                found.annotated += scored
                has_label = bool(scored)
        except DamagedError as error:
            found.problems.append(str(error))
            continue
        if not has_label:
            found.unlabelled.append(str(path))
    return found


def _read_judged(path: Path, evidence: bool, found: _Found) -> bool:
    case = labelled.read(path, evidence=evidence)
    found.judged += case.rows
    found.undecided += case.undecided
    found.problems += case.problems
    return bool(case.rows or case.undecided or case.problems)


def _paths(files: tuple[Path, ...]) -> list[Path]:
    found = (sorted(file.rglob("*.json")) if file.is_dir() else [file] for file in files)
    return [path for group in found for path in group]


def _print(figures: dict[str, Any]) -> None:
    if figures["judged"]["cases"]:
        print_line(table(("JUDGED BY HAND", "SHARE"), _judged_rows(figures["judged"])))
    if figures["all"]["total_cases"] or not figures["judged"]["cases"]:
        _print_annotated(figures)


def _judged_rows(judged: dict[str, Any]) -> list[tuple[str, str]]:
    names = ("operation", "stage", "type", "exact_type", "label", "joint", "abstained")
    shares = [(name.replace("_", " "), _percent(judged[name])) for name in names]
    counts = [("cases", str(judged["cases"])), ("cannot be told", str(judged["undecided"]))]
    return counts + shares


def _print_annotated(figures: dict[str, Any]) -> None:
    rows = [("all", figures["all"])]
    for group in ("by_split", "by_source", "by_label"):
        rows += figures[group].items()
    print_line(table(("", "CASES", "ETA", "OIA", "JOINT", "ABSTAINED"), map(_row, rows)))


def _row(row: tuple[str, dict[str, Any]]) -> tuple[str, ...]:
    name, figures = row
    shares = (
        figures["error_type_prediction_accuracy"],
        figures["operation_identifier_prediction_accuracy"],
        figures["joint"],
        figures["abstained"],
    )
    return name, str(figures["total_cases"]), *map(_percent, shares)


def _percent(figure: dict[str, Any]) -> str:
    if figure["share"] is None:
        return "-"
    return f"{figure['share']:.1%} ({figure['low']:.0%}-{figure['high']:.0%})"
