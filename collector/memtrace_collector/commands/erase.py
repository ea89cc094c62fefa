"""`erase`: forget a graph or a tenant, and prove it."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from typing import Any

import click

from memtrace_collector.commands.options import format_option, store_option
from memtrace_collector.commands.output import print_json, print_line
from memtrace_collector.commands.session import open_questions, tenant_asked_for
from memtrace_collector.config import is_database, load
from memtrace_collector.errors import EXIT_FINDING, WrongUseError
from memtrace_collector.runtime.erasing_together import WAIT_SECONDS, erase_everywhere
from memtrace_collector.runtime.logless import LoglessData

_UNCONFIRMED = (
    "not confirmed in time: {logs}. The id of a log stands in the file `log/id` of the folder that "
    "a `process` or `serve` was started with (--log): the order is carried out there when it runs. "
    "A log that exists no more is left out by --gone"
)


@click.command()
@click.argument("graph_id", metavar="GRAPH", default="")
@click.option(
    "--tenant", default="", help="Of this tenant; without GRAPH everything the tenant has."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=WAIT_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for the logs of a database's processes.",
)
@click.option("--gone", metavar="LOG", multiple=True, help="Id of such a log that exists no more.")
@store_option
@format_option()
@click.pass_context
def erase(
    ctx: click.Context,
    graph_id: str,
    tenant: str,
    yes: bool,
    wait: float,
    gone: tuple[str, ...],
    store: str,
    output_format: str,
) -> None:
    """Erase a graph, or a tenant, for ever: log, facts, values, cases, outbox, search.

    Of a trace in which only this graph has operations every span goes, of others the graph's
    own. Afterwards every file of the store is searched; exit code 1 when something is left. What
    was sent on before cannot be taken back. Spans that come in later are taken as new ones.

    In a database the rows go at once; every `process` and `serve` over it erases in its own log,
    searches it, and confirms. Exit code 1 also when one has not in time: it will when it runs.

    \b
    Example:
      memtrace-otel erase user:42
    """
    if not graph_id and not tenant:
        raise WrongUseError("name a GRAPH, or a --tenant to erase everything it has")
    what = f"the graph {graph_id}" if graph_id else f"everything of the tenant {tenant}"
    if not yes:
        click.confirm(f"Erase {what} from {store}? It cannot be taken back", abort=True, err=True)
    result = _erase(store, tenant, graph_id, wait, gone)
    if output_format == "json":
        print_json(result)
    else:
        _print(what, result)
    if result["left"]:
        ctx.exit(EXIT_FINDING)


def _erase(
    store: str, tenant: str, graph_id: str, wait: float, gone: tuple[str, ...]
) -> dict[str, Any]:
    config = load({"store": store}, os.environ)
    if not is_database(config.store):
        with open_questions(store, "erase", tenant=tenant) as questions:
            return questions.erase(graph_id)
    with contextlib.closing(LoglessData(config.store)) as stores:
        data = stores.for_tenant(tenant or tenant_asked_for())
        return erase_everywhere(data, graph_id, seconds=wait, gone=gone, say=_say)


def _say(waiting: list[str]) -> None:
    click.echo(f"waiting for {len(waiting)} logs: {', '.join(waiting)}", err=True)


def _print(what: str, result: dict[str, Any]) -> None:
    erased = ", ".join(
        f"{count} {name.replace('_', ' ')}" for name, count in _some(result["erased"])
    )
    print_line(f"erased {what}: {erased or 'nothing was there'}")
    searched = Counter(result["searched"])
    print_line(
        f"searched {searched['files']} files ({searched['bytes']:,} bytes) "
        f"for {searched['texts']} names and texts"
    )
    for place, count in _some(result["elsewhere"]):
        print_line(f"  {place}: {count} finds that belong to other graphs")
    for place, count in _some(result["left"]):
        print_line(f"  {place}: {count} LEFT")
    print_line("nothing is left" if not result["left"] else "something is left: see above")
    if result.get("unconfirmed"):
        print_line(_UNCONFIRMED.format(logs=", ".join(result["unconfirmed"])))
    print_line(f"not covered: {result['note']}")


def _some(counts: dict[str, int]) -> list[tuple[str, int]]:
    return [(name, count) for name, count in counts.items() if count]
