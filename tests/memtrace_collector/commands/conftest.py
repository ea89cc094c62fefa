from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from memtrace_collector.cli import cli
from tests.memtrace_collector.running import VECTORS

Run = Callable[..., Result]
Answer = Callable[..., Any]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that every command of the test uses."""
    folder = tmp_path / "store"
    monkeypatch.setenv("MEMTRACE_STORE", str(folder))
    return folder


@pytest.fixture
def run(store: Path) -> Run:
    """Run a command as typed."""
    return lambda *arguments: CliRunner().invoke(cli, [str(each) for each in arguments])


@pytest.fixture
def ask(run: Run) -> Answer:
    """Run a command that succeeds, and read its JSON."""

    def read(*arguments: object) -> Any:
        result = run(*arguments, "--format", "json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return read


@pytest.fixture
def imported(ask: Answer) -> Callable[[str], Any]:
    """Import a vector; what is expected of it."""

    def take(name: str) -> Any:
        ask("import", VECTORS / f"{name}.otlp.json")
        plain = name.removesuffix(".shuffled")
        return json.loads((VECTORS / f"{plain}.expected.json").read_text())

    return take
