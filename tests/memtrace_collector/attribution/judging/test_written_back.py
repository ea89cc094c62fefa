"""A person's verdict in the trace: who said it and how far the machine agrees."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from memtrace_collector.attribution.judging import judged, label
from memtrace_collector.attribution.judging.said import Said
from memtrace_collector.attribution.superseding import stored_form
from memtrace_collector.processor.redaction import remove_content
from tests.memtrace_collector.attribution.scripts import Script
from tests.memtrace_collector.attribution.writeback.kit import CASE_ID, case, spans, written

NOTE = "The barber is called Enzo."


def corrected() -> tuple[dict[str, Any], Script]:
    verdict, script = case()
    stored = stored_form(script.verdict().to_json(), CASE_ID, 1, None)
    assert stored is not None and stored["error_type"] == verdict["error_type"]
    operation = next(op for op in script.operations if op.step == "create")
    said = Said(action="correct", type="distortion", note=NOTE, by="anna")
    return judged.corrected(stored, said, [operation], 2), script


def test_the_spans_say_that_a_person_said_it_and_who() -> None:
    verdict, script = corrected()
    rows = written(verdict, script, quotes=True)
    (in_trace,) = spans(rows[f"{CASE_ID}/2/attribution"])
    root = spans(rows[f"{CASE_ID}/2/case"])[0]
    for span in (in_trace, root):
        assert span.says["memtrace.attribution.method"] == "human"
        assert span.says["memtrace.judgement.by"] == "anna"
        assert span.says["memtrace.judgement.agreement"] == "stage"
        assert span.says["memtrace.judgement.note"] == NOTE
    assert in_trace.says["memtrace.cause.operation"] == "create_memory"


def test_the_log_record_says_it_too() -> None:
    verdict, script = corrected()
    entry = written(verdict, script)[f"{CASE_ID}/2/evaluation"]
    (logs,) = ExportLogsServiceRequest.FromString(entry.payload).resource_logs
    says = {
        each.key: each.value.string_value for each in logs.scope_logs[0].log_records[0].attributes
    }
    assert says["gen_ai.evaluation.score.label"] == "distortion"
    assert says["memtrace.attribution.method"] == "human"
    assert says["memtrace.judgement.by"] == "anna"


@pytest.mark.fault("F35")
def test_a_note_leaves_only_where_content_may() -> None:
    verdict, script = corrected()
    assert not any(b"Enzo" in row.payload for row in written(verdict, script).values())
    assert any(b"Enzo" in row.payload for row in written(verdict, script, quotes=True).values())


def test_a_machines_verdict_names_no_person() -> None:
    verdict, script = case()
    (in_trace,) = spans(written(verdict, script)[f"{CASE_ID}/1/attribution"])
    assert not any(name.startswith("memtrace.judgement") for name in in_trace.says)


@pytest.mark.fault("F35")
def test_the_label_of_an_imported_case_is_sent_on_without_its_note() -> None:
    verdict, _ = corrected()
    request = label.request(verdict)
    (span,) = request.resource_spans[0].scope_spans[0].spans
    assert remove_content(span)
    assert NOTE.encode() not in request.SerializeToString()
    assert verdict["judgement"]["by"].encode() in request.SerializeToString()
