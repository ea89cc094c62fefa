"""`attribute --method agent` from the command line to a stored verdict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.instrumentors.openai_stub import OpenAIStub
from tests.memtrace_collector.attribution.agent.test_agent import explorer

Run = Callable[..., Any]


def test_the_agents_verdict_is_stored_with_what_it_asked(
    ask: Run, imported: Callable[[str], Any], monkeypatch: Any
) -> None:
    expected = imported("overwritten")
    with OpenAIStub(explorer) as stub:
        options = ("--method", "agent", "--model", "stub-model", "--base-url", stub.base_url)
        (verdict,) = ask("attribute", *options)
    assert (verdict["method"], verdict["basis"]) == ("agent", ["model"])
    assert [
        {key: each[key] for key in ("traceId", "spanId")} for each in verdict["decisive"]
    ] == expected["verdict"]["decisive"]
    assert verdict["model"]["calls"] == 4
    (stored,) = ask("verdicts")
    assert stored["id"] == verdict["id"]


def test_an_endpoint_that_is_not_there_ends_with_3_and_leaves_the_verdict_to_the_rules(
    ask: Run, run: Run, imported: Callable[[str], Any]
) -> None:
    imported("overwritten")
    (by_rules,) = ask("attribute")
    result = run(
        "attribute", "--method", "agent", "--model", "m", "--base-url", "http://127.0.0.1:9/v1"
    )
    assert result.exit_code == 3
    assert "could not be asked" in result.stderr
    (kept,) = ask("verdicts")
    assert (kept["method"], kept["decisive"]) == ("rules", by_rules["decisive"])
