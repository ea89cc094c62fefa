"""A running `up` with authentication: every door, the worker and the command line, by tenant."""

from __future__ import annotations

import json
import re
import signal
import ssl
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
    written,
)
from tests.memtrace_collector.running import (
    DEADLINE_SECONDS,
    VECTORS,
    Up,
    command,
    environment,
    eventually,
    start_up,
)

GRAPH, ANSWER = "user:overwritten", "efb8a8ab508e6bd1b651fee1f0b833a8:7e6273752eb9794e"
SHARED, READER = "corpus:handbook", "992ff5e9e35886a6ceb54ae94e9d000f"
READS = [
    ("/graph", {"graph": GRAPH}),
    ("/graph", {"graph": GRAPH, "answer": ANSWER}),
    ("/hash", {"graph": GRAPH}),
    ("/ancestry", {"answer": ANSWER}),
    ("/history", {"graph": GRAPH, "record": "mem:stub:11"}),
    ("/why", {"answer": ANSWER}),
    ("/impact", {"target": ANSWER}),
    ("/case", {"answer": ANSWER}),
]
EMPTY = ["/graphs", "/verdicts", "/verdicts?history=true", "/set-aside", "/undelivered"]
SPOOFED = {"x-scope-orgid": "acme", "x-memtrace-tenant": "acme", "memtrace-tenant": "acme"}


def spans(name: str, *graph_ids: str) -> bytes:
    """A vector as OTLP/JSON; with graph ids only their spans."""
    document = json.loads((VECTORS / f"{name}.otlp.json").read_text())
    for resource in document["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            scope["spans"] = [
                span for span in scope["spans"] if not graph_ids or _graph_id(span) in graph_ids
            ]
    return json.dumps(document).encode()


def _graph_id(span: dict[str, Any]) -> str:
    found = {item["key"]: item["value"] for item in span["attributes"]}
    return str(found["memtrace.graph.id"]["stringValue"])


class Running:
    def __init__(self, up: Up) -> None:
        self.up = up
        self.api = f"{up.addresses['api']}/api/v1"

    def send(self, token: str, body: bytes) -> None:
        headers = {"content-type": "application/json", **bearer(token)}
        url = f"{self.up.addresses['otlp_http']}/v1/traces"
        httpx.post(url, content=body, headers=headers, timeout=20).raise_for_status()

    def get(self, token: str, path: str, **parameters: str) -> httpx.Response:
        headers = {**bearer(token), **SPOOFED}
        return httpx.get(f"{self.api}{path}", params=parameters or None, headers=headers)

    def post(self, token: str, path: str, body: dict[str, Any]) -> httpx.Response:
        return httpx.post(f"{self.api}{path}", json=body, headers=bearer(token), timeout=30)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tenants")


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[Running]:
    """Acme has a flagged answer, globex a graph that one of acme's answers reads from."""
    up = start_up(folder / "store", "--tokens-file", str(tokens_file(folder)))
    running = Running(up)
    running.send(ACME, spans("overwritten"))
    running.send(GLOBEX, spans("two_graphs", SHARED))
    running.send(ACME, spans("two_graphs", "user:two_graphs"))
    for token in (ACME, GLOBEX):
        running.post(token, "/settle", {}).raise_for_status()
    yield running
    if up.process.poll() is None:
        up.stop()


@pytest.mark.fault("F32")
def test_each_tenant_sees_its_own_graphs(running: Running) -> None:
    graphs = {
        token: sorted(graph["graph_id"] for graph in running.get(token, "/graphs").json())
        for token in (ACME, GLOBEX)
    }
    assert graphs == {ACME: [GRAPH, "user:two_graphs"], GLOBEX: [SHARED]}


@pytest.mark.fault("F32")
@pytest.mark.parametrize(("path", "parameters"), READS)
def test_a_tenant_s_own_question_is_answered_and_another_s_is_about_nothing(
    running: Running, path: str, parameters: dict[str, str]
) -> None:
    answered = running.get(ACME, path, **parameters)
    assert answered.status_code == 200, answered.text
    refused = running.get(GLOBEX, path, **parameters)
    assert refused.status_code == 404
    assert "Lisbon" not in refused.text and "two_graphs" not in refused.text


@pytest.mark.fault("F32")
@pytest.mark.parametrize("path", EMPTY)
def test_lists_hold_nothing_of_another_tenant(running: Running, path: str) -> None:
    assert GRAPH not in running.get(GLOBEX, path).text
    assert "overwritten" not in running.get(GLOBEX, "/invariants").text


@pytest.mark.fault("F32")
def test_another_tenant_can_neither_flag_nor_judge_nor_search(running: Running) -> None:
    flag = {"answer": ANSWER, "expected": "x"}
    assert running.post(GLOBEX, "/flag", flag).status_code == 404
    judged = running.post(GLOBEX, "/attribute", {"graph": GRAPH}).json()
    assert judged["verdicts"] == [] == judged["set_aside"]
    for question, arguments in (("graphs", {}), ("search", {"graph": GRAPH, "text": "Lisbon"})):
        body = {"question": question, "arguments": arguments, "text_chars": 1_000}
        assert GRAPH not in re.sub(r'"message".*', "", running.post(GLOBEX, "/explore", body).text)


