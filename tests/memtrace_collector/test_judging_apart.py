"""A judgement taken by `serve` reaches the trace through `work`, over one PostgreSQL."""

from __future__ import annotations

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.memtrace_collector import test_apart
from tests.memtrace_collector.running import eventually
from tests.memtrace_collector.test_apart import Start, vector
from tests.receivers import Receiver

launch, sink = test_apart.launch, test_apart.sink


@pytest.mark.fault("F1")
def test_what_a_person_says_at_serve_is_delivered_by_work(launch: Start, sink: Receiver) -> None:
    receiving, serving = launch("process", "process"), launch("serve", "serve")
    launch("work", "work", "--forward", sink.http)
    assert receiving.post(vector("omission")).status_code == 200
    eventually(lambda: len(serving.ask("/verdicts")) == 1, "the verdict of the rules")
    (verdict,) = serving.ask("/verdicts")
    answer = f"{verdict['answer']['traceId']}:{verdict['answer']['spanId']}"
    judged = serving.send("/judge", {"answer": answer, "action": "confirm", "by": "anna"})
    assert (judged["revision"], judged["method"]) == (2, "human")
    eventually(lambda: "human" in _methods(sink), "the person's verdict at the destination")
    assert serving.ask("/verdicts") == [judged]
    told = serving.metrics()
    assert 'memtrace_judgements_total{agreement="confirmed"} 1.0' in told
    assert 'memtrace_judged{agreement="confirmed",stage="extraction"} 1.0' in told


def _methods(sink: Receiver) -> set[str]:
    """Of the spans that arrived in the failing trace."""
    requests = [
        ExportTraceServiceRequest.FromString(record.body)
        for record in sink.records()
        if record.signal == "traces"
    ]
    return {
        attribute.value.string_value
        for request in requests
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
        if span.name == "memtrace.attribution"
        for attribute in span.attributes
        if attribute.key == "memtrace.attribution.method"
    }
