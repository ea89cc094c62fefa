"""`impact`: everything derived from something."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from memtrace_collector.commands.options import format_option, store_option
from memtrace_collector.commands.output import print_json, print_line, shorten, table
from memtrace_collector.commands.session import open_questions


@click.command()
@click.argument("target", metavar="REF|TRACE:SPAN|CONVERSATION")
@store_option
@format_option()
@click.option("--records", is_flag=True, help="Only the ids of memory records, one per line.")
def impact(target: str, store: str, output_format: str, records: bool) -> None:
    """Everything derived from a reference, a span or a conversation.

    \b
    Example:
      memtrace-otel impact msg:conv-7/12@0d3f5a6b7c8d --records
    """
    with open_questions(store, "impact") as ask:
        found = ask.impact(target)
    for warning in _warnings(found):
        click.echo(warning, err=True)
    if output_format == "json":
        print_json(found["records"] if records else found)
    elif records:
        for record in found["records"]:
            print_line(record)
    else:
        rows = (
            (item["kind"], item["ref"], item["operation"], shorten(item["text"] or "", 60))
            for item in found["derived"]
        )
        print_line(table(("KIND", "REFERENCE", "MADE BY", "TEXT"), rows))


def _warnings(found: dict[str, Any]) -> Iterator[str]:
    if not found["complete"]:
        yield "there is more: the walk was stopped at its bound"
    if found["lineage"] != "complete":
        yield f"the lineage is {found['lineage']}: some of this may come from something else"
    if found["lost"]:
        yield f"{found['lost']} operations never arrived: more may come from it"
