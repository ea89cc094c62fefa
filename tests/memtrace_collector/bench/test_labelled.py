"""Exported cases as a benchmark: what counts, and what is said of the rest."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from memtrace_collector.attribution.judging import label
from memtrace_collector.bench import labelled
from memtrace_collector.bench.labelled import Labelled
from memtrace_collector.errors import DamagedError
from memtrace_collector.otlp.json_form import to_json
from tests.memtrace_collector.running import VECTORS

NAME = "omission"
EXPECTED = json.loads((VECTORS / f"{NAME}.expected.json").read_text())
ABSENT = {"traceId": "0" * 31 + "1", "spanId": "0" * 15 + "1"}


def judgement(
    error_type: str, decisive: Sequence[dict[str, str]], answer: Any = None
) -> dict[str, Any]:
    """A judged verdict, as far as its label says it."""
    return {
        "id": "c" * 32,
        "revision": 2,
        "graph_id": "user:omission",
        "answer": answer or EXPECTED["answer"],
        "stage": "extraction",
        "error_type": error_type,
        "decisive": decisive,
        "last_right": None,
        "first_wrong": None,
        "judgement": {
            "revision": 1, "agreement": "confirmed", "by": "", "note": "",
            "at": "2026-01-01T00:00:00.000Z",
        },
    }  # fmt: skip


def read(tmp_path: Path, said: dict[str, Any], evidence: bool = True) -> Labelled:
    document = json.loads((VECTORS / f"{NAME}.otlp.json").read_text())
    document["resourceSpans"] += to_json(label.request(said))["resourceSpans"]
    path = tmp_path / "case.otlp.json"
    path.write_text(json.dumps(document))
    return labelled.read(path, evidence=evidence)


def test_a_label_that_the_rules_agree_with_is_right_by_every_measure(tmp_path: Path) -> None:
    decisive = EXPECTED["verdict"]["decisive"]
    found = read(tmp_path, judgement(NAME, decisive))
    (row,) = found.rows
    assert row.marks.joint and row.marks.exact_type and row.marks.label
    assert (row.variant, row.dialogue, found.problems) == ("given", "user:omission", ())
    figures = labelled.summary(found.rows)
    assert figures["cases"] == figures["operation"]["hits"] == 1
    (row,) = read(tmp_path, judgement(NAME, decisive), evidence=False).rows
    assert row.variant == "found"


def test_what_is_not_in_the_file_is_said(tmp_path: Path) -> None:
    found = read(tmp_path, judgement(NAME, [ABSENT]))
    assert len(found.rows) == 1 and not found.rows[0].marks.operation
    (problem,) = found.problems
    assert "decisive operation" in problem
    found = read(tmp_path, judgement(NAME, [], answer=ABSENT))
    assert found.rows == () and "judged answer" in found.problems[0]


@pytest.mark.parametrize("said", [("no_such_type", []), (NAME, [{"traceId": "x", "spanId": "y"}])])
def test_a_span_that_is_no_whole_judgement_is_no_label(tmp_path: Path, said: Any) -> None:
    assert read(tmp_path, judgement(*said)) == Labelled((), 0, ())


def test_an_abstention_is_no_case(tmp_path: Path) -> None:
    assert read(tmp_path, judgement("insufficient_evidence", [])) == Labelled((), 1, ())


def test_a_file_that_is_no_request_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "case.otlp.json"
    path.write_text('{"resourceSpans": 1}')
    with pytest.raises(DamagedError, match="no exported case"):
        labelled.read(path)
