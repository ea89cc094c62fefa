"""`case`: a failure as a file."""

from __future__ import annotations

import json
from pathlib import Path

import click

from memtrace_collector.commands.options import format_option, store_option
from memtrace_collector.commands.output import print_json, print_line
from memtrace_collector.commands.session import open_questions
from memtrace_collector.errors import WrongUseError


@click.command()
@click.argument("answer", metavar="TRACE[:SPAN]")
@store_option
@format_option()
@click.option(
    "--out",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write (OTLP/JSON).",
)
@click.option("--redact", is_flag=True, help="Without captured content: ids and digests only.")
def case(answer: str, store: str, output_format: str, out: Path, redact: bool) -> None:
    """Write the smallest self-contained slice of a failure; it imports elsewhere.

    \b
    Example:
      memtrace-otel case 4bf92f3577b34da6a3ce929d0e0e4736 --out failure.otlp.json --redact
    """
    with open_questions(store, "case") as ask:
        request = ask.case(answer, redact)
    try:
        out.write_text(json.dumps(request, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise WrongUseError(f"cannot write {out}: {error.strerror}") from None
    spans = sum(
        len(scope["spans"])
        for resource in request["resourceSpans"]
        for scope in resource["scopeSpans"]
    )
    if output_format == "json":
        print_json({"file": str(out), "spans": spans})
    else:
        print_line(f"{out}: {spans} spans; memtrace-otel import {out}")