@pytest.mark.fault("F32")
def test_the_worker_judges_every_tenant_s_answers_for_that_tenant(running: Running) -> None:
    def found() -> list[dict[str, Any]]:
        return [v for v in running.get(ACME, "/verdicts").json() if v["graph_id"] == GRAPH]

    eventually(lambda: bool(found()), "a verdict for acme")
    assert found()[0]["error_type"] == "overwritten"
    assert running.get(GLOBEX, "/verdicts").json() == []


@pytest.mark.fault("F32")
def test_a_graph_of_another_tenant_is_not_read_through_a_link(running: Running) -> None:
    ancestry = running.get(ACME, "/ancestry", answer=READER).json()
    named = {operation["graph_id"] for operation in ancestry["operations"]}
    assert named == {"user:two_graphs"}
    why = running.get(ACME, "/why", answer=READER)
    case = running.get(ACME, "/case", answer=READER)
    for answer in (why, case):
        assert answer.status_code == 200 and "ceef1b0627f2741830c59a27ba0b78c0" not in answer.text


@pytest.mark.fault("F32")
@pytest.mark.parametrize("token", ["", "wrong", EXPIRED])
@pytest.mark.parametrize(
    "path",
    [
        "/metrics",
        "/static",
        "/static/../api/v1/graphs",
        "/api/v1/graphs",
        "/api/v1/about",
        "/nothing",
    ],
)
def test_the_api_answers_nobody_unknown(running: Running, path: str, token: str) -> None:
    headers = {**(bearer(token) if token else {}), **SPOOFED}
    response = httpx.get(f"{running.up.addresses['api']}{path}", headers=headers)
    assert response.status_code == 401 and "Bearer" in response.headers["www-authenticate"]
    assert "default-src 'none'" in response.headers["content-security-policy"]


@pytest.mark.fault("F32")
def test_the_page_without_its_data_is_open_and_asks_for_the_token_itself(running: Running) -> None:
    api = running.up.addresses["api"]
    for path in ("/", "/static/page.js", "/static/page.css"):
        assert httpx.get(f"{api}{path}").status_code == 200
    for path in ("/static/../app.py", "/static/%2e%2e/server.py"):
        assert httpx.get(f"{api}{path}").status_code in (401, 404)
    challenges = {
        asked: httpx.get(f"{running.api}/about", headers=headers).headers["www-authenticate"]
        for asked, headers in (("by hand", {}), ("by a script", {"x-requested-by": "page"}))
    }
    assert "Basic" in challenges["by hand"]
    assert challenges["by a script"] == "Bearer"
    assert running.get(ACME, "/about").json()["tenant"] == "acme"


def test_health_and_readiness_are_told_to_everybody(running: Running) -> None:
    for path in ("/healthz", "/readyz"):
        assert httpx.get(f"{running.up.addresses['api']}{path}").status_code == 200


@pytest.mark.fault("F32")
def test_metrics_are_for_those_who_may_read_them_and_for_nothing_else(running: Running) -> None:
    metrics = f"{running.up.addresses['api']}/metrics"
    assert httpx.get(metrics, headers=bearer(ACME)).status_code == 403
    assert "memtrace_" in httpx.get(metrics, headers=bearer(SCRAPER)).text
    assert running.get(SCRAPER, "/graphs").status_code == 403


def run(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments, "--store", str(folder / "store")),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        env=environment(**more),
        check=False,
    )


def graphs(folder: Path, **more: str) -> list[str]:
    done = run(folder, "graphs", "--format", "json", **more)
    assert done.returncode == 0, done.stderr
    return sorted(graph["graph_id"] for graph in json.loads(done.stdout))


@pytest.mark.fault("F32")
def test_the_command_line_asks_by_token_or_as_the_owner_of_the_files(
    folder: Path, running: Running
) -> None:
    acme = [GRAPH, "user:two_graphs"]
    assert graphs(folder, MEMTRACE_TOKEN=ACME, MEMTRACE_TENANT="globex") == acme
    assert graphs(folder, MEMTRACE_TENANT="acme") == acme
    assert graphs(folder, MEMTRACE_TENANT="globex") == [SHARED]
    assert graphs(folder) == []
    wrong = run(folder, "graphs", MEMTRACE_TOKEN="wrong")
    assert wrong.returncode == 2 and "not authenticated" in wrong.stderr
    note = folder / "store" / "owner.json"
    assert stat.S_IMODE(note.stat().st_mode) == 0o600


