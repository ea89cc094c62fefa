"""The demo's traces and verdicts in a real Jaeger v2, read back through its HTTP API."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import pytest

from memtrace_collector.demo.cases import questions
from tests.contract import scenarios
from tests.demo_run import DemoRun
from tests.integration.servers import eventually, links, parent, tags, up

PLANTED = [question.id for question in questions() if question.planted]
ELSEWHERE = [q.id for q in questions() if q.planted and q.planted.step in ("extract", "decide")]
"""Faults whose operation stands in another trace than the answer."""

_OUTBOX_STATES = "SELECT state, count(*) FROM outbox GROUP BY state ORDER BY state"

pytestmark = pytest.mark.usefixtures("forwarded_demo")


def _case(demo: DemoRun, case_id: str) -> dict[str, Any]:
    return next(case for case in demo.cases if case["id"] == case_id)


@pytest.mark.fault("F37")
@pytest.mark.parametrize("case_id", PLANTED)
def test_the_verdict_stands_in_the_failing_trace_as_a_child_of_the_answer(
    jaeger, forwarded_demo, case_id
):
    case = _case(forwarded_demo, case_id)
    says = tags(jaeger.verdict_span(case["answer"]))
    assert says["memtrace.attribution.stage"] == case["planted"]["stage"]
    assert says["memtrace.attribution.type"] == case["planted"]["error_type"]
    assert says["memtrace.cause.trace_id"] == case["planted"]["operation"]["traceId"]
    assert says["otel.status_code"] == "ERROR"


@pytest.mark.parametrize("case_id", ELSEWHERE)
def test_the_verdicts_link_leads_to_the_decisive_span_in_another_trace(
    jaeger, forwarded_demo, case_id
):
    case = _case(forwarded_demo, case_id)
    cause = case["planted"]["operation"]
    assert cause["traceId"] != case["answer"]["traceId"]
    assert cause in links(jaeger.verdict_span(case["answer"]))
    decisive = jaeger.span(cause["traceId"], cause["spanId"])
    assert tags(decisive)["memtrace.step"] in ("extract", "decide")


@pytest.mark.fault("F37")
@pytest.mark.parametrize("case_id", PLANTED)
def test_the_case_trace_tells_the_path_hop_by_hop(jaeger, forwarded_demo, case_id):
    case = _case(forwarded_demo, case_id)
    trace_id = case["verdict"]["case_trace"]
    roots = jaeger.spans_named(trace_id, "memtrace.case")
    hops = jaeger.spans_named(trace_id, "memtrace.hop")
    assert len(roots) == 1
    root = {"traceId": roots[0]["traceID"], "spanId": roots[0]["spanID"]}
    assert len(hops) == len(case["verdict"]["path"]) >= 2
    assert all(parent(hop) == root for hop in hops)
    told = [tags(hop)["memtrace.hop.outcome"] for hop in hops]
    assert set(told) <= {"kept", "changed", "lost", "unknown"}
    failing = [hop for hop in hops if tags(hop).get("otel.status_code") == "ERROR"]
    assert [case["planted"]["operation"] in links(hop) for hop in failing] == [True]


def test_a_right_answers_verdict_is_no_error(jaeger, forwarded_demo):
    for question in questions():
        if question.planted is None:
            span = jaeger.verdict_span(_case(forwarded_demo, question.id)["answer"])
            assert "otel.status_code" not in tags(span)


def test_a_search_is_linked_to_the_writers_of_what_it_delivered(jaeger, forwarded_demo):
    answer = _case(forwarded_demo, "flight-budget")["answer"]
    prompt = jaeger.span(answer["traceId"], answer["spanId"])
    searches = [
        span
        for link in links(prompt)
        for span in [jaeger.span(link["traceId"], link["spanId"])]
        if span and span["operationName"].startswith("search_memory")
    ]
    assert searches
    writers = [
        jaeger.span(link["traceId"], link["spanId"])
        for search in searches
        for link in links(search)
    ]
    steps = {tags(writer)["memtrace.step"] for writer in writers if writer}
    assert steps & {"create", "update"}


@pytest.mark.fault("F35")
def test_captured_content_is_not_forwarded(jaeger, forwarded_demo):
    for case in forwarded_demo.cases:
        trace = jaeger.trace(case["answer"]["traceId"])
        assert not any("memtrace.values" in tags(span) for span in trace["spans"])


@pytest.mark.fault("F38")
def test_a_second_delivery_adds_nothing(jaeger, tmp_path):
    request = scenarios.request("overwritten").SerializeToString()
    trace_id = scenarios.expected("overwritten")["answer"]["traceId"]

    def spans() -> list[str]:
        trace = jaeger.trace(trace_id)
        return sorted(span["spanID"] for span in trace["spans"]) if trace else []

    with up(tmp_path / "store", "--forward", jaeger.otlp_http) as server:
        server.send(request)
        server.post("/attribute", {})
        eventually(lambda: jaeger.spans_named(trace_id, "memtrace.attribution"), "the verdict")
    once = spans()
    with up(tmp_path / "store", "--forward", jaeger.otlp_http) as server:
        server.send(request)
        server.post("/attribute", {})
        server.post("/settle", {})
    assert spans() == once
    assert len(set(once)) == len(once)


@pytest.mark.fault("F38")
def test_rows_of_the_outbox_that_are_sent_twice_are_one_span_each(jaeger, tmp_path):
    store = tmp_path / "store"
    trace_id = scenarios.expected("not_stored")["answer"]["traceId"]
    with up(store, "--forward", jaeger.otlp_http) as server:
        server.send(scenarios.request("not_stored").SerializeToString())
        server.post("/attribute", {})
        eventually(lambda: jaeger.spans_named(trace_id, "memtrace.attribution"), "the verdict")
    once = jaeger.placed(trace_id)
    with closing(sqlite3.connect(store / "cases.db")) as cases, cases:
        states = cases.execute(_OUTBOX_STATES).fetchall()
        cases.execute("UPDATE outbox SET state = 'abandoned'")
    with up(store, "--forward", jaeger.otlp_http) as server:
        assert server.post("/redeliver", {})["reopened"] == sum(count for _, count in states)
    with closing(sqlite3.connect(store / "cases.db")) as cases:
        assert cases.execute(_OUTBOX_STATES).fetchall() == states
    assert jaeger.placed(trace_id) == once
    assert len({span_id for span_id, *_ in once}) == len(once)
