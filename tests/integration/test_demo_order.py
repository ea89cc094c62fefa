"""The demo's own spans, in any order, cut into any requests: one graph, one hash."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memtrace_collector.log.format import LogRecord
from memtrace_collector.log.position import LogPosition
from memtrace_collector.processor.reading import RecordReader
from memtrace_collector.receiver.decode import decode_traces
from memtrace_collector.store.base import FactStore
from tests.contract.test_fact_stores import MAKERS
from tests.demo_run import DemoRun
from tests.integration.sending import send, spans_apart, together
from tests.integration.servers import Up, up

pytestmark = pytest.mark.fault("F11", "F13")


@pytest.fixture(scope="module")
def records(demo: DemoRun) -> list[LogRecord]:
    """What the demo's log holds."""
    return demo.records()


@pytest.fixture(scope="module")
def expected(demo: DemoRun) -> dict[str, str]:
    with up(demo.store) as server:
        return hashes(server)


def hashes(server: Up) -> dict[str, str]:
    graphs = [item["graph_id"] for item in server.get("/graphs")]
    return {graph_id: server.get("/hash", graph=graph_id)["hash"] for graph_id in graphs}


@pytest.mark.parametrize("way", ["grpc", "http-protobuf", "http-json"])
def test_every_transport_gives_the_demos_graphs_from_its_spans_in_any_order(
    records: list[LogRecord], expected: dict[str, str], way: str, tmp_path
) -> None:
    rng = random.Random(way)
    spans = [part for record in records for part in spans_apart(decode_traces(record))]
    spans += rng.sample(spans, 20)
    rng.shuffle(spans)
    with up(tmp_path / "store") as server:
        send(server, way, batches(rng, spans))
        server.post("/settle", {})
        assert hashes(server) == expected


@pytest.mark.parametrize("name", MAKERS)
def test_every_store_gives_the_demos_graphs_from_its_facts_in_any_order(
    request: pytest.FixtureRequest,
    records: list[LogRecord],
    expected: dict[str, str],
    name: str,
) -> None:
    reading = RecordReader()
    facts = [item for record in records for item in reading.facts(record)]
    rng = random.Random(name)
    rng.shuffle(facts)
    store: FactStore = MAKERS[name](request)
    while facts:
        size = min(rng.randint(1, 50), len(facts))
        batch, facts = facts[:size], facts[size:]
        store.apply([(LogPosition(1, 1), item) for item in batch], LogPosition(1, 1))
    found = {item.graph_id: store.graph_hash(item.graph_id) for item in store.graphs()}
    store.close()
    assert found == expected


def batches(
    rng: random.Random, spans: list[ExportTraceServiceRequest]
) -> Iterator[ExportTraceServiceRequest]:
    while spans:
        size = rng.randint(1, 12)
        batch, spans = spans[:size], spans[size:]
        yield together(batch)
