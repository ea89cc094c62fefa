"""Names that look like code, through the log, the graphs and the API: data, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest

from memtrace_collector.api import server
from memtrace_collector.api.listening import ApiServer
from memtrace_collector.app import open_service
from memtrace_collector.config import Config
from memtrace_collector.receiver.decode import decode
from memtrace_collector.telemetry.telemetry import Telemetry
from tests.contract.hostile import HOSTILE

SECOND = 1_000_000_000
NAMES = {name: text for name, text in HOSTILE.items() if name != "long"} | {"long": "x" * 2_000}
"""A name travels in a URL, which servers bound at some kilobytes."""

pytestmark = pytest.mark.fault("F31")


def span(number: int, step: str, graph_id: str, lineage: dict[str, object]) -> dict[str, object]:
    attributes = {
        "memtrace.step": {"stringValue": step},
        "memtrace.schema.version": {"intValue": "1"},
        "memtrace.graph.id": {"stringValue": graph_id},
        "memtrace.lineage": {"stringValue": json.dumps(lineage)},
    }
    return {
        "traceId": f"{number:032x}",
        "spanId": f"{number:016x}",
        "name": step,
        "startTimeUnixNano": str(number * SECOND),
        "endTimeUnixNano": str(number * SECOND + 1),
        "attributes": [{"key": key, "value": value} for key, value in attributes.items()],
    }


def record_of(text: str) -> str:
    """An id may hold anything but ``@``, which ends it."""
    return f"mem:{text.replace('@', '%40')}"


def request_of(number: int, text: str) -> list[dict[str, object]]:
    """A record is written and answered from, in a graph named like ``text``."""
    ref, graph_id = f"{record_of(text)}@{text.replace('@', '')}", f"user:{text}"
    return [
        span(number, "create", graph_id, {"outputs": [ref], "seq": f"{text}:1"}),
        span(number + 1, "answer", graph_id, {"inputs": [ref], "outputs": ["ans:a@1"]}),
    ]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The API over a folder whose log holds every name."""
    telemetry = Telemetry("test")
    spans = [item for n, text in enumerate(NAMES.values()) for item in request_of(10 * n + 1, text)]
    body = {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}
    folder = tmp_path_factory.mktemp("hostile")
    with open_service(Config(store=str(folder / "store"))) as service:
        request = decode("traces", "json", json.dumps(body).encode())
        service.append(request.SerializeToString(), "traces")
        service.settle()
        app = server.build(
            lambda _: service, telemetry, lambda: "", host="127.0.0.1", max_request_bytes=1 << 20
        )
        running = ApiServer(app, "127.0.0.1", 0)
        running.start()
        host, port = running.address
        yield f"http://{host}:{port}/api/v1"
        running.stop()
    telemetry.close()


@pytest.mark.parametrize("name", NAMES)
def test_the_api_answers_for_it_as_for_any_other(url: str, name: str) -> None:
    text = NAMES[name]
    number = 10 * list(NAMES).index(name) + 1
    graph_id, record = f"user:{text}", record_of(text)

    def asked(path: str, **parameters: str) -> object:
        response = httpx.get(f"{url}{path}", params=parameters, timeout=20, trust_env=False)
        assert response.status_code == 200, response.text
        return response.json()

    graphs = asked("/graphs")
    assert isinstance(graphs, list) and len(graphs) == len(NAMES)
    held = [item["graph_id"] for item in graphs if item["operations"] == 2]
    assert graph_id in held
    found = asked("/ancestry", answer=f"{number + 1:032x}:{number + 1:016x}")
    assert isinstance(found, dict) and found["graph_id"] == graph_id
    assert (found["lineage"], len(found["operations"])) == ("complete", 2)
    history = asked("/history", graph=graph_id, record=record)
    assert isinstance(history, dict) and len(history["versions"]) == 1
    digest = asked("/hash", graph=graph_id)
    assert isinstance(digest, dict) and len(digest["hash"]) == 64


def test_nothing_was_harmed(url: str) -> None:
    graphs = httpx.get(f"{url}/graphs", timeout=20, trust_env=False).json()
    assert sorted(item["graph_id"] for item in graphs) == sorted(
        f"user:{text}" for text in NAMES.values()
    )