@pytest.mark.fault("F32")
def test_no_secret_is_in_a_log_an_answer_or_a_file(folder: Path, running: Running) -> None:
    key = json.loads((folder / "store" / "owner.json").read_text())["key"]
    wrong = "canary-secret-that-nobody-knows"
    assert running.get(wrong, "/graphs").status_code == 401
    doctor = run(folder, "doctor", MEMTRACE_TOKENS_FILE=str(folder / "tokens.json"))
    metrics = httpx.get(f"{running.up.addresses['api']}/metrics", headers=bearer(SCRAPER)).text
    said = [doctor.stdout, doctor.stderr, metrics, (folder / "store.up.log").read_text()]
    said.append(running.get(ACME, "/graphs").text)
    files = [each for each in (folder / "store").rglob("*") if each.is_file()]
    told = "".join(said).encode() + b"".join(
        each.read_bytes() for each in files if each.name != "owner.json"
    )
    assert b"canary-secret" not in told and key.encode() not in told
    assert b"canary-secret" not in (folder / "store" / "owner.json").read_bytes()


def test_a_folder_without_an_owner_is_read_by_tenant(folder: Path, running: Running) -> None:
    running.up.stop()
    assert graphs(folder, MEMTRACE_TENANT="globex") == [SHARED]
    assert graphs(folder) == []


def test_over_tls_the_command_line_trusts_the_owner_s_certificate_alone(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    server = authority.sign("collector.example")
    up = start_up(
        tmp_path / "store",
        *("--tokens-file", str(tokens_file(tmp_path))),
        MEMTRACE_TLS_CERTIFICATE=str(server.certificate),
        MEMTRACE_TLS_KEY=str(server.key),
    )
    try:
        assert str(up.addresses["api"]).startswith("https://")
        assert graphs(tmp_path, MEMTRACE_TOKEN=ACME) == []
        note = tmp_path / "store" / "owner.json"
        other = Authority(tmp_path, "other").sign("collector.example").certificate
        note.write_text(
            json.dumps(json.loads(note.read_text()) | {"certificate": other.read_text()})
        )
        untrusted = run(tmp_path, "graphs", MEMTRACE_TOKEN=ACME)
        assert untrusted.returncode == 3 and "certificate verify failed" in untrusted.stderr
    finally:
        up.stop()


@pytest.mark.fault("F32")
def test_a_client_s_certificate_is_its_tenant_at_the_api_too(tmp_path: Path) -> None:
    ours, theirs = Authority(tmp_path, "ours"), Authority(tmp_path, "theirs")
    server = ours.sign("collector.example")
    acme, globex = ours.sign("agent.acme.example"), ours.sign("agent.globex.example")
    known = {"agent.acme.example": "acme", "agent.globex.example": "globex"}
    up = start_up(
        tmp_path / "store",
        *("--tokens-file", str(tokens_file(tmp_path, certificates=known))),
        MEMTRACE_TLS_CERTIFICATE=str(server.certificate),
        MEMTRACE_TLS_KEY=str(server.key),
        MEMTRACE_TLS_CLIENT_CA=str(ours.certificate),
    )
    try:
        with showing(up, ours, acme) as sender:
            url = f"{up.addresses['otlp_http']}/v1/traces"
            headers = {"content-type": "application/json"}
            sender.post(url, content=spans("overwritten"), headers=headers).raise_for_status()
            eventually(lambda: bool(sender.get("/graphs").json()), "the spans are projected")
        for pair, token, status, seen in (
            (acme, ACME, 200, GRAPH),
            (None, ACME, 200, GRAPH),
            (globex, "", 200, ""),
            (None, "", 401, ""),
            (acme, GLOBEX, 401, ""),
        ):
            with showing(up, ours, pair) as client:
                answer = client.get("/graphs", headers=bearer(token) if token else {})
            assert answer.status_code == status and (GRAPH in answer.text) == bool(seen)
        stranger = theirs.sign("agent.acme.example")
        with showing(up, ours, stranger) as client, pytest.raises(httpx.TransportError):
            client.get("/graphs")
        assert graphs(tmp_path, MEMTRACE_TENANT="acme") == [GRAPH]
    finally:
        up.stop()


def showing(up: Up, trusted: Authority, shown: Pair | None) -> httpx.Client:
    """A client of the API that shows a certificate."""
    context = ssl.create_default_context(cafile=trusted.certificate)
    if shown is not None:
        context.load_cert_chain(shown.certificate, shown.key)
    base = f"{up.addresses['api']}/api/v1"
    return httpx.Client(base_url=base, verify=context, trust_env=False, timeout=20)


def test_a_new_token_counts_after_a_hang_up(tmp_path: Path) -> None:
    path = tokens_file(tmp_path)
    up = start_up(tmp_path / "store", "--tokens-file", str(path))
    running = Running(up)
    try:
        assert running.get(ACME, "/graphs").status_code == 200
        written(tmp_path, {"tokens": {GLOBEX: "globex"}})
        up.process.send_signal(signal.SIGHUP)
        eventually(lambda: running.get(ACME, "/graphs").status_code == 401, "the old token is out")
        assert running.get(GLOBEX, "/graphs").status_code == 200
    finally:
        assert up.stop() == 0


@pytest.mark.fault("F32")
def test_a_file_that_others_can_read_stops_the_start(tmp_path: Path) -> None:
    path = tokens_file(tmp_path)
    path.chmod(0o644)
    done = run(tmp_path, "up", "--tokens-file", str(path))
    assert done.returncode == 2 and "chmod 600" in done.stderr
