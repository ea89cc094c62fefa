"""`bench`: how good attribution is, measured on faults that were planted or labelled."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from memtrace_collector.bench import prepare, run, scoring, showing, variants
from memtrace_collector.bench.faults import KINDS, SYSTEMS
from memtrace_collector.bench.folder import RunFolder
from memtrace_collector.bench.planning.plan import CONTROL
from memtrace_collector.bench.running import OnCase, interpreters
from memtrace_collector.bench.score import CONFIDENT
from memtrace_collector.commands.bench_export import export_benchmark
from memtrace_collector.commands.bench_import import import_benchmark
from memtrace_collector.commands.options import format_option
from memtrace_collector.commands.output import (
    on_terminal,
    plain,
    print_json,
    print_line,
    shorten,
    table,
)
from memtrace_collector.errors import UnreachableError, WrongUseError

OUT = click.Path(file_okay=False, path_type=Path)


@click.group()
def bench() -> None:
    """Measure how good attribution is, on faults that were planted or labelled by hand.

    \b
    Example:
      memtrace-otel bench attribution --data ./data --out ./bench
    """


bench.add_command(import_benchmark)
bench.add_command(export_benchmark)


@bench.command()
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with files of RealMem or LoCoMo; needed unless --out holds a run already.",
)
@click.option(
    "--out", type=OUT, required=True, help="Folder of the run; an interrupted one goes on."
)
@click.option("--seed", type=int, default=1, show_default=True)
@click.option(
    "--per-kind",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Cases for each kind of fault in each system; controls come on top.",
)
@click.option(
    "--split",
    type=click.Choice(scoring.SPLITS),
    default="all",
    show_default=True,
    help="dev leaves out what is kept aside; held-out takes only that.",
)
@click.option("--systems", metavar="A,B", default="", help=f"Of {', '.join(SYSTEMS)}.")
@click.option("--kinds", metavar="A,B", default="", help="Only these kinds of faults.")
@click.option(
    "--mem0-2-python",
    envvar="MEMTRACE_MEM0_2_PYTHON",
    show_envvar=True,
    metavar="FILE",
    help="Interpreter with mem0ai 2.x, which cannot share one with 1.x.",
)
@click.option("--at-once", type=click.IntRange(1), default=1, help="Pipelines run side by side.")
@click.option("--rescore", is_flag=True, help="Judge what was recorded again; run no pipeline.")
@click.option(
    "--variants",
    "variant_names",
    metavar="A,B",
    default="",
    help=f"Judge only in these: {', '.join(variants.NAMES)}.",
)
@click.option(
    "--processes",
    type=click.IntRange(0),
    default=0,
    help="Judge in so many processes; 0: one per processor.",
)
@click.option(
    "--cut",
    type=click.FloatRange(0, 1),
    default=CONFIDENT,
    show_default=True,
    help="Score from which a verdict counts as confident.",
)
@click.option("--show", metavar="CASE", help="Print one recorded case as judged now; nothing else.")
@click.option(
    "--worst", type=click.IntRange(1), metavar="N", help="List the N most frequent failures."
)
@format_option()
def attribution(
    out: Path,
    data: Path | None,
    show: str | None,
    worst: int | None,
    output_format: str,
    **asked: Any,
) -> None:
    """Plant known faults in real pipelines, record them, and score the verdicts.

    Runs every pipeline as a program of its own over real dialogues, each case clean and with its
    fault; a fault that does not change the answer is no case. Writes the plan, the outcomes, the
    recorded traces, cases.jsonl, report.md and report.json into --out. Needs no network or key.

    \b
    Examples:
      memtrace-otel bench attribution --data ./data --out ./bench --split dev
      memtrace-otel bench attribution --out ./bench --rescore --variants given --worst 20
      memtrace-otel bench attribution --out ./bench --show CASE
    """
    folder = RunFolder(out)
    selection = scoring.Selection(
        systems=_names(asked["systems"], SYSTEMS),
        kinds=_names(asked["kinds"], (*KINDS, CONTROL)),
        split=asked["split"],
        variants=_names(asked["variant_names"], variants.NAMES),
    )
    variant = (selection.variants or (variants.GIVEN.name,))[0]
    if show is not None:
        _show(showing.show(folder, show, variant), output_format)
        return
    failed = [] if asked["rescore"] else _run(folder, data, selection, asked)
    with _counting() as on_case, _terminated():
        scored = scoring.score(
            folder,
            selection,
            processes=asked["processes"],
            confident=asked["cut"],
            progress=lambda done, total: on_case("judged", done, total),
        )
    failures = scoring.worst(scored.rows, variant, worst) if worst else []
    _print(folder, scored, failures, output_format)
    for system, why in folder.info().skipped_systems.items():
        _note(f"{system} was left out: {why}")
    if failed:
        raise UnreachableError("\n".join(failed))


def _run(
    folder: RunFolder, data: Path | None, selection: scoring.Selection, asked: dict[str, Any]
) -> list[str]:
    """Plan and run what has not run yet; one line per pipeline that failed."""
    wanted = prepare.Wanted(
        seed=asked["seed"],
        per_kind=asked["per_kind"],
        split=selection.split,
        systems=selection.systems,
        kinds=selection.kinds,
    )
    if on_terminal() and not folder.exists():
        _note("reading the dialogues and planning …")
    prepare.prepare(folder, data, wanted, _note)
    programs = run.Programs(
        python_of=interpreters(asked["mem0_2_python"]),
        at_once=asked["at_once"],
        systems=selection.systems,
    )
    with _counting() as on_case, _terminated():
        return run.go_on(folder, programs, on_case)


def _print(
    folder: RunFolder,
    scored: scoring.Scored,
    failures: list[dict[str, Any]],
    output_format: str,
) -> None:
    if output_format == "json":
        print_json({"run": scored.run, **scored.figures, "worst": failures})
        return
    for name, part in _apart(scored.figures["parts"]):
        print_line(f"{name}: {part['cases']} cases")
        print_line(table(("ACCEPTANCE", "WANTED", "REACHED", ""), map(_line, part["acceptance"])))
        print_line()
    if failures:
        print_line(
            table(("PLANTED", "VERDICT", "COUNT", "SYSTEMS", "CASES"), map(_failure, failures))
        )
    print_line(f"the whole report: {folder.root / 'report.md'}")


def _apart(parts: dict[str, Any]) -> list[tuple[str, Any]]:
    """Parts worth a table of their own: all cases only beside two others."""
    return [(name, part) for name, part in parts.items() if name != "all" or len(parts) > 2]


def _line(line: dict[str, Any]) -> tuple[str, ...]:
    figure = line.get("figure") or {}
    reached = line.get("reached") or "-"
    if figure.get("share") is not None:
        reached = f"{figure['share']:.1%} of {figure['total']}"
    return (
        line["what"],
        line["wanted"],
        reached,
        {True: "met", False: "MISSED"}.get(line["met"], ""),
    )


def _failure(found: dict[str, Any]) -> tuple[str, ...]:
    systems = ", ".join(f"{name} {count}" for name, count in found["systems"].items())
    cases = " ".join(found["cases"])
    return found["planted"], found["verdict"], str(found["count"]), systems, shorten(cases, 120)


def _show(told: dict[str, Any], output_format: str) -> None:
    if output_format == "json":
        print_json(told)
        return
    for name, value in told.items():
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            print_line("\n".join([f"{name}:", *(f"  {each}" for each in value)]))
        elif isinstance(value, (list, dict)):
            print_line(f"{name}: {json.dumps(value, ensure_ascii=False)}")
        else:
            print_line(f"{name}: {value}")


def _names(text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in known:
            raise WrongUseError(f"{name} is none of {', '.join(known)}")
    return names


def _note(line: str) -> None:
    click.echo(plain(line), err=True)


@contextmanager
def _counting() -> Iterator[OnCase]:
    """Counters on a terminal: one line, written over."""
    counts: dict[str, tuple[int, int]] = {}
    lock = threading.Lock()

    def on_case(name: str, done: int, total: int) -> None:
        with lock:
            counts[name] = done, total
            told = "  ".join(f"{each} {ended}/{of}" for each, (ended, of) in counts.items())
            click.echo(f"\r{told}\x1b[K", err=True, nl=False)

    if not on_terminal():
        yield lambda *_: None
        return
    yield on_case
    if counts:
        click.echo(err=True)


@contextmanager
def _terminated() -> Iterator[None]:
    """SIGTERM ends the run as Ctrl-C does: programs are ended, what was recorded stays."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
