"""`attribute --replay` as typed: with the folder alone, and through the process that owns it."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.instrumentors.openai_stub import OpenAIStub
from tests.memtrace_collector.attribution.replay.cases import reader
from tests.memtrace_collector.commands.conftest import Answer, Run
from tests.memtrace_collector.running import VECTORS, eventually, start_up

REPLAY = ("attribute", "--replay", "--replay-model", "m")


@pytest.fixture(autouse=True)
def _no_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def test_a_replayed_verdict_is_a_new_revision_that_stays(
    ask: Answer, imported: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    imported("ranked_out")
    (first,) = ask("attribute")
    with OpenAIStub(reader()) as stub:
        monkeypatch.setenv("MEMTRACE_REPLAY_URL", stub.base_url)
        (second,) = ask(*REPLAY, "--runs", "2")
        assert len(stub.chat_requests) == 4
        (third,) = ask("attribute")
    assert first["replay"] is None
    assert (first["revision"], second["revision"]) == (1, 2)
    replay = second["replay"]
    assert (replay["result"], replay["runs"], replay["flips"]) == ("confirmed", 2, 0)
    assert replay["model"] == "m"
    assert second["basis"] == [*first["basis"], "replay"]
    assert second["score"] > first["score"]
    assert "A replay confirms it" in second["explanation"]
    assert third == second
    assert ask("verdicts") == [second]


def test_the_table_shows_the_result(
    run: Run, imported: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    imported("ranked_out")
    with OpenAIStub(reader()) as stub:
        monkeypatch.setenv("OPENAI_BASE_URL", stub.base_url)
        result = run(*REPLAY)
    assert result.exit_code == 0
    assert "confirmed 3/3" in result.stdout


def test_an_endpoint_that_is_down_ends_with_3_and_the_verdict_stands(
    run: Run, ask: Answer, imported: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    imported("ranked_out")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
    monkeypatch.setenv("MEMTRACE_REPLAY_URL", url)
    result = run(*REPLAY)
    assert result.exit_code == 3
    assert url in result.stderr
    (verdict,) = ask("verdicts")
    assert (verdict["error_type"], verdict["replay"]) == ("ranked_out", None)


def test_without_an_endpoint_it_says_what_to_set(run: Run, imported: Callable[[str], Any]) -> None:
    imported("ranked_out")
    result = run("attribute", "--replay", "--format", "json")
    assert result.exit_code == 0
    (verdict,) = json.loads(result.stdout)
    assert verdict["replay"]["result"] == "partly"
    assert "MEMTRACE_REPLAY_URL" in result.stderr


@pytest.mark.parametrize(
    "options", [("--runs", "3"), ("--replay-model", "m"), ("--replay", "--runs", "0")]
)
def test_options_of_a_replay_without_sense_are_wrong_use(
    run: Run, options: tuple[str, ...]
) -> None:
    assert run("attribute", *options).exit_code == 2


def test_the_owner_replays_for_a_command_and_keeps_its_key_to_its_own_endpoint(
    run: Run, ask: Answer, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OpenAIStub(reader()) as stub, OpenAIStub(reader()) as other:
        up = start_up(store, MEMTRACE_REPLAY_URL=stub.base_url)
        try:
            up.post((VECTORS / "ranked_out.otlp.json").read_bytes()).raise_for_status()
            eventually(lambda: up.ask("/graphs") != [], "the graph is projected")
            monkeypatch.setenv("MEMTRACE_REPLAY_URL", other.base_url)
            (verdict,) = ask(*REPLAY, "--runs", "1")
            assert verdict["replay"]["result"] == "confirmed"
            assert (len(stub.chat_requests), len(other.chat_requests)) == (2, 0)
            for replay in ({"runs": 99}, {"runs": "3"}, [], {"model": 5}):
                refused = httpx.post(
                    f"{up.addresses['api']}/api/v1/attribute", json={"replay": replay}, timeout=20
                )
                assert refused.status_code == 400, refused.text
        finally:
            assert up.stop() == 0


def test_the_worker_replays_in_the_background_where_configured(store: Path) -> None:
    with OpenAIStub(reader()) as stub:
        more = {"MEMTRACE_REPLAY": "true", "MEMTRACE_REPLAY_RUNS": "1"}
        more |= {"MEMTRACE_REPLAY_MODEL": "m", "MEMTRACE_REPLAY_URL": stub.base_url}
        up = start_up(store, **more)
        try:
            up.post((VECTORS / "ranked_out.otlp.json").read_bytes()).raise_for_status()
            eventually(lambda: bool(up.ask("/verdicts")), "the verdict is stored")
            (verdict,) = up.ask("/verdicts")
            assert verdict["replay"]["result"] == "confirmed"
            assert verdict["revision"] == 1
        finally:
            assert up.stop() == 0
    assert len(stub.chat_requests) == 2
