"""`up`: everything, of one owner."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from memtrace_collector.commands.serving import (
    FORWARDING,
    RECEIVING,
    SERVING,
    serve_until_signal,
    settings_of,
    with_options,
)
from memtrace_collector.runtime.roles import UP


@click.command()
@with_options(*RECEIVING, *SERVING, *FORWARDING)
@click.pass_context
def up(
    ctx: click.Context, /, store: str, output_format: str, config_file: Path | None, **given: Any
) -> None:
    """Receive OTLP, keep graphs, attribute flagged answers, serve the API and the page.

    Spans come in on OTLP gRPC 4317 and HTTP 4318 and are acknowledged once they are on disk;
    with --forward they go on, with links completed. End it with SIGTERM or Ctrl-C; SIGHUP reads
    the file of tokens again.

    \b
    Example:
      memtrace-otel up --store ./memtrace-data --forward http://localhost:14318
    """
    serve_until_signal(settings_of(ctx, store, config_file, given), UP, output_format)
