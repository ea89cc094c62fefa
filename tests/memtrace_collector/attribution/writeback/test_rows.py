"""A verdict becomes rows of the outbox: the same bytes each time, linked, without content."""

from __future__ import annotations

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from memtrace_collector.attribution.writeback.identity import case_trace_id, root_span_id
from tests.memtrace_collector.attribution.scripts import Script
from tests.memtrace_collector.attribution.writeback.kit import (
    CASE_ID,
    answer,
    case,
    spans,
    written,
)


def test_evaluation_record_names_the_type_and_carries_no_score() -> None:
    verdict, script = case()
    entry = written(verdict, script)[f"{CASE_ID}/1/evaluation"]
    assert entry.signal == "logs"
    (logs,) = ExportLogsServiceRequest.FromString(entry.payload).resource_logs
    (record,) = logs.scope_logs[0].log_records
    says = {each.key: each.value.string_value for each in record.attributes}
    assert record.event_name == "gen_ai.evaluation.result"
    assert record.span_id.hex() == answer(script).span_id
    assert says["gen_ai.evaluation.name"] == "memtrace.attribution"
    assert says["gen_ai.evaluation.score.label"] == "wrongly_deleted"
    assert "gen_ai.evaluation.score.value" not in says


@pytest.mark.fault("F38")
def test_bytes_are_the_same_each_time_and_new_for_a_new_revision() -> None:
    verdict, script = case()
    assert written(verdict, script) == written(verdict, script)
    later, _ = case(revision=2)
    root = spans(written(later, script)[f"{CASE_ID}/2/case"])[0]
    assert root.span.trace_id.hex() != case_trace_id(CASE_ID, 1)
    assert case_trace_id(CASE_ID, 1) in [trace_id for trace_id, _ in root.links]


def test_a_superseding_verdict_links_to_the_older_and_says_what_it_changed() -> None:
    says = "Supersedes revision 1: it said extraction/omission."
    verdict, script = case(revision=2)
    verdict |= {"supersedes": {"revision": 1, "says": says}}
    found = written(verdict, script)
    (older,) = spans(written({**verdict, "revision": 1}, script)[f"{CASE_ID}/1/attribution"])
    (newer,) = spans(found[f"{CASE_ID}/2/attribution"])
    assert older.span.span_id != newer.span.span_id
    assert older.span.span_id.hex() in [span_id for _, span_id in newer.links]
    assert newer.says["memtrace.attribution.explanation"].endswith(says)
    root = spans(found[f"{CASE_ID}/2/case"])[0]
    assert root_span_id(CASE_ID, 1) in [span_id for _, span_id in root.links]


@pytest.mark.fault("F35")
def test_no_content_leaves_unless_quotes_are_allowed() -> None:
    verdict, script = case()
    assert all(b"Enzo" not in row.payload for row in written(verdict, script).values())
    quoting = written(verdict, script, quotes=True)
    assert any(b"Enzo" in row.payload for row in quoting.values())


@pytest.mark.fault("F39")
def test_attributes_are_bounded() -> None:
    verdict, script = case()
    verdict["explanation"] = "é" * 4_000
    verdict["graph_id"] = "user:" + "x" * 900
    verdict["path"][0]["versions"] = ["mem:" + "x" * 900]
    verdict["also"] = verdict["decisive"] * 100
    for row in written(verdict, script, quotes=True).values():
        for found in spans(row) if row.signal == "traces" else []:
            for name, value in found.says.items():
                limit = 2_048 if name.endswith("explanation") else 256
                values = value if isinstance(value, list) else [value]
                assert len(str(value).encode()) < 2_048
                assert all(len(str(each).encode()) < limit for each in values)


def test_what_is_no_memory_fault_is_no_error() -> None:
    script = Script()
    message, version = script.remember("My barber is Enzo.")
    script.ask("Who is my barber?")
    script.reply("Enzo.", version)
    script.flag("Enzo", message)
    verdict = {"id": CASE_ID, "revision": 1, **script.verdict().to_json()}
    rows = written(verdict, script)
    found = [each.span for row in rows.values() if row.signal == "traces" for each in spans(row)]
    assert {span.status.code for span in found} == {Status.STATUS_CODE_UNSET}
    assert not [row for row in rows if row.startswith("cause/")]
