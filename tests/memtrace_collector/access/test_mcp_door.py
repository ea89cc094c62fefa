"""The MCP server over HTTP asks for the tokens of the tenant that it serves."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.memtrace_collector.access.certificates import Authority, Pair
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
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
ACCEPT = {"accept": "application/json, text/event-stream"}


@contextmanager
def serving(folder: Path, **more: str) -> Iterator[str]:
    line = command("mcp", "--store", str(folder / "store"), "--http", "127.0.0.1:0")
    known = {"agent.acme.example": "acme", "agent.globex.example": "globex"}
    tokens = tokens_file(folder, certificates=known)
    variables = environment(MEMTRACE_TOKENS_FILE=str(tokens), **more)
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
        got = {
            token: httpx.post(url, json=CALL, headers={**ACCEPT, **bearer(token)}).status_code
            for token in ("none", "wrong", EXPIRED, GLOBEX, SCRAPER, ACME)
        }
    assert got.pop(ACME) not in (401, 403)
    assert got == {"none": 401, "wrong": 401, EXPIRED: 401, GLOBEX: 403, SCRAPER: 403}


@pytest.mark.fault("F32")
def test_over_tls_a_token_or_the_served_tenant_s_certificate_opens_the_door(tmp_path: Path) -> None:
    ours, theirs = Authority(tmp_path, "ours"), Authority(tmp_path, "theirs")
    server = ours.sign("collector.example")
    acme, globex = ours.sign("agent.acme.example"), ours.sign("agent.globex.example")
    files = {
        "MEMTRACE_TLS_CERTIFICATE": str(server.certificate),
        "MEMTRACE_TLS_KEY": str(server.key),
        "MEMTRACE_TLS_CLIENT_CA": str(ours.certificate),
    }
    with serving(tmp_path, MEMTRACE_TENANT="acme", **files) as url:
        assert url.startswith("https://")
        page = {"origin": url.removesuffix("/mcp")}
        for pair, headers in ((None, bearer(ACME)), (acme, {}), (acme, {**bearer(ACME), **page})):
            answer = said_hello(url, ours, pair, headers)
            assert answer.status_code == 200 and "serverInfo" in answer.text
        elsewhere = {**bearer(ACME), "origin": "https://evil.example"}
        assert said_hello(url, ours, None, elsewhere).status_code == 403
        assert said_hello(url, ours, None, {}).status_code == 401
        assert said_hello(url, ours, globex, {}).status_code == 403
        assert said_hello(url, ours, acme, bearer(GLOBEX)).status_code == 401
        with pytest.raises(httpx.TransportError):
            said_hello(url, ours, theirs.sign("agent.acme.example"), {})
        with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
            said_hello(url, theirs, None, bearer(ACME))
        with pytest.raises(httpx.TransportError):
            httpx.post(url.replace("https", "http"), json=HELLO, headers={**ACCEPT, **bearer(ACME)})


def said_hello(
    url: str, trusted: Authority, shown: Pair | None, headers: dict[str, str]
) -> httpx.Response:
    context = ssl.create_default_context(cafile=trusted.certificate)
    if shown is not None:
        context.load_cert_chain(shown.certificate, shown.key)
    with httpx.Client(verify=context, trust_env=False) as client:
        return client.post(url, json=HELLO, headers={**ACCEPT, **headers})
