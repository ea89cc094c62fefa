"""Verdicts that come weeks after, in Jaeger in memory, on disk, and after it lost the cause."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.contract import scenarios
from tests.integration.servers import (
    Jaeger,
    Up,
    eventually,
    get,
    jaeger_server,
    parent,
    send,
    tags,
    up,
)

SCENARIO = "overwritten"
"""Its newest span is of January 2026, so that its verdict is late by more than a month."""
ANSWER = scenarios.expected(SCENARIO)["answer"]
HALF_AN_HOUR_MICROS = 1_800 * 1_000_000
MONTH_MICROS = 30 * 86_400 * 1_000_000


class Judged(NamedTuple):
    verdict: dict[str, Any]
    server: Up


@contextmanager
def _judged(store: Path, jaeger: Jaeger) -> Iterator[Judged]:
    """The scenario's spans and its verdict, sent on to a Jaeger by the real program."""
    with up(store, "--forward", jaeger.otlp_http) as server:
        server.send(scenarios.request(SCENARIO).SerializeToString())
        server.post("/attribute", {})
        (verdict,) = [each for each in server.get("/verdicts") if each["answer"] == ANSWER]
        eventually(lambda: not _pending(store), "every delivery")
        hops = [hop["span"] for hop in verdict["path"]]
        eventually(
            lambda: all(jaeger.span(hop["traceId"], hop["spanId"]) for hop in hops),
            "every span of the path",
        )
        yield Judged(verdict, server)


def _pending(store: Path) -> int:
    """Deliveries that are yet to be made; Jaeger takes no log records."""
    with closing(sqlite3.connect(store / "cases.db")) as cases:
        (count,) = cases.execute("SELECT count(*) FROM outbox WHERE state = 'pending'").fetchone()
    return int(count)


def _found(jaeger: Jaeger, service: str, span: dict[str, Any]) -> list[str]:
    """The traces with the type of error of a span, searched in the hour around it."""
    response = get(
        f"{jaeger.query}/api/traces",
        service=service,
        operation=span["operationName"],
        tags=json.dumps({"memtrace.attribution.type": tags(span)["memtrace.attribution.type"]}),
        start=str(span["startTime"] - HALF_AN_HOUR_MICROS),
        end=str(span["startTime"] + HALF_AN_HOUR_MICROS),
    )
    assert response is not None
    return [trace["traceID"] for trace in response.json()["data"]]


@pytest.mark.fault("F37")
@pytest.mark.fault("F38")
@pytest.mark.parametrize("storage", ["memory", "badger"])
def test_a_verdict_a_month_late_stands_at_the_answer_and_is_one_span_however_often_sent(
    storage: str, tmp_path: Path
) -> None:
    disk = tmp_path / "badger" if storage == "badger" else None
    with jaeger_server(tmp_path, on_disk=disk) as jaeger:
        with _judged(tmp_path / "store", jaeger) as judged:
            (found,) = jaeger.spans_named(ANSWER["traceId"], "memtrace.attribution")
            answer = jaeger.span(ANSWER["traceId"], ANSWER["spanId"])
        assert answer is not None
        assert parent(found) == ANSWER
        assert found["startTime"] == answer["startTime"] + answer["duration"]
        case_trace = judged.verdict["case_trace"]
        (root,) = jaeger.spans_named(case_trace, "memtrace.case")
        assert root["startTime"] > found["startTime"] + MONTH_MICROS
        assert _found(jaeger, "memtrace", root) == [case_trace]
        service = judged.verdict["path"][-1]["service"]
        assert _found(jaeger, service, found) == [ANSWER["traceId"]], "in the days of the answer"
        traces = [ANSWER["traceId"], case_trace, judged.verdict["decisive"][0]["traceId"]]
        once = [jaeger.placed(trace_id) for trace_id in traces]
        for payload in _payloads(tmp_path / "store").values():
            send(jaeger, payload)
        assert [jaeger.placed(trace_id) for trace_id in traces] == once
        if disk is not None:
            os.kill(jaeger.pid, signal.SIGKILL)
    if disk is not None:
        with jaeger_server(tmp_path, on_disk=disk) as jaeger:
            assert [jaeger.placed(trace_id) for trace_id in traces] == once


def test_a_case_is_told_to_its_end_when_the_traces_of_cause_and_answer_have_expired(
    tmp_path: Path,
) -> None:
    with (
        jaeger_server(tmp_path, max_traces=4) as jaeger,
        _judged(tmp_path / "store", jaeger) as judged,
    ):
        verdict = judged.verdict
        # three newer traces and the case again take the places of all that was there
        send(jaeger, scenarios.request("ranked_out").SerializeToString())
        send(jaeger, _payloads(tmp_path / "store")[f"{verdict['id']}/1/case"])
        for hop in verdict["path"]:
            assert jaeger.trace(hop["span"]["traceId"]) is None
        trace = jaeger.trace(verdict["case_trace"])
        assert trace is not None
        _assert_told(trace, verdict)
        for hop in jaeger.spans_named(verdict["case_trace"], "memtrace.hop"):
            at = tags(hop)["memtrace.hop.trace_id"], tags(hop)["memtrace.hop.span_id"]
            judged.server.get("/view/operation", span=":".join(at))  # the explorer still has it


def _assert_told(trace: dict[str, Any], verdict: dict[str, Any]) -> None:
    """Everything stands in the one trace: what, where, when, which record, and the red hop."""
    (root,) = [span for span in trace["spans"] if span["operationName"] == "memtrace.case"]
    hops = sorted(
        (span for span in trace["spans"] if span["operationName"] == "memtrace.hop"),
        key=lambda span: span["startTime"],
    )
    assert tags(root)["memtrace.attribution.explanation"]
    assert len(json.loads(tags(root)["memtrace.case.path"])) == len(hops) == len(verdict["path"])
    for hop, told in zip(hops, verdict["path"], strict=True):
        says = tags(hop)
        assert says["memtrace.hop.kind"] == told["kind"]
        assert says["memtrace.hop.outcome"] == told["outcome"]
        assert says["memtrace.hop.operation"] == told["operation"]
        assert says["memtrace.hop.time"].startswith("2026-01-")
        assert json.loads(says.get("memtrace.hop.versions", "[]")) == told["versions"]
        assert says.get("memtrace.hop.record", "") == told["record"]
        assert trace["processes"][hop["processID"]]["serviceName"] == told["service"]
        assert (says.get("otel.status_code") == "ERROR") == told["decisive"]
    assert {tags(hop)["memtrace.hop.time"][:10] for hop in hops} >= {"2026-01-02", "2026-01-10"}


def _payloads(store: Path) -> dict[str, bytes]:
    """What was delivered of traces, by row."""
    with closing(sqlite3.connect(store / "cases.db")) as cases:
        rows = cases.execute("SELECT id, payload FROM outbox WHERE signal = 'traces'")
        return dict(rows.fetchall())
