"""The contract's test vectors through the command line: import, then ask."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.memtrace_collector.running import VECTORS

NAMES = sorted(path.name.removesuffix(".otlp.json") for path in VECTORS.glob("*.otlp.json"))
COMPARED = ("stage", "error_type", "aspect", "last_right", "first_wrong", "missing", "lineage")

Answer = Callable[..., Any]
Imported = Callable[[str], Any]


def verdict_of(ask: Answer, expected: Any) -> Any:
    (found,) = [
        v for v in ask("attribute", "--method", "rules") if v["answer"] == expected["answer"]
    ]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_import_and_attribute_give_the_expected_verdict(
    name: str, ask: Answer, imported: Imported
) -> None:
    expected = imported(name)
    verdict = verdict_of(ask, expected)
    assert {key: verdict[key] for key in COMPARED} == {
        key: expected["verdict"][key] for key in COMPARED
    }
    decisive = [{"traceId": d["traceId"], "spanId": d["spanId"]} for d in verdict["decisive"]]
    assert decisive == expected["verdict"]["decisive"]
    assert ask("verdicts") == ask("attribute")


@pytest.mark.parametrize("name", NAMES)
def test_the_ancestry_shown_contains_and_excludes_what_is_expected(
    name: str, ask: Answer, imported: Imported
) -> None:
    expected = imported(name)
    answer = f"{expected['answer']['traceId']}:{expected['answer']['spanId']}"
    shown = ask("graph", expected["graph_id"], "--answer", answer)["operations"]
    found = [{"traceId": item["traceId"], "spanId": item["spanId"]} for item in shown]
    assert all(item in found for item in expected["ancestry_contains"])
    assert not any(item in found for item in expected["ancestry_excludes"])


def test_the_order_of_spans_changes_no_fingerprint(
    ask: Answer, run: Any, imported: Imported
) -> None:
    imported("merged_wrong")
    in_order = run("graph", "user:merged_wrong", "--hash").stdout
    imported("merged_wrong.shuffled")
    assert run("graph", "user:merged_wrong", "--hash").stdout == in_order


def test_importing_twice_changes_nothing(ask: Answer, imported: Imported) -> None:
    expected = imported("overwritten")
    first = verdict_of(ask, expected)
    imported("overwritten")
    assert verdict_of(ask, expected) == first
    (graph,) = ask("graphs")
    assert graph["operations"] == expected["operations_in_file"]


@pytest.mark.parametrize("name", [name for name in NAMES if "shuffled" not in name])
def test_a_case_file_gives_the_same_verdict_elsewhere(
    name: str,
    ask: Answer,
    imported: Imported,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = imported(name)
    here = verdict_of(ask, expected)
    out = tmp_path / "case.json"
    answer = expected["answer"]
    ask("case", f"{answer['traceId']}:{answer['spanId']}", "--out", out)
    monkeypatch.setenv("MEMTRACE_STORE", str(tmp_path / "elsewhere"))
    ask("import", out)
    there = verdict_of(ask, expected)
    compared = (*COMPARED, "decisive", "explanation")
    assert {key: there[key] for key in compared} == {key: here[key] for key in compared}
