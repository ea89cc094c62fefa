"""`bench export`: the cases that persons judged, as a labelled benchmark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from memtrace_collector.api.questions import Questions
from memtrace_collector.bench.folder import write_whole
from memtrace_collector.commands.options import format_option, store_option
from memtrace_collector.commands.output import (
    on_terminal,
    print_json,
    print_line,
    span_text,
    table,
)
from memtrace_collector.commands.session import open_questions
from memtrace_collector.errors import NotFoundError, WrongUseError


@click.command("export")
@store_option
@format_option()
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder: CASE.otlp.json for each case.",
)
@click.option("--graph", "graph_id", default="", metavar="GRAPH", help="Only this graph.")
@click.option("--redact", is_flag=True, help="Without captured content, names and notes.")
def export_benchmark(
    store: str, output_format: str, out: Path, graph_id: str, redact: bool
) -> None:
    """Write every case that a person judged, with the judgement as its label.

    A file holds what `case` writes, and a span `memtrace.judgement`; `bench import` scores the
    rules against such labels. A case whose spans are no longer kept is named, and the exit code
    is 2.

    \b
    Example:
      memtrace-otel bench export --out ./judged
      memtrace-otel bench import ./judged --out ./scores
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WrongUseError(f"cannot write {out}: {error.strerror}") from None
    problems: list[str] = []
    with open_questions(store, "bench export") as ask:
        written = list(_write(ask, out, graph_id, redact, problems))
    if output_format == "json":
        print_json({"folder": str(out), "cases": written, "problems": problems})
    else:
        rows = ((each["file"], each["label"], each["answer"]) for each in written)
        print_line(table(("FILE", "LABEL", "ANSWER"), rows))
        print_line(f"{out}: {len(written)} judged cases")
    if problems:
        raise NotFoundError("\n".join(problems))


def _write(
    ask: Questions, out: Path, graph_id: str, redact: bool, problems: list[str]
) -> Iterator[dict[str, Any]]:
    judged = [each for each in ask.verdicts(graph_id, "", "") if each.get("judgement")]
    for number, verdict in enumerate(judged, 1):
        if on_terminal():
            click.echo(f"\r{number}/{len(judged)}\x1b[K", err=True, nl=number == len(judged))
        answer = span_text(verdict["answer"])
        try:
            request = ask.case(answer, redact)
        except NotFoundError as error:
            problems.append(f"{answer}: {error}")
            continue
        file = out / f"{verdict['id']}.otlp.json"
        text = json.dumps(request, ensure_ascii=False, indent=1)
        write_whole(file, f"{text}\n".encode("utf-8", "replace"))
        label = f"{verdict['stage']}/{verdict['error_type']}"
        yield {"file": file.name, "label": label, "answer": answer}
