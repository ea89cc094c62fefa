"""The contract's vectors through a real ``up``, over gRPC and HTTP, in both orders."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract import scenarios
from tests.integration.sending import send, spans_apart
from tests.integration.servers import Up, up

NAMES = [name for name in scenarios.NAMES if name != "digests"]


@pytest.fixture(scope="module", params=["grpc", "http-protobuf", "http-json"])
def sent(request, tmp_path_factory) -> Iterator[Up]:
    """An `up` that was sent every vector one way; JSON and gRPC span by span, last first."""
    way = request.param
    with up(tmp_path_factory.mktemp(way) / "store") as server:
        for name in NAMES:
            whole = scenarios.request(name)
            parts = [whole] if way == "http-protobuf" else spans_apart(whole)[::-1]
            send(server, way, parts)
        server.post("/attribute", {})
        yield server


@pytest.mark.parametrize("name", NAMES)
def test_a_vector_gets_its_verdict(sent, name):
    expected = scenarios.expected(name)
    verdicts = [v for v in sent.get("/verdicts") if v["answer"] == expected["answer"]]
    assert len(verdicts) == 1
    wanted = expected["verdict"]
    got = {**verdicts[0], "decisive": [_span(item) for item in verdicts[0]["decisive"]]}
    checked = {key: value for key, value in wanted.items() if value is not None}
    assert {key: got[key] for key in checked} == checked


@pytest.mark.parametrize("name", NAMES)
def test_a_vectors_ancestry_contains_and_excludes_what_it_says(sent, name):
    expected = scenarios.expected(name)
    answer = expected["answer"]
    found = sent.get("/ancestry", answer=f"{answer['traceId']}:{answer['spanId']}")
    spans = [_span(operation) for operation in found["operations"]]
    for wanted in expected.get("ancestry_contains") or []:
        assert _span(wanted) in spans
    for unwanted in expected.get("ancestry_excludes") or []:
        assert _span(unwanted) not in spans


def test_every_way_gives_the_same_graph(sent, tmp_path):
    with up(tmp_path / "store") as other:
        other.send(scenarios.request("merged_wrong").SerializeToString())
        other.post("/settle", {})
        graph_id = scenarios.expected("merged_wrong")["graph_id"]
        assert other.get("/hash", graph=graph_id) == sent.get("/hash", graph=graph_id)


def _span(item: dict) -> dict[str, str]:
    return {"traceId": item["traceId"], "spanId": item["spanId"]}
