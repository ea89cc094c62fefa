"""`graphs` and `graph`: what the store holds."""

from __future__ import annotations

import click

from memtrace_collector.api.questions import GRAPH_FORMATS
from memtrace_collector.commands.options import format_option, store_option
from memtrace_collector.commands.output import print_json, print_line, table, time_text
from memtrace_collector.commands.session import open_questions
from memtrace_collector.errors import WrongUseError


@click.command()
@store_option
@format_option()
def graphs(store: str, output_format: str) -> None:
    """List the graphs: one per memory owner.

    \b
    Example:
      memtrace-otel graphs --store ./memtrace-data
    """
    with open_questions(store, "graphs") as ask:
        found = ask.graphs()
    if output_format == "json":
        print_json(found)
        return
    rows = (
        (row["graph_id"], row["operations"], time_text(row["first_ns"]), time_text(row["last_ns"]))
        for row in found
    )
    print_line(table(("GRAPH", "OPERATIONS", "FIRST", "LAST"), rows))


@click.command()
@click.argument("graph_id", metavar="GRAPH")
@store_option
@format_option(*GRAPH_FORMATS)
@click.option(
    "--answer", default="", metavar="TRACE:SPAN", help="Only the ancestry of this answer."
)
@click.option(
    "--hash",
    "only_hash",
    is_flag=True,
    help="Only the graph's fingerprint: equal for equal sets of spans, in whatever order.",
)
def graph(graph_id: str, store: str, output_format: str, answer: str, only_hash: bool) -> None:
    """Show one graph, or one answer's ancestry in it.

    \b
    Example:
      memtrace-otel graph user:anna --format dot | dot -Tsvg > anna.svg
    """
    if only_hash and answer:
        raise WrongUseError("--hash is of a whole graph; leave --answer out")
    with open_questions(store, "graph") as ask:
        if only_hash:
            text = ask.graph_hash(graph_id)
        else:
            text = ask.graph(graph_id, answer, output_format).rstrip("\n")
    if output_format == "text":
        print_line(text)
    else:
        click.echo(text)
