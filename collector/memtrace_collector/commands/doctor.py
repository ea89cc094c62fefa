"""`doctor`: what is wrong with this installation."""

from __future__ import annotations

import os
from pathlib import Path

import click

from memtrace_collector import config
from memtrace_collector.commands import health
from memtrace_collector.commands.options import config_option, format_option, store_option
from memtrace_collector.commands.output import print_json, print_line, table
from memtrace_collector.errors import (
    EXIT_DAMAGED,
    EXIT_DONE,
    EXIT_FINDING,
    EXIT_UNREACHABLE,
)

_EXIT_CODES = {
    health.OK: EXIT_DONE,
    health.WARNING: EXIT_DONE,
    health.FINDING: EXIT_FINDING,
    health.UNREACHABLE: EXIT_UNREACHABLE,
    health.DAMAGED: EXIT_DAMAGED,
}


@click.command()
@store_option
@format_option()
@config_option
@click.option("--forward", metavar="URL", help="Endpoint that `up` would forward to.")
@click.pass_context
def doctor(
    ctx: click.Context,
    store: str,
    output_format: str,
    config_file: Path | None,
    forward: str | None,
) -> None:
    """Say what is wrong here: versions, store, ports, endpoints, digest key.

    Exits with the worst of: 0 all well (warnings included), 1 something to set right,
    3 an endpoint does not answer, 4 data is damaged.

    \b
    Example:
      memtrace-otel doctor --store ./memtrace-data --forward http://localhost:14318
    """
    arguments = {"store": store, "forward.url": forward}
    settings = config.load(arguments, os.environ, config_file)
    checks = list(health.run(settings, os.environ))
    if output_format == "json":
        print_json(
            [{"check": item.name, "state": item.state, "says": item.says} for item in checks]
        )
    else:
        rows = ((item.state.upper(), item.name, item.says) for item in checks)
        print_line(table(("STATE", "CHECK", "FOUND"), rows))
    worst = max(checks, key=lambda item: health.STATES.index(item.state))
    ctx.exit(_EXIT_CODES[worst.state])
