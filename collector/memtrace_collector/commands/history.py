"""`history`: the life of one memory record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from memtrace_collector.commands.options import format_option, store_option
from memtrace_collector.commands.output import print_json, print_line
from memtrace_collector.commands.session import open_questions


@click.command()
@click.argument("graph_id", metavar="GRAPH")
@click.argument("record", metavar="RECORD")
@store_option
@format_option()
def history(graph_id: str, record: str, store: str, output_format: str) -> None:
    """Every version of one memory record: who wrote it, from what, what changed, who read it.

    RECORD is kind and id, as in mem:mem0:4f0c2d1e-0000-4000-8000-000000000000, or any
    reference to one of its versions.

    \b
    Example:
      memtrace-otel history user:anna mem:mem0:4f0c2d1e-0000-4000-8000-000000000000
    """
    with open_questions(store, "history") as ask:
        found = ask.history(graph_id, record)
    if output_format == "json":
        print_json(found)
        return
    print_line("\n".join(_lines(found)))


def _lines(found: dict[str, Any]) -> Iterator[str]:
    yield f"{found['record']} in {found['graph_id']}"
    for version in found["versions"]:
        yield f"v{version['number']}  {version['ref']}"
        yield f"    written {version['time']} by {version['name']} {version['operation']}"
        if version["sources"]:
            yield f"    from {', '.join(version['sources'])}"
        if version["text"] is not None:
            yield f"    text {version['text']}"
        yield from (f"    {line}" for line in version["diff"])
        for reader in version["readers"]:
            by = f"{reader['name']} {reader['operation']}, rank {reader['rank']}"
            yield f"    read {reader['time']} by {by}"
