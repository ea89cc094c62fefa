"""`mcp`: the questions as tools for an assistant on call."""

from __future__ import annotations

import importlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import click
from starlette.applications import Starlette

from memtrace_collector.access.authentication import Authenticator
from memtrace_collector.access.guard import Guard
from memtrace_collector.access.tls import check_files
from memtrace_collector.api.listening import ApiServer
from memtrace_collector.commands.options import store_option
from memtrace_collector.commands.session import open_questions, tenant_asked_for
from memtrace_collector.config import Config, load
from memtrace_collector.errors import ConfigError, WrongUseError
from memtrace_collector.graph.questions.answered import MAX_TEXT_CHARS
from memtrace_collector.graph.questions.shapes import Json
from memtrace_collector.settings.checks import is_loopback

HINT = 'the MCP server needs the official SDK: pip install "memtrace-otel[mcp]"'
_NEEDED = ("mcp", "mcp_types", "anyio")
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@click.command()
@store_option
@click.option(
    "--http",
    "address",
    metavar="HOST:PORT",
    help="Streamable HTTP at /mcp instead of standard input and output; port 0 takes a free one.",
)
@click.option(
    "--allow-remote",
    is_flag=True,
    help="With --http: listen where other hosts can reach it, though nobody is asked who calls.",
)
@click.option("--no-content", is_flag=True, help="Withhold captured texts: structure only.")
def mcp(store: str, address: str | None, allow_remote: bool, no_content: bool) -> None:
    """Serve the graph questions to an assistant, over the Model Context Protocol.

    Read only. Works beside a running `up`, and on a folder nobody owns. Over standard input
    and output (the default), standard output carries the protocol and logs go to standard
    error. Serves one tenant, MEMTRACE_TENANT; over HTTP it asks for that tenant's tokens where
    MEMTRACE_TOKENS_FILE is set, with MEMTRACE_TLS_… over TLS.

    \b
    Example:
      memtrace-otel mcp --store ./memtrace-data
    """
    logging.basicConfig(
        level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    settings = load({"store": store}, os.environ)
    listen = _parsed(address, allow_remote, settings) if address is not None else None
    # who is let in by a token of one tenant is never answered about another
    served = tenant_asked_for() if settings.auth.is_on else ""
    server = _server()
    asking = threading.Lock()

    def ask(question: str, arguments: Mapping[str, Any]) -> Json:
        # opened per question: the folder stays free for `up` and other commands in between
        with asking, open_questions(store, "mcp", tenant=served) as questions:
            return questions.explore(question, arguments, 0 if no_content else MAX_TEXT_CHARS)

    ask("graphs", {"limit": 1})
    if listen is None:
        if sys.stdin.isatty():
            click.echo("MCP on standard input and output, for a program; Ctrl-D ends", err=True)
        server.serve_stdio(ask)
    else:
        _serve_http(server.http_app(ask, listen[0]), server.PATH, *listen, settings)


def _server() -> ModuleType:
    """Loaded here, so that the other commands work without the extra."""
    try:
        return importlib.import_module("memtrace_collector.api.mcp_server")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _NEEDED:
            raise
        raise WrongUseError(f"{HINT} (missing: {error.name})") from None


def _serve_http(app: Starlette, path: str, host: str, port: int, settings: Config) -> None:
    check_files(settings.tls)
    if settings.auth.is_on:
        known = Authenticator(settings.auth.path)
        app.add_middleware(Guard, authenticator=known, tenant=tenant_asked_for())
    stop = threading.Event()
    previous = {number: signal.signal(number, lambda *_: stop.set()) for number in _SIGNALS}
    try:
        http = ApiServer(app, host, port, lifespan="on", option="--http", tls=settings.tls)
        http.start()
        bound, taken = http.address
        shown = f"[{bound}]" if ":" in bound else bound
        click.echo(
            f"MCP on {'https' if settings.tls.is_on else 'http'}://{shown}:{taken}{path}", err=True
        )
        stop.wait()
        http.stop()
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _parsed(address: str, allow_remote: bool, settings: Config) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not (port.isascii() and port.isdecimal()) or int(port) > 65_535:
        raise ConfigError(f"--http: {address!r} is not HOST:PORT, such as 127.0.0.1:4320")
    is_guarded = settings.auth.is_on and settings.tls.is_on
    if not allow_remote and not is_guarded and not is_loopback(host):
        raise ConfigError(
            f"--http: {host} can be reached from other hosts, and nothing here asks who is "
            "calling over TLS; keep 127.0.0.1, set MEMTRACE_TOKENS_FILE and MEMTRACE_TLS_…, or "
            "say --allow-remote when the network itself is closed"
        )
    return host, int(port)
