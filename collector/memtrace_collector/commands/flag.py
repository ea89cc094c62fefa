"""`flag`: say that an answer is wrong."""

from __future__ import annotations

import click

from memtrace_collector.commands.options import format_option, store_option
from memtrace_collector.commands.output import print_json, print_line, span_text
from memtrace_collector.commands.session import open_questions


@click.command()
@click.argument("answer", metavar="TRACE[:SPAN]")
@store_option
@format_option()
@click.option("--expected", help='What it should have said; "" when it should have declined.')
@click.option(
    "--evidence", multiple=True, metavar="REF", help="Reference of a message that says so (repeat)."
)
@click.option("--reason", default="", help="Why it is flagged, in words.")
def flag(
    answer: str,
    store: str,
    output_format: str,
    expected: str | None,
    evidence: tuple[str, ...],
    reason: str,
) -> None:
    """Flag an answer as wrong, for `attribute` to look into.

    \b
    Example:
      memtrace-otel flag 4bf92f3577b34da6a3ce929d0e0e4736:00f067aa0ba902b7 --expected Lisbon
    """
    with open_questions(store, "flag") as ask:
        flagged = ask.flag(answer, expected, list(evidence), reason)
    if output_format == "json":
        print_json(flagged)
        return
    print_line(f"flagged {span_text(flagged['answer'])} in {flagged['graph_id']}")
