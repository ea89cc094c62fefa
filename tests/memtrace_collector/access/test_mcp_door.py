"""The MCP server over HTTP asks for the tokens of the tenant that it serves."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.memtrace_collector.access.tokens import (
    ACME,
    EXPIRED,
    GLOBEX,
    SCRAPER,
    bearer,
    tokens_file,
)
from tests.memtrace_collector.running import DEADLINE_SECONDS, command, environment

CALL = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@contextmanager
def serving(folder: Path, **more: str) -> Iterator[str]:
    line = command("mcp", "--store", str(folder / "store"), "--http", "127.0.0.1:0")
    variables = environment(MEMTRACE_TOKENS_FILE=str(tokens_file(folder)), **more)
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True, env=variables) as process:
        try:
            assert process.stderr is not None
            said = next(line for line in process.stderr if "MCP on" in line)
            yield said.split()[-1]
        finally:
            process.terminate()
            process.wait(DEADLINE_SECONDS)


@pytest.mark.fault("F32")
@pytest.mark.parametrize(
    "chosen", [{"MEMTRACE_TENANT": "acme"}, {"MEMTRACE_TENANT": "acme", "MEMTRACE_TOKEN": GLOBEX}]
)
def test_only_the_served_tenant_s_tokens_open_the_door(
    tmp_path: Path, chosen: dict[str, str]
) -> None:
    with serving(tmp_path, **chosen) as url:
        accept = {"accept": "application/json, text/event-stream"}
        got = {
            token: httpx.post(url, json=CALL, headers={**accept, **bearer(token)}).status_code
            for token in ("none", "wrong", EXPIRED, GLOBEX, SCRAPER, ACME)
        }
    assert got.pop(ACME) not in (401, 403)
    assert got == {"none": 401, "wrong": 401, EXPIRED: 401, GLOBEX: 403, SCRAPER: 403}
