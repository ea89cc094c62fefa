from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.testclient import TestClient

from memtrace_collector.api import server
from memtrace_collector.api.client import Client
from memtrace_collector.api.listening import ApiServer
from memtrace_collector.api.pages import STATIC
from memtrace_collector.app import open_service
from memtrace_collector.config import Config
from memtrace_collector.errors import NotFoundError, UnreachableError, WrongUseError
from memtrace_collector.receiver.decode import decode
from memtrace_collector.telemetry.telemetry import Telemetry
from tests.memtrace_collector.running import VECTORS

MAX_BYTES = 1 << 20
TRACE_URL = "http://localhost:16686/trace/{trace_id}"
ANSWER = "1bccf17ef4aa1398ba2a39dea4b93e91"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ApiServer]:
    """The API on a free port over a store that holds one vector."""
    telemetry = Telemetry("test")
    with open_service(Config(store=str(tmp_path / "store"))) as service:
        request = decode("traces", "json", (VECTORS / "merged_wrong.otlp.json").read_bytes())
        service.append(request.SerializeToString(), "traces")
        service.settle()
        app = server.build(
            lambda _: service,
            telemetry,
            lambda: "",
            host="127.0.0.1",
            max_request_bytes=MAX_BYTES,
            trace_url=TRACE_URL,
        )
        running = ApiServer(app, "127.0.0.1", 0)
        running.start()
        yield running
        running.stop()
    telemetry.close()


@pytest.fixture
def url(api: ApiServer) -> str:
    host, port = api.address
    return f"http://{host}:{port}"


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    asking = Client(url)
    yield asking
    asking.close()


def test_the_client_gets_what_the_service_says(client: Client) -> None:
    assert [graph["operations"] for graph in client.graphs()] == [14]
    assert re.fullmatch("[0-9a-f]{64}", client.graph_hash("user:merged_wrong"))
    assert client.ancestry(ANSWER)["lineage"] == "complete"
    versions = client.history("user:merged_wrong", "mem:stub:11")["versions"]
    assert [version["text"] for version in versions] == [
        "User lives in Lisbon since March",
        "User lives in Porto",
    ]
    assert versions[1]["diff"] == ["-User lives in Lisbon since March", "+User lives in Porto"]
    assert client.why(ANSWER, "")["reads"][0]["candidates"][0]["outcome"] == "injected"
    assert client.graph("user:merged_wrong", "", "dot").startswith("digraph")
    assert client.impact("msg:conv/1@1d173ae1d8d9")["records"] == ["mem:stub:11"]
    assert client.invariants("") == []


def test_an_error_keeps_its_kind_over_http(client: Client) -> None:
    with pytest.raises(NotFoundError, match="no graph 'nobody'"):
        client.graph_hash("nobody")
    with pytest.raises(WrongUseError, match="32 hex digits"):
        client.why("12", "")
    with pytest.raises(WrongUseError, match="not a variable reference"):
        client.flag(ANSWER, None, ["no reference"], "")
    with pytest.raises(WrongUseError, match="the format is one of"):
        client.graph("user:merged_wrong", "", "png")


def test_a_flag_set_over_http_is_there_at_once(client: Client) -> None:
    flagged = client.flag(ANSWER, "Lisbon", ["msg:conv/1@1d173ae1d8d9"], "the city is wrong")
    assert flagged["graph_id"] == "user:merged_wrong"
    assert client.flag(ANSWER, "Lisbon", ["msg:conv/1@1d173ae1d8d9"], "again") is not None


def test_an_api_that_is_gone_is_unreachable(api: ApiServer, client: Client) -> None:
    api.stop()
    with pytest.raises(UnreachableError, match="does not answer"):
        client.graphs()


@pytest.mark.parametrize("path", ["/", "/static/page.js", "/api/v1/graphs", "/nothing", "/metrics"])
def test_every_response_forbids_scripts_from_elsewhere(url: str, path: str) -> None:
    headers = httpx.get(url + path).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("name", ["attacker.example", "127.0.0.1.attacker.example", "", "[::"])
