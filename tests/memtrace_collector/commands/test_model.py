"""`attribute --method auto` and `model`: a model asked over HTTP, by the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.instrumentors.openai_stub import OpenAIStub
from tests.memtrace_collector.attribution.model.cases import EXPECTED, ranked_out_paraphrase
from tests.memtrace_collector.attribution.model.prompts import HonestModel

CARRIES = HonestModel({"mother and father": EXPECTED})


@pytest.fixture
def flagged(tmp_path: Path, ask: Any) -> None:
    """The store holds one flagged answer that the rules leave open."""
    file = tmp_path / "case.otlp.json"
    file.write_text(json.dumps(ranked_out_paraphrase().otlp()))
    ask("import", file)


@pytest.mark.usefixtures("flagged")
def test_auto_asks_the_model_named_on_the_command_line(
    ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMTRACE_MODEL_API_KEY", "secret")
    (rules,) = ask("attribute")
    assert rules["error_type"] == "insufficient_evidence"
    assert rules["model"] is None
    with OpenAIStub(CARRIES) as stub:
        options = ("--method", "auto", "--model", "small", "--base-url", stub.base_url)
        (verdict,) = ask("attribute", *options)
        asked = len(stub.chat_requests)
        assert {request["model"] for request in stub.chat_requests} == {"small"}
        (again,) = ask("attribute", *options)
        assert len(stub.chat_requests) == asked
    assert verdict["error_type"] == "ranked_out"
    assert verdict["method"] == "model"
    assert verdict["model"]["calls"] == len(verdict["model"]["asked"]) == asked
    assert again["revision"] == verdict["revision"] == rules["revision"] + 1
    assert "secret" not in json.dumps(verdict)


@pytest.mark.usefixtures("flagged")
@pytest.mark.parametrize(("method", "code"), [("auto", 0), ("model", 3)])
def test_an_unreachable_model_ends_with_3_only_when_it_was_demanded(
    run: Any, method: str, code: int
) -> None:
    with OpenAIStub(CARRIES) as stub:
        gone = stub.base_url
    options = ("--method", method, "--model", "small", "--base-url", gone)
    found = run("attribute", *options, "--format", "json")
    assert found.exit_code == code, found.output
    (verdict,) = json.loads(found.stdout)
    assert verdict["error_type"] == "insufficient_evidence"
    assert verdict["method"] == "rules"
    assert "By rules alone" in verdict["explanation"]


@pytest.mark.usefixtures("flagged")
def test_the_budget_of_the_run_is_an_option(ask: Any) -> None:
    with OpenAIStub(CARRIES) as stub:
        options = ("--model", "small", "--base-url", stub.base_url, "--run-calls", "1")
        (verdict,) = ask("attribute", "--method", "auto", *options)
        assert len(stub.chat_requests) == 1
    assert verdict["model"]["stopped"] == "run budget"


@pytest.mark.usefixtures("flagged")
def test_a_limit_in_money_needs_prices(run: Any) -> None:
    found = run("attribute", "--method", "auto", "--model", "small", "--run-cost", "1")
    assert found.exit_code == 2
    assert "model.prompt_price" in found.stderr
