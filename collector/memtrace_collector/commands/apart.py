"""`process`, `work` and `serve`: the parts of `up` as separate processes over one database.

Any number of each may run. A log belongs to one process; the database belongs to all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from memtrace_collector.commands.serving import (
    FORWARDING,
    LOG,
    RECEIVING,
    SERVING,
    serve_until_signal,
    settings_of,
    with_options,
)
from memtrace_collector.config import Config, is_database
from memtrace_collector.errors import WrongUseError
from memtrace_collector.runtime.roles import PROCESS, SERVE, WORK, Role


@click.command()
@with_options(LOG, *RECEIVING, *SERVING, *FORWARDING)
@click.pass_context
def process(
    ctx: click.Context,
    /,
    store: str,
    output_format: str,
    config_file: Path | None,
    folder: Path,
    **given: Any,
) -> None:
    """Receive OTLP into a log of its own, project it into a database, forward it.

    \b
    Example:
      memtrace-otel process --store postgresql://db/memtrace --log ./memtrace-log
    """
    settings = _shared(settings_of(ctx, store, config_file, given), PROCESS)
    serve_until_signal(settings, PROCESS, output_format, folder)


@click.command()
@with_options(*SERVING, *FORWARDING)
@click.pass_context
def work(
    ctx: click.Context, /, store: str, output_format: str, config_file: Path | None, **given: Any
) -> None:
    """Attribute the flagged answers of a database, and deliver the verdicts.

    \b
    Example:
      memtrace-otel work --store postgresql://db/memtrace --forward http://localhost:14318
    """
    settings = _shared(settings_of(ctx, store, config_file, given), WORK)
    serve_until_signal(settings, WORK, output_format)


@click.command()
@with_options(LOG, *SERVING)
@click.pass_context
def serve(
    ctx: click.Context,
    /,
    store: str,
    output_format: str,
    config_file: Path | None,
    folder: Path,
    **given: Any,
) -> None:
    """Serve the API and the page over a database; flags go through a log of its own.

    \b
    Example:
      memtrace-otel serve --store postgresql://db/memtrace --log ./memtrace-flags
    """
    settings = _shared(settings_of(ctx, store, config_file, given), SERVE)
    serve_until_signal(settings, SERVE, output_format, folder)


def _shared(settings: Config, role: Role) -> Config:
    if not is_database(settings.store):
        raise WrongUseError(
            f"{role.command} shares one store with other processes, which needs --store "
            f"postgresql://… (given: {settings.store}); over a folder `memtrace-otel up` does all "
            "of it"
        )
    return settings
