"""`bench import`: score attribution on MemTraceBench files and smartcomment exports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from memtrace_collector.bench import memtracebench
from memtrace_collector.bench.folder import write_whole
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
    """Attribute the annotated failures of MemTraceBench files; score by its two measures.

    A FILE may be a folder: every JSON file below it. ETA: the error type is named exactly, of
    seven. OIA: the operation is. What cannot be read is named and skipped, with exit code 4.

    \b
    Example:
      memtrace-otel bench import ./MemTraceBench --out ./memtracebench
    """
    problems: list[str] = []
    unlabelled: list[str] = []
    scored: list[memtracebench.Scored] = []
    paths = _paths(files)
    for number, path in enumerate(paths, 1):
        if on_terminal():
            click.echo(f"{number}/{len(paths)} {plain(str(path))}", err=True)
        try:
            found = memtracebench.read(path, evidence=not no_evidence, keep_non_memory=not filtered)
        except DamagedError as error:
            problems.append(str(error))
            continue
        scored += found
        if not found:
            unlabelled.append(str(path))
    figures = {**memtracebench.summary(scored), "problems": problems, "unlabelled": unlabelled}
    out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(figures, indent=1, ensure_ascii=False)
    write_whole(out / "memtracebench.json", text.encode("utf-8", "replace"))
    if output_format == "json":
        print_json(figures)
    else:
        _print(figures)
        for name in unlabelled:
            print_line(f"{name}: no annotation to compare with; `memtrace-otel import` takes it")
    if problems:
        raise DamagedError("\n".join(map(plain, problems)))


def _paths(files: tuple[Path, ...]) -> list[Path]:
    found = (sorted(file.rglob("*.json")) if file.is_dir() else [file] for file in files)
    return [path for group in found for path in group]


def _print(figures: dict[str, Any]) -> None:
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
