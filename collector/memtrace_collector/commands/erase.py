"""`erase`: forget a graph or a tenant, and prove it."""

from __future__ import annotations

from typing import Any

import click

from memtrace_collector.commands.options import format_option, store_option
from memtrace_collector.commands.output import print_json, print_line
from memtrace_collector.commands.session import open_questions
from memtrace_collector.errors import EXIT_FINDING, WrongUseError


@click.command()
@click.argument("graph_id", metavar="GRAPH", default="")
@click.option(
    "--tenant", default="", help="Of this tenant; without GRAPH everything the tenant has."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@store_option
@format_option()
@click.pass_context
def erase(
    ctx: click.Context, graph_id: str, tenant: str, yes: bool, store: str, output_format: str
) -> None:
    """Erase a graph, or a tenant, for ever: log, facts, values, cases, outbox, search.

    Of a trace in which only this graph has operations every span goes, of others the graph's
    own. Afterwards every file of the store is searched; exit code 1 when something is left. What
    was sent on before cannot be taken back. Spans that come in later are taken as new ones.

    \b
    Example:
      memtrace-otel erase user:42
    """
    if not graph_id and not tenant:
        raise WrongUseError("name a GRAPH, or a --tenant to erase everything it has")
    what = f"the graph {graph_id}" if graph_id else f"everything of the tenant {tenant}"
    if not yes:
        click.confirm(f"Erase {what} from {store}? It cannot be taken back", abort=True, err=True)
    with open_questions(store, "erase", tenant=tenant) as questions:
        result = questions.erase(graph_id)
    if output_format == "json":
        print_json(result)
    else:
        _print(what, result)
    if result["left"]:
        ctx.exit(EXIT_FINDING)


def _print(what: str, result: dict[str, Any]) -> None:
    erased = ", ".join(
        f"{count} {name.replace('_', ' ')}" for name, count in _some(result["erased"])
    )
    print_line(f"erased {what}: {erased or 'nothing was there'}")
    searched = result["searched"]
    print_line(
        f"searched {searched['files']} files ({searched['bytes']:,} bytes) "
        f"for {searched['texts']} names and texts"
    )
    for place, count in _some(result["elsewhere"]):
        print_line(f"  {place}: {count} finds that belong to other graphs")
    for place, count in _some(result["left"]):
        print_line(f"  {place}: {count} LEFT")
    print_line("nothing is left" if not result["left"] else "something is left: see above")
    print_line(f"not covered: {result['note']}")


def _some(counts: dict[str, int]) -> list[tuple[str, int]]:
    return [(name, count) for name, count in counts.items() if count]
