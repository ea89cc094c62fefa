"""`erase`: alone and through a running `up`, asked before and proven after."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memtrace_collector.runtime.erasing import NOTE_FILE
from tests.memtrace_collector.commands.conftest import Answer, Run
from tests.memtrace_collector.running import (
    VECTORS,
    command,
    environment,
    eventually,
    start_up,
)

GRAPH, KEPT = "user:omission", "user:overwritten"


def words(name: str) -> list[str]:
    """What was said in a vector."""
    text = (VECTORS / f"{name}.otlp.json").read_text()
    spans = [
        span
        for resource in json.loads(text)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
    values = [
        json.loads(attribute["value"]["stringValue"])
        for span in spans
        for attribute in span["attributes"]
        if attribute["key"] == "memtrace.values"
    ]
    return sorted({text for each in values for text in each.values() if isinstance(text, str)})


def everything(folder: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def asked(*arguments: str) -> subprocess.CompletedProcess[str]:
    """What a command in a process of its own says."""
    line = command(*arguments)
    return subprocess.run(
        line, check=False, capture_output=True, text=True, env=environment(), timeout=100
    )


def test_an_erased_vector_leaves_nothing_in_the_folder(
    ask: Answer, imported: Callable[[str], Any], store: Path
) -> None:
    imported("omission")
    imported("overwritten")
    ask("attribute")
    kept = ask("graphs")
    said = [text for text in words("omission") if text not in words("overwritten")]
    assert said
    assert any(text.encode() in everything(store) for text in said)
    result = ask("erase", GRAPH, "--yes")
    assert result["left"] == {}
    assert result["erased"]["operations"] > 0
    assert result["erased"]["verdicts"] > 0
    assert [item for item in kept if item["graph_id"] != GRAPH] == ask("graphs")
    left = everything(store)
    for text in (GRAPH, *said):
        assert text.encode() not in left
    assert ask("rebuild")["equal"]


def test_without_a_yes_nothing_goes(run: Run, imported: Callable[[str], Any]) -> None:
    imported("omission")
    result = run("erase", GRAPH)
    assert result.exit_code == 1
    assert GRAPH in run("graphs").output


def test_something_has_to_be_named(run: Run) -> None:
    result = run("erase", "--yes")
    assert result.exit_code == 2
    assert "--tenant" in result.output


def test_another_tenant_is_erased_whole_and_the_default_one_stays(
    ask: Answer, run: Run, imported: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    imported("overwritten")
    with monkeypatch.context() as other:
        other.setenv("MEMTRACE_TENANT", "acme")
        imported("omission")
        assert [item["graph_id"] for item in ask("graphs")] == [GRAPH]
    result = run("erase", "--tenant", "acme", "--yes")
    assert result.exit_code == 0, result.output
    assert "nothing is left" in result.output
    assert [item["graph_id"] for item in ask("graphs")] == [KEPT]


@pytest.mark.fault("F8")
def test_a_running_process_erases_for_the_command_and_goes_on(tmp_path: Path) -> None:
    store = tmp_path / "store"
    up = start_up(store)
    try:
        for name in ("omission", "overwritten"):
            up.post((VECTORS / f"{name}.otlp.json").read_bytes())
        eventually(lambda: len(up.ask("/graphs")) == 2, "both graphs are there")
        eventually(lambda: len(up.ask("/verdicts")) == 2, "both are judged")
        done = asked("erase", GRAPH, "--yes", "--store", str(store), "--format", "json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["left"] == {}
        assert [item["graph_id"] for item in up.ask("/graphs")] == [KEPT]
        assert [item["graph_id"] for item in up.ask("/verdicts")] == [KEPT]
        up.post((VECTORS / "omission.otlp.json").read_bytes())
        eventually(lambda: len(up.ask("/graphs")) == 2, "what comes in again is new")
        refused = asked("rebuild", "--check", "--store", str(store))
        assert refused.returncode == 3
        assert "end it" in refused.stderr
    finally:
        up.stop()


@pytest.mark.fault("F1")
def test_an_erasure_that_was_noted_and_killed_is_carried_out_at_the_next_start(
    ask: Answer, imported: Callable[[str], Any], store: Path
) -> None:
    imported("omission")
    imported("overwritten")
    note = store / "log" / NOTE_FILE
    order = {"order": ["default", GRAPH, "an-order"], "at": None, "targets": None}
    note.write_text(json.dumps({**order, "wanted": [], "operations": 0}))
    up = start_up(store)
    try:
        eventually(lambda: not note.exists(), "the erasure is finished")
        assert [item["graph_id"] for item in up.ask("/graphs")] == [KEPT]
    finally:
        up.stop()
    assert GRAPH.encode() not in everything(store)
