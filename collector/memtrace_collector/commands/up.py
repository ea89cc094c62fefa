"""`up`: everything, of one owner."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from memtrace_collector import config
from memtrace_collector.app import App
from memtrace_collector.commands.options import config_option, format_option, store_option
from memtrace_collector.commands.output import print_line
from memtrace_collector.commands.signals import on_hangup, until_signal
from memtrace_collector.runtime.log_format import log_to_stderr
from memtrace_collector.settings.forward import PROFILES


@click.command()
@store_option
@format_option()
@config_option
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--grpc-port", type=int, help="OTLP/gRPC; 0 takes a free one.  [default: 4317]")
@click.option("--http-port", type=int, help="OTLP/HTTP.  [default: 4318]")
@click.option("--api-port", type=int, help="API, page and metrics.  [default: 4319]")
@click.option(
    "--allow-remote", is_flag=True, default=None, help="Listen where other hosts can reach it."
)
@click.option("--tokens-file", metavar="FILE", help="Ask who is calling: tokens and tenants.")
@click.option("--forward", metavar="URL", help="Send everything on to this OTLP endpoint.")
@click.option(
    "--forward-values", is_flag=True, default=None, help="Send captured content on as well."
)
@click.option(
    "--profile",
    type=click.Choice(PROFILES),
    help="How late verdict spans are written at the destination.  [default: jaeger]",
)
@click.pass_context
def up(ctx: click.Context, /, output_format: str, config_file: Path | None, **given: Any) -> None:
    """Receive OTLP, keep graphs, attribute flagged answers, serve the API and the page.

    Spans come in on OTLP gRPC 4317 and HTTP 4318 and are acknowledged once they are on disk;
    with --forward they go on, with links completed. End it with SIGTERM or Ctrl-C; SIGHUP reads
    the file of tokens again.

    \b
    Example:
      memtrace-otel up --store ./memtrace-data --forward http://localhost:14318
    """
    log_to_stderr()
    settings = config.load(_arguments(ctx, given), os.environ, config_file)
    stop = threading.Event()
    with until_signal(stop), App(settings) as app, on_hangup(app.reload):
        _announce(app.addresses(), output_format)
        stop.wait()
        click.echo("stopping …", err=True)


def _arguments(ctx: click.Context, given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as typed: a default is none, so that a file may say otherwise."""
    by_default = ctx.get_parameter_source("store") is click.core.ParameterSource.DEFAULT
    return {
        "store": None if by_default else given["store"],
        "server.host": given["host"],
        "server.grpc_port": given["grpc_port"],
        "server.http_port": given["http_port"],
        "server.api_port": given["api_port"],
        "server.allow_remote": given["allow_remote"],
        "auth.tokens_file": given["tokens_file"],
        "forward.url": given["forward"],
        "forward.values": given["forward_values"],
        "forward.profile": given["profile"],
    }


def _announce(addresses: dict[str, Any], output_format: str) -> None:
    if output_format == "json":
        click.echo(json.dumps(addresses))
        return
    print_line(f"OTLP/gRPC  {addresses['otlp_grpc']}")
    print_line(f"OTLP/HTTP  {addresses['otlp_http']}")
    print_line(f"API, page  {addresses['api']}")
    print_line(f"store      {addresses['store']}")
    if addresses["forward"]:
        print_line(f"forward    {addresses['forward']}")
