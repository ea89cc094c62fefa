"""An end that was asked for, and far more at once than usual."""

from __future__ import annotations

import signal
import time
from contextlib import closing
from pathlib import Path

import pytest

from memtrace_collector.log.durable_end import read_durable_end
from memtrace_collector.log.position import START
from memtrace_collector.processor.reading import RecordReader
from memtrace_collector.runtime.fact_writer import FactWriter
from memtrace_collector.runtime.stores import LOG_FOLDER
from memtrace_collector.telemetry.metrics import NULL_METRICS
from tests.faults import kill_load
from tests.faults.kill_run import Running
from tests.faults.senders import RETRYABLE, Ledger, Senders, over_http
from tests.memtrace_collector.running import eventually

ENOUGH = 60
BURST = 400
RECOVERY_SECONDS = 30.0


@pytest.fixture
def running(tmp_path: Path) -> Running:
    return Running(tmp_path / "store")


@pytest.mark.fault("F2")
def test_a_sigterm_under_load_refuses_retryably_and_projects_all_it_acknowledged(
    running: Running, tmp_path: Path
) -> None:
    ledger = Ledger()
    ports = running.ports
    senders = Senders(
        ledger, kill_load.body, http_port=ports.http, grpc_port=ports.grpc, pause_seconds=0.0
    )
    senders.start()
    eventually(lambda: len(ledger) >= ENOUGH, "enough requests under way")
    began = time.monotonic()
    assert running.up.stop(signal.SIGTERM) == 0
    assert time.monotonic() - began < 10
    senders.abandon()
    running.close()
    assert set(ledger.refused) <= RETRYABLE
    expected = kill_load.operations_by_graph(ledger.acknowledged())
    found = _graphs(tmp_path / "store")
    short = {graph: count for graph, count in expected.items() if found.get(graph, 0) < count}
    assert short == {}


@pytest.mark.fault("F21")
def test_a_burst_is_taken_whole_and_projected_within_half_a_minute(running: Running) -> None:
    with over_http(running.ports.http) as post:
        for number in range(BURST):
            assert post(kill_load.body(number)) == ""
    began = time.monotonic()
    expected = kill_load.operations_by_graph(range(BURST))
    eventually(lambda: _operations(running) == expected.total(), "the projection of the burst")
    assert time.monotonic() - began < RECOVERY_SECONDS
    with over_http(running.ports.http) as post:
        assert post(kill_load.body(BURST)) == ""
    assert running.up.stop() == 0
    running.close()


def _operations(running: Running) -> int:
    return sum(row["operations"] for row in running.ask("/graphs"))


def _graphs(store: Path) -> dict[str, int]:
    """What is in the facts, without projecting any more."""
    with closing(FactWriter(store, RecordReader(), NULL_METRICS)) as writer:
        assert writer.facts.cursor() >= (read_durable_end(store / LOG_FOLDER) or START)
        return {summary.graph_id: summary.operations for summary in writer.facts.graphs()}
