"""The verdict inside the failing trace, and the sign in the trace of the cause."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from memtrace_collector.attribution.writeback.identity import case_trace_id, root_span_id
from tests.memtrace_collector.attribution.writeback.kit import (
    CASE_ID,
    HOUR,
    answer,
    case,
    spans,
    written,
)

ATTRIBUTION = f"{CASE_ID}/1/attribution"


def _markers(rows: Mapping[str, object]) -> list[str]:
    return [name for name in rows if name.startswith("cause/")]


def test_it_stands_below_the_answer_red_and_links_to_the_case_and_the_cause() -> None:
    verdict, script = case()
    (found,) = spans(written(verdict, script)[ATTRIBUTION])
    ended = answer(script)
    span = found.span
    assert found.service == ended.service
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (ended.trace_id, ended.span_id)
    assert span.start_time_unix_nano == ended.end_ns < span.end_time_unix_nano
    assert span.status.code == Status.STATUS_CODE_ERROR
    decisive = verdict["decisive"][0]
    assert found.links == [
        (case_trace_id(CASE_ID, 1), root_span_id(CASE_ID, 1)),
        (decisive["traceId"], decisive["spanId"]),
    ]


def test_it_says_first_what_happened_and_ids_last() -> None:
    verdict, script = case()
    (found,) = spans(written(verdict, script)[ATTRIBUTION])
    assert list(found.says)[:6] == [
        "memtrace.attribution.explanation",
        "memtrace.attribution.stage",
        "memtrace.attribution.type",
        "memtrace.cause.operation",
        "memtrace.cause.service",
        "memtrace.cause.time",
    ]
    assert list(found.says)[-5:] == [
        "memtrace.graph.id",
        "memtrace.cause.trace_id",
        "memtrace.cause.span_id",
        "memtrace.case.id",
        "memtrace.case.trace_id",
    ]
    assert found.says["memtrace.attribution.type"] == "wrongly_deleted"
    assert found.says["memtrace.cause.span_id"] == verdict["decisive"][0]["spanId"]
    assert found.says["memtrace.cause.time"].startswith("2026-01-03T")


def test_of_several_causes_each_is_named_linked_and_marked() -> None:
    verdict, script = case()
    (first,) = verdict["decisive"]
    written_op = script.operations[1]
    second = {**first, "spanId": written_op.span_id, "traceId": written_op.trace_id}
    also = {**second, "spanId": script.operations[0].span_id, "error_type": "omission"}
    verdict |= {"decisive": [second, first], "also": [also]}
    rows = written(verdict, script)
    (found,) = spans(rows[ATTRIBUTION])
    assert found.says["memtrace.cause.span_id"] == second["spanId"]
    assert found.says["memtrace.cause.further"] == [
        f"{first['traceId']}:{first['spanId']} wrongly_deleted"
    ]
    assert found.says["memtrace.cause.also"] == [f"{also['traceId']}:{also['spanId']} omission"]
    assert [span_id for _, span_id in found.links[1:]] == [
        second["spanId"],
        first["spanId"],
        also["spanId"],
    ]
    assert {name.split(":")[1].split("/")[0] for name in _markers(rows)} == {
        first["spanId"],
        second["spanId"],
    }


def test_a_decisive_operation_that_is_no_longer_known_is_named_too() -> None:
    verdict, script = case()
    (known,) = verdict["decisive"]
    lost = {**known, "traceId": "f" * 32, "spanId": "e" * 16}
    rows = written({**verdict, "decisive": [lost, known]}, script)
    (found,) = spans(rows[ATTRIBUTION])
    assert found.says["memtrace.cause.span_id"] == known["spanId"]
    assert found.says["memtrace.cause.further"] == [f"{'f' * 32}:{'e' * 16} wrongly_deleted"]
    assert len(_markers(rows)) == 1


def test_more_causes_than_links_fit_leave_the_case_first() -> None:
    verdict, script = case()
    also = [{**verdict["decisive"][0], "spanId": f"{n:016x}"} for n in range(100, 120)]
    (found,) = spans(written({**verdict, "also": also}, script)[ATTRIBUTION])
    assert len(found.links) == 8
    assert found.links[0] == (case_trace_id(CASE_ID, 1), root_span_id(CASE_ID, 1))


def test_the_marker_stands_below_the_cause_and_leads_to_the_case_and_the_answer() -> None:
    verdict, script = case()
    rows = written(verdict, script)
    (name,) = _markers(rows)
    (found,) = spans(rows[name])
    decisive = verdict["decisive"][0]
    assert found.service == "writer"
    assert (found.span.trace_id.hex(), found.span.parent_span_id.hex()) == (
        decisive["traceId"],
        decisive["spanId"],
    )
    assert found.links == [
        (case_trace_id(CASE_ID, 1), root_span_id(CASE_ID, 1)),
        (answer(script).trace_id, answer(script).span_id),
    ]
    assert next(iter(found.says)) == "memtrace.attribution.explanation"
    assert found.says["memtrace.attribution.explanation"].startswith("This broke an answer.")
    assert found.says["memtrace.case.id"] == CASE_ID


def test_the_marker_is_one_for_every_case_of_an_operation() -> None:
    verdict, script = case()
    other = {**verdict, "id": "d" * 32}
    assert _markers(written(verdict, script)) == _markers(written(other, script))


def test_the_answer_itself_is_not_marked() -> None:
    verdict, script = case()
    ended = answer(script)
    here = {**verdict["decisive"][0], "traceId": ended.trace_id, "spanId": ended.span_id}
    rows = written({**verdict, "decisive": [here]}, script)
    (found,) = spans(rows[ATTRIBUTION])
    assert not _markers(rows)
    assert len(found.links) == 1


@pytest.mark.fault("F37")
@pytest.mark.parametrize(
    ("profile", "offset"), [("jaeger", 0), ("tempo", 2 * HOUR), ("none", None)]
)
def test_a_late_verdict_is_stamped_as_the_profile_says(profile: str, offset: int | None) -> None:
    verdict, script = case()
    rows = written(verdict, script, late_ns=2 * HOUR, profile=profile)
    assert f"{CASE_ID}/1/case" in rows
    assert (ATTRIBUTION in rows) == (offset is not None)
    if offset is not None:
        (found,) = spans(rows[ATTRIBUTION])
        assert found.span.start_time_unix_nano == answer(script).end_ns + offset


@pytest.mark.parametrize(
    ("profile", "late_ns", "marked"),
    [
        ("jaeger", 90 * 24 * HOUR, True),
        ("jaeger-elasticsearch", HOUR, False),  # the cause is weeks older than the answer
        ("tempo", HOUR, False),
        ("none", HOUR, False),
    ],
)
def test_the_cause_is_marked_where_its_trace_can_show_it(
    profile: str, late_ns: int, marked: bool
) -> None:
    verdict, script = case()
    assert bool(_markers(written(verdict, script, late_ns=late_ns, profile=profile))) == marked
