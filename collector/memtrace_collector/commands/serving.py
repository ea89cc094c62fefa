"""What the commands share that go on and serve: options, settings, the announcement, the end."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import click

from memtrace_collector import config
from memtrace_collector.app import App
from memtrace_collector.commands.options import config_option, format_option, store_option
from memtrace_collector.commands.output import print_line
from memtrace_collector.commands.signals import on_hangup, until_signal
from memtrace_collector.runtime.garbage import collect_rarely
from memtrace_collector.runtime.log_format import log_to_stderr
from memtrace_collector.runtime.roles import Role
from memtrace_collector.settings.profiles import PROFILES

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Option: TypeAlias = Callable[[Any], Any]

RECEIVING: tuple[Option, ...] = (
    click.option("--grpc-port", type=int, help="OTLP/gRPC; 0 takes a free one.  [default: 4317]"),
    click.option("--http-port", type=int, help="OTLP/HTTP.  [default: 4318]"),
)
SERVING: tuple[Option, ...] = (
    click.option("--host", help="Address to listen on.  [default: 127.0.0.1]"),
    click.option("--api-port", type=int, help="API, page and metrics.  [default: 4319]"),
    click.option(
        "--allow-remote", is_flag=True, default=None, help="Listen where other hosts can reach it."
    ),
    click.option("--tokens-file", metavar="FILE", help="Ask who is calling: tokens and tenants."),
)
FORWARDING: tuple[Option, ...] = (
    click.option("--forward", metavar="URL", help="Send everything on to this OTLP endpoint."),
    click.option(
        "--forward-values", is_flag=True, default=None, help="Send captured content on as well."
    ),
    click.option(
        "--profile",
        type=click.Choice(tuple(PROFILES)),
        help="How late verdict spans are written at the destination.  [default: jaeger]",
    ),
)
LOG: Option = click.option(
    "--log",
    "folder",
    envvar="MEMTRACE_LOG",
    show_envvar=True,
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the log that this process keeps, and no other.",
)
_PATHS = {
    "host": "server.host",
    "grpc_port": "server.grpc_port",
    "http_port": "server.http_port",
    "api_port": "server.api_port",
    "allow_remote": "server.allow_remote",
    "tokens_file": "auth.tokens_file",
    "forward": "forward.url",
    "forward_values": "forward.values",
    "profile": "forward.profile",
}


def with_options(*options: Option) -> Callable[[Decorated], Decorated]:
    """``--store``, ``--format``, ``--config`` and these, in this order."""

    def decorate(function: Decorated) -> Decorated:
        for option in reversed((store_option, format_option(), config_option, *options)):
            function = option(function)
        return function

    return decorate


def settings_of(
    ctx: click.Context, store: str, config_file: Path | None, given: Mapping[str, Any]
) -> config.Config:
    """The settings in force. A default of the command line is none, so that a file may say
    otherwise."""
    by_default = ctx.get_parameter_source("store") is click.core.ParameterSource.DEFAULT
    typed = {_PATHS[name]: value for name, value in given.items()}
    return config.load({"store": None if by_default else store, **typed}, os.environ, config_file)


def serve_until_signal(
    settings: config.Config, role: Role, output_format: str, folder: Path | None = None
) -> None:
    """Run the parts of ``role``, say where they listen, and end with a signal."""
    log_to_stderr()
    stop = threading.Event()
    with until_signal(stop), App(settings, role, folder) as app, on_hangup(app.reload):
        collect_rarely()
        _announce(app.addresses(), output_format)
        stop.wait()
        click.echo("stopping …", err=True)


def _announce(addresses: Mapping[str, Any], output_format: str) -> None:
    if output_format == "json":
        click.echo(json.dumps(addresses))
        return
    for name, title in (
        ("otlp_grpc", "OTLP/gRPC"),
        ("otlp_http", "OTLP/HTTP"),
        ("api", "API, page"),
        ("store", "store"),
        ("forward", "forward"),
    ):
        if addresses.get(name):
            print_line(f"{title:9}  {addresses[name]}")
