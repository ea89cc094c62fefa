"""What the watched invariants found, as its page is told it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memtrace_collector.api.explorer import invariants as view
from memtrace_collector.api.explorer.invariants import MEANINGS, invariants
from memtrace_collector.api.exploring import Stores
from memtrace_collector.errors import NotFoundError, WrongUseError
from memtrace_collector.graph.invariants import KINDS
from memtrace_collector.store.sqlite_cases import SqliteCaseStore
from tests.memtrace_collector.attribution.scripts import Script


def stale(script: Script | None = None) -> Script:
    """A read that is given a version after it was replaced, and an empty one."""
    script = script or Script()
    _, old = script.remember("Lives in Rome.")
    script.update(old, "Lives in Oslo.")
    script.ask("Where?")
    script.retrieve(old)
    script.ask("And when?", 21)
    script.retrieve()
    return script


def shown(script: Script, tmp_path: Path, **parameters: str) -> Any:
    cases = SqliteCaseStore(tmp_path / "cases.db")
    try:
        return invariants(Stores(script.store(), cases), parameters)
    finally:
        cases.close()


def test_findings_stand_newest_first_with_record_operation_and_text(tmp_path: Path) -> None:
    script = stale()
    found = shown(script, tmp_path)
    empty, old = found["findings"]["items"]
    assert (old["kind"], old["record"], old["step"]) == ("stale", "mem:stub:1", "retrieve")
    assert old["text"]["text"] == "Lives in Rome."
    assert old["span"]["spanId"] == script.first("retrieve").span_id
    assert (empty["kind"], empty["record"]) == ("empty_retrieval", None)
    counts = {each["kind"]: each["count"] for each in found["kinds"] if each["count"]}
    assert counts == {"stale": 1, "empty_retrieval": 1}
    assert (found["checked"], found["known"]) == (1, 1)


def test_one_kind_is_shown_and_the_others_still_counted(tmp_path: Path) -> None:
    found = shown(stale(), tmp_path, kind="stale", graph="user:test")
    assert [each["kind"] for each in found["findings"]["items"]] == ["stale"]
    assert sum(each["count"] for each in found["kinds"]) == 2


def test_what_another_graph_holds_is_linked_and_told_from_there(tmp_path: Path) -> None:
    script = Script("user:bob")
    script.remember("Likes tea.", record="9")
    script.day(1)
    script.graph = "user:anna"
    _, version = script.remember("Lives in Rome.")
    script.graph = "user:bob"
    script.ask("Where?")
    script.retrieve(version)
    (found,) = shown(script, tmp_path, kind="foreign")["findings"]["items"]
    assert (found["graph_id"], found["record"]) == ("user:bob", "mem:stub:1")
    assert found["record_graph_id"] == "user:anna"
    assert found["text"]["text"] == "Lives in Rome."


def test_every_kind_has_a_sentence() -> None:
    assert set(MEANINGS) == set(KINDS)


def test_graphs_beyond_the_bound_are_not_checked_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = stale()
    script.day(50)
    script.graph = "user:later"
    stale(script)
    monkeypatch.setattr(view, "MAX_OPERATIONS", 10)
    found = shown(script, tmp_path)
    assert (found["checked"], found["known"]) == (1, 2)
    assert {each["graph_id"] for each in found["findings"]["items"]} == {"user:later"}
    assert found["graphs"]["total"] == 2
    monkeypatch.setattr(view, "LARGEST", 5)
    with pytest.raises(WrongUseError, match="memtrace-otel invariants --graph user:later"):
        shown(script, tmp_path, graph="user:later")


def test_an_unknown_kind_or_graph_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongUseError, match="there are stale, zombie"):
        shown(stale(), tmp_path, kind="mouldy")
    with pytest.raises(NotFoundError):
        shown(stale(), tmp_path, graph="user:nobody")
