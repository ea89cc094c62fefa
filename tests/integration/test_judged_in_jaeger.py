"""What a person says of a verdict, read back from a real Jaeger v2."""

from __future__ import annotations

from typing import Any

from tests.contract import scenarios
from tests.integration.servers import Jaeger, eventually, tags, up


def _by_hand(jaeger: Jaeger, trace_id: str, name: str) -> list[dict[str, Any]]:
    return [
        span
        for span in jaeger.spans_named(trace_id, name)
        if tags(span).get("memtrace.attribution.method") == "human"
    ]


def test_a_correction_stands_beside_the_machines_verdict_and_leads_to_it(jaeger, tmp_path):
    trace_id = scenarios.expected("merged_wrong")["answer"]["traceId"]
    with up(tmp_path / "store", "--forward", jaeger.otlp_http) as server:
        server.send(scenarios.request("merged_wrong").SerializeToString())
        (found,) = server.post("/attribute", {})["verdicts"]
        eventually(lambda: jaeger.spans_named(trace_id, "memtrace.attribution"), "the machine's")
        step = next(hop["span"] for hop in found["path"] if hop["kind"] == "extraction")
        said = {
            "answer": f"{trace_id}:{found['answer']['spanId']}",
            "action": "correct",
            "type": "distortion",
            "decisive": [f"{step['traceId']}:{step['spanId']}"],
            "note": "Lisbon, she said",
            "by": "anna",
        }
        judged = server.post("/judge", said)
        eventually(lambda: _by_hand(jaeger, trace_id, "memtrace.attribution"), "the person's")
        eventually(lambda: jaeger.spans_named(judged["case_trace"], "memtrace.case"), "its case")
    (span,) = _by_hand(jaeger, trace_id, "memtrace.attribution")
    said_there = tags(span)
    assert said_there["memtrace.attribution.type"] == "distortion"
    assert said_there["memtrace.attribution.revision"] == 2
    assert said_there["memtrace.judgement.by"] == "anna"
    assert said_there["memtrace.judgement.agreement"] == "stage"
    assert said_there["memtrace.cause.span_id"] == step["spanId"]
    assert "memtrace.judgement.note" not in said_there, "content stays behind unless asked for"
    assert "a person corrected it" in said_there["memtrace.attribution.explanation"]
    linked = {(ref["traceID"], ref["spanID"]) for ref in span["references"]}
    (older,) = [
        each
        for each in jaeger.spans_named(trace_id, "memtrace.attribution")
        if each["spanID"] != span["spanID"]
    ]
    assert (older["traceID"], older["spanID"]) in linked
    assert (step["traceId"], step["spanId"]) in linked
    (root,) = jaeger.spans_named(judged["case_trace"], "memtrace.case")
    assert tags(root)["memtrace.attribution.method"] == "human"
    failing = [
        tags(hop)["memtrace.hop.kind"]
        for hop in jaeger.spans_named(judged["case_trace"], "memtrace.hop")
        if tags(hop).get("otel.status_code") == "ERROR"
    ]
    assert failing == ["extraction"]