def test_another_site_s_name_is_refused(url: str, name: str) -> None:
    response = httpx.get(f"{url}/api/v1/graphs", headers={"host": name})
    assert response.status_code == 400


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1:4319", "[::1]:4319"])
def test_the_server_answers_to_every_name_of_this_machine(url: str, name: str) -> None:
    assert httpx.get(f"{url}/api/v1/graphs", headers={"host": name}).status_code == 200


@pytest.mark.parametrize("path", ["flag", "attribute", "append", "settle"])
@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_form_of_another_page_cannot_write(url: str, path: str, content_type: str) -> None:
    response = httpx.post(
        f"{url}/api/v1/{path}", content=b"{}", headers={"content-type": content_type}
    )
    assert response.status_code == 400
    assert "expected the content type" in response.json()["message"]


def test_a_body_that_is_too_large_is_refused(url: str) -> None:
    response = httpx.post(
        f"{url}/api/v1/append",
        content=bytes(MAX_BYTES + 1),
        headers={"content-type": "application/x-protobuf"},
    )
    assert response.status_code == 400
    assert "larger than" in response.json()["message"]


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"answer": 1}', b'{"answer": "x", "evidence": 3}'])
def test_a_malformed_body_is_wrong_use(url: str, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    response = httpx.post(f"{url}/api/v1/flag", content=body, headers=headers)
    assert response.status_code == 400
    assert response.json()["error"] == "WrongUseError"


def test_the_page_learns_whose_data_it_shows_and_where_traces_are(url: str) -> None:
    told = httpx.get(f"{url}/api/v1/about").json()
    assert told == {
        "version": importlib.metadata.version("memtrace-otel"),
        "tenant": "default",
        "trace_url": TRACE_URL,
    }


def test_health_readiness_and_metrics_answer(url: str) -> None:
    assert httpx.get(f"{url}/healthz").text == "ok\n"
    assert httpx.get(f"{url}/readyz").status_code == 200
    assert httpx.get(f"{url}/metrics").headers["content-type"].startswith("text/plain")


def test_what_is_not_ready_is_said() -> None:
    telemetry = Telemetry("test")
    app = server.build(
        None,  # type: ignore[arg-type]  # nothing is asked
        telemetry,
        lambda: "the projector does not run",
        host="127.0.0.1",
        max_request_bytes=MAX_BYTES,
    )
    with TestClient(app, base_url="http://127.0.0.1") as asking:
        response = asking.get("/readyz")
    telemetry.close()
    assert (response.status_code, response.text) == (503, "the projector does not run\n")


SCRIPTS = sorted(STATIC.rglob("*.js"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_of_the_page_sets_text_only_and_asks_no_other_host(script: Path) -> None:
    text = script.read_text()
    for name in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert name not in text
    assert not re.search(r"https?://", text)


def test_the_page_loads_nothing_but_its_own_files() -> None:
    page = (STATIC / "index.html").read_text()
    assert not re.search(
        r"https?://|style=|onclick|<script(?! type=\"module\" src=\"/static)", page
    )


def test_the_page_s_files_are_asked_for_again_and_sent_only_when_they_changed(url: str) -> None:
    first = httpx.get(f"{url}/static/page.css")
    assert first.headers["cache-control"] == "no-cache"
    again = httpx.get(f"{url}/static/page.css", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["content-security-policy"].startswith("default-src 'none'")


def test_one_style_sheet_holds_the_styles_of_every_view(url: str) -> None:
    sent = httpx.get(f"{url}/static/page.css").content
    sheets = [path.read_bytes() for path in STATIC.rglob("*.css")]
    assert len(sheets) > 1 and all(sheet in sent for sheet in sheets)


@pytest.mark.parametrize(
    "path", ["/static/none.js", "/static/../server.py", "/static/%2e%2e/server.py"]
)
def test_no_other_file_is_served(url: str, path: str) -> None:
    assert httpx.get(f"{url}{path}").status_code == 404


def test_an_answer_of_the_api_is_not_kept(url: str) -> None:
    assert httpx.get(f"{url}/api/v1/graphs").headers.get_list("cache-control") == ["no-store"]
