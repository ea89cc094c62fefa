"""Delivered verdicts are looked for in a real Jaeger: there, dropped, and down."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from memtrace_collector.exporter.otlp import OtlpDestination
from memtrace_collector.exporter.outbox import OutboxSender
from memtrace_collector.exporter.readback import NOT_SEEN, ReadBack
from memtrace_collector.exporter.trace_query import TraceQuery
from memtrace_collector.store.base import OutboxEntry
from memtrace_collector.store.sqlite_cases import SqliteCaseStore
from memtrace_collector.telemetry.metrics import NullMetrics
from tests.contract import scenarios
from tests.integration.servers import Jaeger, eventually, get, jaeger_server, send, up
from tests.memtrace_collector.running import VECTORS, start
from tests.ports import free_port

LOOKS_AFTER = (0.5, 0.1, 0.1)
"""Seconds; time to crowd a trace out before the first look."""


@dataclass
class Counting(NullMetrics):
    results: list[str] = field(default_factory=list)

    def add(self, name: str, value: float, **attributes: object) -> None:
        if name == "memtrace.readback":
            self.results.append(str(attributes["result"]))


@dataclass
class Delivering:
    """A case store, a sender to one Jaeger, and a read-back at another address."""

    cases: SqliteCaseStore
    metrics: Counting

    def deliver(self, scenario: str) -> None:
        payload = _answer_trace(scenario)
        row = OutboxEntry(id=scenario, case_id="c", revision=1, signal="traces", payload=payload)
        self.cases.enqueue([row])
        eventually(lambda: self.cases.outbox_counts()["delivered"], "the delivery")

    def results(self, count: int) -> list[str]:
        eventually(lambda: len(self.metrics.results) >= count, f"{count} results")
        return self.metrics.results


def _answer_trace(scenario: str) -> bytes:
    """The spans of the trace that the scenario's answer stands in."""
    request = scenarios.request(scenario)
    trace_id = bytes.fromhex(scenarios.expected(scenario)["answer"]["traceId"])
    for scope in (scope for group in request.resource_spans for scope in group.scope_spans):
        kept = [span for span in scope.spans if span.trace_id == trace_id]
        del scope.spans[:]
        scope.spans.extend(kept)
    return request.SerializeToString()


@contextmanager
def _delivering(
    folder: Path, jaeger: Jaeger, query: str, looks_after: Sequence[float] = LOOKS_AFTER
) -> Iterator[Delivering]:
    metrics, stop = Counting(), threading.Event()
    with (
        closing(SqliteCaseStore(folder / "cases.db")) as cases,
        closing(OtlpDestination("default", jaeger.otlp_http)) as destination,
        closing(TraceQuery("jaeger", query)) as asked,
    ):
        readback = ReadBack("default", asked, looks_after=looks_after, metrics=metrics)
        sender = OutboxSender(lambda: [cases], destination, delivered=readback.offer)
        threads = [threading.Thread(target=each.run, args=(stop,)) for each in (sender, readback)]
        for thread in threads:
            thread.start()
        try:
            yield Delivering(cases, metrics)
        finally:
            stop.set()
            for thread in threads:
                thread.join()


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jaeger]:
    """A Jaeger with room for one trace."""
    with jaeger_server(tmp_path_factory.mktemp("forgetful"), max_traces=1) as found:
        yield found


def test_what_is_there_is_seen(forgetful, tmp_path):
    with _delivering(tmp_path, forgetful, forgetful.query) as delivering:
        delivering.deliver("omission")
        assert delivering.results(1) == ["visible"]


def test_what_jaeger_dropped_is_sent_again_and_then_there(forgetful, tmp_path):
    answer = scenarios.expected("not_stored")["answer"]
    with _delivering(tmp_path, forgetful, forgetful.query) as delivering:
        delivering.deliver("not_stored")
        send(forgetful, _answer_trace("bad_reference"))
        assert forgetful.trace(answer["traceId"]) is None
        assert delivering.results(2) == ["missing", "visible"]
        assert delivering.cases.outbox_counts()["delivered"] == 1
    assert forgetful.span(answer["traceId"], answer["spanId"])


def test_what_one_jaeger_took_and_the_other_never_has_is_given_up_with_a_reason(
    forgetful, jaeger, tmp_path
):
    with _delivering(tmp_path, forgetful, jaeger.query) as delivering:
        delivering.deliver("user_correction")
        assert delivering.results(2) == ["missing", "missing"]
        (given_up,) = eventually(delivering.cases.outbox_abandoned, "the row that was given up")
    assert given_up.last_error.startswith(NOT_SEEN)
    assert given_up.last_error.endswith("also when sent again")


def test_a_query_api_that_is_down_is_said_and_changes_nothing(forgetful, tmp_path):
    nobody = f"http://127.0.0.1:{free_port()}"
    with _delivering(tmp_path, forgetful, nobody, LOOKS_AFTER[:1]) as delivering:
        delivering.deliver("wrong_time")
        assert delivering.results(1) == ["unreachable"]
        assert delivering.cases.outbox_counts()["delivered"] == 1


def test_the_running_program_counts_what_it_saw(jaeger, tmp_path):
    settings = tmp_path / "memtrace.yaml"
    settings.write_text(f"forward: {{url: '{jaeger.otlp_http}', query_url: '{jaeger.query}'}}")
    with up(tmp_path / "store", "--config", str(settings)) as server:
        server.send(scenarios.request("stale_retrieved").SerializeToString())
        server.post("/attribute", {})
        seen = "the case, the verdict at the answer and the sign at the cause"
        eventually(lambda: _counted(server.addresses["api"], "visible") == 3, seen)
        assert not _counted(server.addresses["api"], "missing")
        assert server.get("/undelivered") == [], "that Jaeger takes no log records is no failure"


def test_a_worker_over_a_database_counts_what_it_saw(jaeger, tmp_path, postgres_url):
    prompt = {"MEMTRACE_ATTRIBUTION_INTERVAL_SECONDS": "0.1"}
    asking = {"MEMTRACE_FORWARD_QUERY_URL": jaeger.query, **prompt}
    over = ("--store", postgres_url, "--forward", jaeger.otlp_http)
    doors = ("--grpc-port", "0", "--http-port", "0", "--log", str(tmp_path / "log"))
    receiving = start("process", tmp_path / "process", *over, *doors, **prompt)
    working = start("work", tmp_path / "work", *over, **asking)
    try:
        receiving.post((VECTORS / "wrongly_deleted.otlp.json").read_bytes()).raise_for_status()
        eventually(lambda: _counted(working.addresses["api"], "visible"), "a verdict seen")
    finally:
        working.stop()
        receiving.stop()


def _counted(api: str, result: str) -> float:
    page = get(f"{api}/metrics")
    found = re.search(rf'memtrace_readback_total{{[^}}]*result="{result}"[^}}]*}} (\S+)', page.text)
    return float(found[1]) if found else 0.0
