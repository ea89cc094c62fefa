"""Attributes that are longer than Badger's keys do not hold up what goes on to a Jaeger on disk."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import pytest

from memtrace_collector.dialects import packed_json
from memtrace_collector.exporter.delivery import Delivery
from memtrace_collector.log.format import LogRecord
from memtrace_collector.log.segments import SegmentLog
from memtrace_collector.processor.forwarder import Forwarder, Stores
from memtrace_collector.processor.projector import Projector
from memtrace_collector.processor.reading import RecordReader
from memtrace_collector.runtime.destination import open_destination
from memtrace_collector.settings.forward import ForwardConfig
from memtrace_collector.store.in_memory import InMemoryFactStore
from tests.integration.servers import Jaeger, eventually, jaeger_server, tags
from tests.memtrace_collector.processor.spans import (
    attribute,
    memory_span,
    plain_span,
    request,
    span_id,
    trace_id,
)

REFERENCES = [f"mem:{'långt' * 20}/{number}@{'0' * 16}" for number in range(1_000)]
"""As many as a lineage has at the most: 130 KB."""


def _sent_on(log: SegmentLog, jaeger: Jaeger, profile: str) -> Delivery | None:
    """Everything in the log, as the configured destination takes it; why it stopped."""
    store = InMemoryFactStore()
    Projector(log.folder, store, RecordReader()).run_once()
    forward = ForwardConfig(url=jaeger.otlp_http, profile=profile)
    with closing(open_destination(profile, forward)) as destination:
        forwarder = Forwarder(log.folder, Stores(store, store), RecordReader(), destination)
        return forwarder.run_once().retry


@pytest.fixture
def log(tmp_path: Path) -> SegmentLog:
    """A lineage as long as it may be, and another's span in which everything is too long."""
    other = plain_span(1, 2, said="é" * 70_000, **{"n" * 70_000: "value"})
    other.name = other.status.message = other.trace_state = "y" * 70_000
    other.events.add(name="z" * 70_000).attributes.append(attribute("said", "z" * 70_000))
    message = request(memory_span(1, 1, "ingest", outputs=REFERENCES), other)
    message.resource_spans[0].resource.attributes.append(attribute("service.name", "s" * 70_000))
    log = SegmentLog(tmp_path / "log", fsync=False)
    with closing(log):
        body = message.SerializeToString()
        log.append(LogRecord("default", time.time_ns(), "traces", "protobuf", body)).result(10)
    return log


def test_badger_takes_shortened_texts_and_a_lineage_in_parts(
    log: SegmentLog, tmp_path: Path
) -> None:
    with jaeger_server(tmp_path, on_disk=tmp_path / "badger") as jaeger:
        refused = _sent_on(log, jaeger, "jaeger")
        assert refused is not None and "65000" in refused.message, "that is what they are cut for"
        assert _sent_on(log, jaeger, "jaeger-badger") is None
        ours = eventually(lambda: jaeger.span(trace_id(1), span_id(1)), "the memory's span")
        packed = packed_json.read(tags(ours), "memtrace.lineage")
        assert packed is not None and packed.complete
        assert packed.data["outputs"] == REFERENCES
        assert jaeger.span(trace_id(1), span_id(2)) is not None
