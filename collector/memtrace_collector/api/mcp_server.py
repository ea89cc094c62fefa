"""The Model Context Protocol server, over standard input and output or streamable HTTP."""

from __future__ import annotations

import importlib.metadata
import logging
from collections.abc import Callable, Mapping
from typing import Any

import anyio
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette

from memtrace_collector.api import mcp_tools
from memtrace_collector.errors import MemtraceError
from memtrace_collector.graph.questions.shapes import Json
from memtrace_collector.settings.checks import is_loopback

logger = logging.getLogger(__name__)

PATH = "/mcp"
Ask = Callable[[str, Mapping[str, Any]], Json]
"""Answers one question by name and arguments; raises an error of
:mod:`memtrace_collector.errors`. Called in threads, one call at a time or several."""


def serve_stdio(ask: Ask) -> None:
    """Serve until standard input ends. Standard output carries the protocol and nothing else."""
    anyio.run(_over_stdio, build(ask))


def http_app(ask: Ask, host: str) -> Starlette:
    """The application for streamable HTTP at :data:`PATH`. On loopback it answers only to
    names of this machine, so that no web page can reach it through a name of its own."""
    names = [f"{name}:*" for name in dict.fromkeys(("127.0.0.1", "localhost", "[::1]", _url(host)))]
    return build(ask).streamable_http_app(
        streamable_http_path=PATH,
        host=host,
        transport_security=TransportSecuritySettings(
            enable_dns_rebinding_protection=is_loopback(host),
            allowed_hosts=names,
            allowed_origins=[
                f"{scheme}://{name}" for scheme in ("http", "https") for name in names
            ],
        ),
    )


def build(ask: Ask) -> Server[Any]:
    """The server: one tool per question."""

    async def list_tools(
        _: ServerRequestContext[Any], __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=mcp_tools.tools())

    async def call_tool(
        _: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        return await anyio.to_thread.run_sync(_answer, ask, params.name, params.arguments or {})

    return Server(
        mcp_tools.NAME,
        version=importlib.metadata.version("memtrace-otel"),
        title=mcp_tools.TITLE,
        instructions=mcp_tools.INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _answer(ask: Ask, question: str, arguments: Mapping[str, Any]) -> types.CallToolResult:
    try:
        return mcp_tools.result(ask(question, arguments))
    except MemtraceError as error:
        return mcp_tools.refusal(str(error))
    except Exception:
        logger.exception("the question %r failed", question)
        return mcp_tools.refusal("this question failed here; the server's log says why")


async def _over_stdio(server: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
