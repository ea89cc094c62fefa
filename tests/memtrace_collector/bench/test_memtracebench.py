"""MemTraceBench files are attributed and scored by the benchmark's own two measures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memtrace_collector.bench import memtracebench
from memtrace_collector.bench.memtracebench import Scored
from memtrace_collector.cli import cli
from memtrace_collector.errors import DamagedError
from tests.memtrace_collector.bench import exports


def write(folder: Path, split: str, document: Any) -> Path:
    path = folder / split / f"{split}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    return path


def scored_case(**more: Any) -> Scored:
    fields: dict[str, Any] = {
        "file": "f.json",
        "split": "mem0",
        "source": "locomo",
        "expected": "Oslo",
        "gold_type": "UpdateError",
        "gold_span": "s1",
        "verdict_type": "overwritten",
        "verdict_label": "UpdateError",
        "verdict_span": "s1",
        "score": 0.9,
        "explanation": "",
    }
    return Scored(**{**fields, **more})


def share_of(figures: dict[str, Any], measure: str) -> float:
    return float(figures[measure]["share"])


@pytest.mark.parametrize(
    ("name", "labels", "operations"),
    [
        ("mem0", ["ExtractionError", "UpdateError"], [True, True]),
        ("rag", ["RetrievalError"], [True]),
        ("long_context", ["UpdateError"], [True]),
    ],
)
def test_an_export_of_each_system_gives_its_labels_and_operations(
    tmp_path: Path, name: str, labels: list[str], operations: list[bool]
) -> None:
    found = memtracebench.read(write(tmp_path, name, getattr(exports, name)()))
    assert [each.verdict_label for each in found] == labels, [each.explanation for each in found]
    assert [each.operation_right for each in found] == operations
    assert all(each.split == name for each in found)


def test_labels_that_blame_no_memory_are_left_out_unless_kept(tmp_path: Path) -> None:
    path = write(tmp_path, "rag", exports.rag())
    assert [each.gold_type for each in memtracebench.read(path)] == ["RetrievalError"]
    kept = memtracebench.read(path, keep_non_memory=True)
    assert [each.gold_type for each in kept] == ["RetrievalError", "AnnotationError"]
    assert kept[1].verdict_label == "AnnotationError", kept[1].explanation


def test_the_golden_answer_is_what_the_flag_expects(tmp_path: Path) -> None:
    found = memtracebench.read(write(tmp_path, "mem0", exports.mem0()))
    assert [each.expected for each in found] == ["Biscuit", "Lisbon"]
    assert {each.source for each in found} == {"locomo"}


def test_an_annotation_without_its_answer_counts_as_wrong(tmp_path: Path) -> None:
    document = exports.long_context()
    document["data"]["operations"] = [
        row for row in document["data"]["operations"] if row["op_name"] != "question-answering"
    ]
    (found,) = memtracebench.read(write(tmp_path, "long_context", document))
    assert not found.type_right and not found.operation_right and not found.verdict_type
    assert memtracebench.summary([found])["all"]["without_verdict"] == 1


def test_the_type_measure_wants_the_exact_label() -> None:
    cases = [scored_case(), scored_case(verdict_label="DeletionError")]
    figures = memtracebench.summary(cases)["all"]
    assert share_of(figures, "error_type_prediction_accuracy") == 0.5
    assert share_of(figures, "operation_identifier_prediction_accuracy") == 1.0
    assert share_of(figures, "joint") == 0.5


def test_the_operation_measure_wants_the_exact_operation() -> None:
    cases = [scored_case(verdict_span="s2"), scored_case(verdict_span=""), scored_case()]
    figures = memtracebench.summary(cases)["all"]
    assert figures["operation_identifier_prediction_accuracy"]["hits"] == 1
    assert figures["error_type_prediction_accuracy"]["hits"] == 3


def test_an_abstention_is_right_by_no_measure() -> None:
    none = scored_case(
        gold_type="", verdict_type="insufficient_evidence", verdict_label="", verdict_span=""
    )
    assert not none.type_right and not none.operation_right


def test_figures_come_by_split_source_and_label() -> None:
    cases = [scored_case(), scored_case(split="rag", source="realmem", verdict_span="s9")]
    found = memtracebench.summary(cases)
    assert found["by_split"]["mem0"]["total_cases"] == found["by_split"]["rag"]["total_cases"] == 1
    assert share_of(found["by_source"]["realmem"], "operation_identifier_prediction_accuracy") == 0
    assert found["confusion"] == {"UpdateError": {"UpdateError": 2}}


@pytest.mark.parametrize(
    ("path", "layer", "split"),
    [
        ("data/long-context/a.json", "", "long_context"),
        ("data/evermemos/a.json", "Mem0Layer", "evermemos"),
        ("data/a.json", "NaiveRAG", "rag"),
        ("data/a.json", "Long-Context", "long_context"),
        ("data/a.json", "", "other"),
    ],
)
def test_the_split_is_that_of_the_folder_or_else_of_the_layer(
    path: str, layer: str, split: str
) -> None:
    assert memtracebench.split_of(Path(path), {"metadata": {"layer_type": layer}}) == split


@pytest.mark.parametrize("body", ["", "[]", "{}", '{"data": 5}', "{"])
def test_another_file_is_refused_by_name(tmp_path: Path, body: str) -> None:
    path = tmp_path / "odd.json"
    path.write_text(body)
    with pytest.raises(DamagedError, match=r"odd\.json"):
        memtracebench.read(path)


def test_the_command_scores_a_folder_and_names_what_it_cannot_read(tmp_path: Path) -> None:
    data, out = tmp_path / "bench", tmp_path / "out"
    for name in ("mem0", "rag", "long_context"):
        write(data, name, getattr(exports, name)())
    line = ["bench", "import", str(data), "--out", str(out), "--format", "json"]
    done = CliRunner().invoke(cli, line)
    assert done.exit_code == 0, done.output
    written = json.loads((out / "memtracebench.json").read_text())
    assert written["all"]["total_cases"] == 4 and len(written["cases"]) == 4
    assert set(written["by_split"]) == {"mem0", "rag", "long_context"}
    (data / "junk.json").write_text("{}")
    failed = CliRunner().invoke(cli, ["bench", "import", str(data), "--out", str(out)])
    assert failed.exit_code == 4 and "junk.json" in failed.output
    assert (
        "all" in failed.output and json.loads((out / "memtracebench.json").read_text())["problems"]
    )


def test_evidence_can_be_searched_for_instead_of_given(tmp_path: Path) -> None:
    path = write(tmp_path, "mem0", exports.mem0())
    found = memtracebench.read(path, evidence=False)
    assert [each.verdict_label for each in found] == ["ExtractionError", "UpdateError"]


def test_an_export_without_annotations_is_named_and_no_error(tmp_path: Path) -> None:
    document = exports.rag()
    document["data"].pop("annotations")
    path = write(tmp_path, "rag", document)
    done = CliRunner().invoke(cli, ["bench", "import", str(path), "--out", str(tmp_path / "out")])
    assert done.exit_code == 0 and f"{path}: no annotation" in done.output
