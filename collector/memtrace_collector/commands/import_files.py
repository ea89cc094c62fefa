"""`import`: traces from files into the store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from memtrace_collector.api.questions import Questions
from memtrace_collector.bench.labels import Label
from memtrace_collector.commands.import_judgements import labelled, take_over
from memtrace_collector.commands.import_reader import PIECE_BYTES, Piece, Problem, read_file
from memtrace_collector.commands.options import format_option, store_option
from memtrace_collector.commands.output import on_terminal, plain, print_json, print_line
from memtrace_collector.commands.session import open_questions
from memtrace_collector.errors import DamagedError


@click.command("import")
@click.argument(
    "files",
    nargs=-1,
    required=True,
    metavar="FILE…",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@click.option(
    "--judgements",
    "takes_judgements",
    is_flag=True,
    help="Also what people said of the cases: these answers are attributed first, by rules.",
)
@store_option
@format_option()
def import_files(
    files: tuple[Path, ...], takes_judgements: bool, store: str, output_format: str
) -> None:
    """Take traces from files: OTLP/JSON, OTLP protobuf, smartcomment, MemTraceBench.

    Importing a file twice changes nothing. What cannot be read is named and skipped; the
    rest is imported, and the exit code is 4.

    \b
    Example:
      memtrace-otel import traces.otlp.json --store ./memtrace-data
    """
    problems: list[Problem] = []
    labels: list[Label] = []
    with open_questions(store, "import") as ask:
        items = _append(ask, labelled(_with_progress(files), labels), problems)
        total = ask.settle()["operations"]
        taken = list(take_over(ask, labels, problems)) if takes_judgements else []
    if output_format == "json":
        print_json(
            {
                "items": items,
                "operations": total,
                "judgements": {"found": len(labels), "taken": len(taken)},
                "problems": [p._asdict() for p in problems],
            }
        )
    else:
        print_line(f"imported {items} spans and log records; {total} operations in the store")
        if labels:
            hint = "" if takes_judgements else "; --judgements takes them over"
            print_line(f"judgements of people: {len(labels)} found, {len(taken)} taken over{hint}")
    if problems:
        raise DamagedError("\n".join(f"{plain(p.where)}: {plain(p.reason)}" for p in problems))


def _append(ask: Questions, found: Iterator[Piece | Problem], problems: list[Problem]) -> int:
    """Append what was found, small pieces together; the number of spans and log records."""
    items = size = 0
    waiting: list[Piece] = []
    for item in found:
        if isinstance(item, Problem):
            problems.append(item)
            continue
        items += item.items
        size += len(item.body)
        if waiting and (waiting[0].signal != item.signal or size > PIECE_BYTES):
            _flush(ask, waiting)
            size = len(item.body)
        waiting.append(item)
    _flush(ask, waiting)
    return items


def _flush(ask: Questions, waiting: list[Piece]) -> None:
    """Append the waiting pieces as one request: protobuf messages merge by concatenation."""
    if waiting:
        ask.append(b"".join(piece.body for piece in waiting), waiting[0].signal)
        waiting.clear()


def _with_progress(files: tuple[Path, ...]) -> Iterator[Piece | Problem]:
    for number, path in enumerate(files, 1):
        if on_terminal():
            click.echo(f"{number}/{len(files)} {plain(str(path))}", err=True)
        yield from read_file(path)
