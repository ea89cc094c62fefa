from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx
import pytest

from memtrace_collector.commands import health
from memtrace_collector.commands.output import plain, table
from memtrace_collector.config import Config
from memtrace_collector.runtime import judges
from memtrace_collector.runtime.owner import owned
from tests.memtrace_collector.dialects.test_smartcomment import export
from tests.memtrace_collector.running import VECTORS

ANSWER = "1bccf17ef4aa1398ba2a39dea4b93e91"
GRAPH = "user:merged_wrong"
RECORD = "mem:stub:11"

Run = Callable[..., Any]


def test_a_bad_file_is_named_and_the_good_one_is_imported(run: Run, tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("{")
    result = run("import", bad, VECTORS / "omission.otlp.json", "--format", "json")
    assert result.exit_code == 4
    assert f"Error: {bad}" in result.stderr
    assert json.loads(result.stdout)["items"] == 9


def test_a_smartcomment_export_becomes_a_graph_with_a_flagged_answer(
    ask: Run, tmp_path: Path
) -> None:
    (tmp_path / "graph.json").write_text(json.dumps(export(), indent=1))
    ask("import", tmp_path / "graph.json")
    (graph,) = ask("graphs")
    assert graph["graph_id"] == "smartcomment:g1"
    (verdict,) = ask("attribute")
    assert verdict["graph_id"] == "smartcomment:g1"


def test_attribute_names_what_it_could_not_judge(
    run: Run, imported: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    imported("omission")
    imported("merged_wrong")
    genuine = judges.attribute

    def failing(case: Any) -> Any:
        if case.answer.graph_id == "user:omission":
            raise RuntimeError("poison")
        return genuine(case)

    monkeypatch.setattr(judges, "attribute", failing)
    result = run("attribute", "--format", "json")
    assert result.exit_code == 4
    (verdict,) = json.loads(result.stdout)
    assert verdict["error_type"] == "merged_wrong"
    assert "set aside: RuntimeError: poison" in result.stderr


def test_a_file_that_is_not_there_is_wrong_use(run: Run, tmp_path: Path) -> None:
    assert run("import", tmp_path / "none.json").exit_code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("graph", "user:nobody"),
        ("graph", "user:nobody", "--hash"),
        ("history", GRAPH, "mem:stub:404"),
        ("why", "f" * 32),
        ("flag", "f" * 32),
        ("impact", "msg:none@000000000000"),
        ("case", "f" * 32, "--out", "unused.json"),
        ("flag", "no-trace-id"),
        ("flag", ANSWER, "--evidence", "no reference"),
        ("graph", GRAPH, "--hash", "--answer", ANSWER),
    ],
)
def test_what_does_not_exist_is_wrong_use_and_said(
    run: Run, imported: Run, arguments: tuple[str, ...]
) -> None:
    imported("merged_wrong")
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")


def test_a_graph_is_shown_in_every_format(run: Run, imported: Run, tmp_path: Path) -> None:
    imported("merged_wrong")
    assert "14 operations" in run("graph", GRAPH).stdout
    assert len(json.loads(run("graph", GRAPH, "--format", "json").stdout)["operations"]) == 14
    assert run("graph", GRAPH, "--format", "dot").stdout.startswith("digraph")
    (tmp_path / "graph.xml").write_text(run("graph", GRAPH, "--format", "graphml").stdout)
    assert len(networkx.read_graphml(tmp_path / "graph.xml")) > 14


def test_a_history_tells_writers_changes_and_readers(run: Run, ask: Run, imported: Run) -> None:
    imported("merged_wrong")
    first, second = ask("history", GRAPH, RECORD)["versions"]
    assert (first["name"], second["name"]) == ("create_memory", "update_memory")
    assert second["sources"] == ["fact:5282594f4780c4379b1109f5b5aa65ab@5282594f4780"]
    assert [reader["name"] for reader in second["readers"]] == ["search_memory"]
    text = run("history", GRAPH, RECORD).stdout
    assert "    -User lives in Lisbon since March\n    +User lives in Porto\n" in text


def test_a_flag_is_looked_into_and_its_evidence_can_be_left_out(ask: Run, imported: Run) -> None:
    imported("merged_wrong")
    ask("flag", ANSWER, "--expected", "Lisbon", "--evidence", "msg:conv/1@1d173ae1d8d9")
    (verdict,) = ask("attribute", "--graph", GRAPH)
    assert verdict["error_type"] == "merged_wrong"
    (without,) = ask("attribute", "--no-evidence")
    assert without["answer"] == verdict["answer"]
    assert ask("verdicts", "--stage", "deletion") == []
    assert len(ask("verdicts", "--type", "merged_wrong", "--sort", "score")) == 1


def test_why_says_what_beat_a_candidate(run: Run, ask: Run, imported: Run) -> None:
    expected = imported("ranked_out")
    answer = expected["answer"]["traceId"]
    record = expected["verdict"]["last_right"].rpartition("@")[0]
    receipt = ask("why", answer, record)
    cut = [c for read in receipt["reads"] for c in read["candidates"] if c["beaten_by"]]
    assert record in [candidate["ref"].rpartition("@")[0] for candidate in cut]
    assert any("cut: " in line["text"] for line in receipt["about"]["found"][0]["says"])
    assert "cut: " in run("why", answer, record).stdout


def test_why_finds_a_record_by_its_text(ask: Run, imported: Run) -> None:
    imported("merged_wrong")
    assert ask("why", ANSWER, "lives in Porto")["about"]["records"] == [RECORD]
    assert "matches" in ask("why", ANSWER, "zebra")["about"]["says"]


