"""`invariants`: what is wrong with a memory whatever it was asked."""

from __future__ import annotations

import click

from memtrace_collector.commands.options import format_option, store_option
from memtrace_collector.commands.output import print_json, print_line, shorten, table
from memtrace_collector.commands.session import open_questions
from memtrace_collector.errors import EXIT_FINDING


@click.command()
@store_option
@format_option()
@click.option("--graph", "graph_id", default="", metavar="GRAPH", help="Only this graph.")
@click.option("--kind", default="", help="Only this kind, such as stale.")
@click.option("--check", is_flag=True, help="Exit with 1 when anything is found.")
@click.pass_context
def invariants(
    ctx: click.Context, store: str, output_format: str, graph_id: str, kind: str, check: bool
) -> None:
    """List broken memory invariants: stale, zombie or foreign records delivered, lost writes …

    \b
    Example:
      memtrace-otel invariants --kind stale --check
    """
    with open_questions(store, "invariants") as ask:
        found = [item for item in ask.invariants(graph_id) if kind in ("", item["kind"])]
    if output_format == "json":
        print_json(found)
    elif not found:
        print_line("no memory invariant was broken")
    else:
        rows = (
            (item["kind"], item["graph_id"], item["operation"], shorten(item["says"], 100))
            for item in found
        )
        print_line(table(("KIND", "GRAPH", "OPERATION", "WHAT"), rows))
    if check and found:
        ctx.exit(EXIT_FINDING)
