"""A real `memtrace-otel mcp` behind the SDK's own client, for synchronous tests."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.types import CallToolResult, TextContent

from tests.memtrace_collector.running import DEADLINE_SECONDS, command, environment


class Session:
    """An open session, callable from a test."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self._portal = portal
        self.client = client

    def tools(self) -> list[Any]:
        return self._portal.call(self.client.list_tools).tools

    def call(self, name: str, **arguments: Any) -> CallToolResult:
        return self._portal.call(self.client.call_tool, name, arguments)

    def ask(self, name: str, **arguments: Any) -> Any:
        """The structured answer of a call that succeeds."""
        result = self.call(name, **arguments)
        assert not result.is_error, text_of(result)
        return result.structured_content

    def refused(self, name: str, **arguments: Any) -> str:
        """What a call that fails says."""
        result = self.call(name, **arguments)
        assert result.is_error, result.structured_content
        return text_of(result)


def text_of(result: CallToolResult) -> str:
    (part,) = result.content
    assert isinstance(part, TextContent)
    return part.text


@contextlib.contextmanager
def connected(server: StdioServerParameters | str) -> Iterator[Session]:
    """A session with a program over its standard streams, or with a URL."""
    with start_blocking_portal() as portal:
        client = Client(server, read_timeout_seconds=DEADLINE_SECONDS)
        with portal.wrap_async_context_manager(client):
            yield Session(portal, client)


@contextlib.contextmanager
def over_stdio(store: Path, *options: str) -> Iterator[Session]:
    program, *arguments = command("mcp", "--store", str(store), *options)
    parameters = StdioServerParameters(command=program, args=arguments, env=environment())
    with connected(parameters) as session:
        yield session


@contextlib.contextmanager
def http_server(store: Path, *options: str) -> Iterator[str]:
    """The URL of a server on a free port; it must end by itself on SIGTERM."""
    line = command("mcp", "--store", str(store), "--http", "127.0.0.1:0", *options)
    process = subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    )
    assert process.stderr is not None and process.stdout is not None
    try:
        announced = process.stderr.readline()
        assert announced.startswith("MCP on "), announced + process.stderr.read()
        yield announced.removeprefix("MCP on ").strip()
    finally:
        os.kill(process.pid, signal.SIGTERM)
        code = process.wait(DEADLINE_SECONDS)
        printed = process.stdout.read()
        process.stdout.close()
        process.stderr.close()
    assert (code, printed) == (0, "")