@pytest.mark.parametrize("target", ["msg:conv/1@1d173ae1d8d9", "msg:conv/1"])
def test_impact_lists_the_records_to_delete(run: Run, imported: Run, target: str) -> None:
    imported("merged_wrong")
    assert run("impact", target, "--records").stdout == f"{RECORD}\n"


def test_impact_of_a_span_is_what_came_of_its_outputs(ask: Run, imported: Run) -> None:
    expected = imported("merged_wrong")
    decisive = expected["verdict"]["decisive"][0]
    found = ask("impact", f"{decisive['traceId']}:{decisive['spanId']}")
    assert found["answers"] == [expected["answer"]]


def test_a_redacted_case_holds_no_content(
    run: Run, ask: Run, imported: Run, tmp_path: Path
) -> None:
    imported("merged_wrong")
    ask("flag", ANSWER, "--expected", "Lisbon it was", "--reason", "because I said so")
    whole, redacted = tmp_path / "whole.json", tmp_path / "redacted.json"
    ask("case", ANSWER, "--out", whole)
    ask("case", ANSWER, "--out", redacted, "--redact")
    for said in ("Porto", "Lisbon", "because I said so"):
        assert said in whole.read_text()
        assert said not in redacted.read_text()
    assert "memtrace.lineage" in redacted.read_text()


def test_invariants_are_listed_and_can_be_a_gate(run: Run, ask: Run, imported: Run) -> None:
    imported("merged_wrong")
    assert run("invariants", "--check").exit_code == 0
    imported("flapped")
    found = ask("invariants", "--graph", "user:flapped")
    assert "flapping" in {item["kind"] for item in found}
    assert run("invariants", "--check", "--kind", "flapping").exit_code == 1


def test_a_folder_in_use_without_an_api_is_said(
    run: Run, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memtrace_collector.runtime.owner.own_or_ask.__defaults__", (0.1,))
    with owned(store, "import"):
        result = run("graphs")
    assert result.exit_code == 3
    assert "is in use by memtrace-otel import" in result.stderr


def test_printed_text_cannot_drive_the_terminal() -> None:
    assert plain("a\x1b[31mred\x07\u202e") == "a\\x1b[31mred\\x07\\u202e"
    assert "\x1b" not in table(("A",), [("\x1b[2J",)])


def states(config: Config, environment: dict[str, str]) -> dict[str, str]:
    return {check.name: check.state for check in health.run(config, environment)}


def test_doctor_is_content_with_a_fresh_folder(run: Run) -> None:
    result = run("doctor", "--format", "json")
    checks = {check["check"]: check["state"] for check in json.loads(result.stdout)}
    assert checks["store"] == "ok"
    assert checks["python"] == "ok"


def test_doctor_finds_damage_in_the_log_and_in_a_database(
    run: Run, imported: Run, store: Path
) -> None:
    imported("merged_wrong")
    imported("omission")
    segment = sorted((store / "log").glob("*.log"))[0]
    data = bytearray(segment.read_bytes())
    data[100] ^= 0xFF
    segment.write_bytes(data)
    result = run("doctor", "--format", "json")
    assert result.exit_code == 4
    found = {check["check"]: check for check in json.loads(result.stdout)}
    assert found["log"]["state"] == "damaged"
    assert "segment 1" in found["log"]["says"]
    (store / "facts.db").write_bytes(b"not a database" * 100)
    found = {
        check["check"]: check for check in json.loads(run("doctor", "--format", "json").stdout)
    }
    assert found["facts.db"]["state"] == "damaged"
    assert "rebuilt from the log" in found["facts.db"]["says"]


def test_a_damaged_database_is_said_and_rebuilt_when_it_is_removed(
    run: Run, ask: Run, imported: Run, store: Path
) -> None:
    imported("merged_wrong")
    before = run("graph", GRAPH, "--hash").stdout
    (store / "facts.db").write_bytes(b"not a database" * 100)
    result = run("graphs")
    assert result.exit_code == 4
    assert "not a readable SQLite database" in result.stderr
    for file in store.glob("facts.db*"):
        file.unlink()
    assert run("graph", GRAPH, "--hash").stdout == before


def test_doctor_tells_a_taken_port_and_a_silent_endpoint(run: Run, store: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        config = Config(store=str(store))
        object.__setattr__(config.server, "http_port", port)
        assert states(config, {})["http port"] == "finding"
        listening = run("doctor", "--forward", f"http://127.0.0.1:{port}", "--format", "json")
        assert {c["check"]: c["state"] for c in json.loads(listening.stdout)}["forward"] == "ok"
    silent = run("doctor", "--forward", f"http://127.0.0.1:{port}")
    assert silent.exit_code == 3
    assert "UNREACHABLE  forward" in silent.stdout


def test_doctor_looks_after_the_digest_key(tmp_path: Path, store: Path) -> None:
    config = Config(store=str(store))
    key = tmp_path / "key"
    given = {"MEMTRACE_DIGEST_KEY_FILE": str(key)}
    assert states(config, given)["digest key"] == "finding"
    key.write_text("secret")
    key.chmod(0o644)
    assert states(config, given)["digest key"] == "finding"
    key.chmod(0o600)
    assert states(config, given)["digest key"] == "ok"
    assert states(config, {"MEMTRACE_DIGEST_KEY": "plain"})["digest key"] == "warning"
