from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from memtrace_collector import errors
from memtrace_collector.cli import COMMANDS, CommandGroup, cli
from tests.memtrace_collector.running import environment

DESIGNED = [
    "up",
    "process",
    "work",
    "serve",
    "import",
    "graphs",
    "graph",
    "history",
    "flag",
    "attribute",
    "verdicts",
    "judge",
    "why",
    "impact",
    "case",
    "invariants",
    "mcp",
    "demo",
    "bench",
    "erase",
    "rebuild",
    "canary",
    "doctor",
]
LOG = {"process": ("--log", "unused"), "serve": ("--log", "unused")}
POSTGRES = "memtrace_collector.store.postgres"
PRINTS_NO_RESULTS = ("process", "work", "serve", "mcp", "demo", "bench")
"""``bench`` is a group: its commands are tested with it."""
PRINTS_RESULTS = [name for name in DESIGNED if name not in PRINTS_NO_RESULTS]


def test_the_commands_are_those_of_the_design() -> None:
    assert list(COMMANDS) == DESIGNED


@pytest.mark.parametrize("name", DESIGNED)
def test_help_of_every_command_shows_an_example(name: str) -> None:
    result = CliRunner().invoke(cli, [name, "--help"])
    assert result.exit_code == 0, result.output
    assert f"Example:\n    memtrace-otel {name}" in result.output


@pytest.mark.parametrize("name", PRINTS_RESULTS)
def test_every_command_that_prints_results_has_json(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    formats = [option.type for option in command.params if option.name == "output_format"]
    assert isinstance(formats[0], click.Choice)
    assert "json" in formats[0].choices


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.WrongUseError, 2),
        (errors.ConfigError, 2),
        (errors.NotFoundError, 2),
        (errors.NotInThisVersionError, 2),
        (errors.UnreachableError, 3),
        (errors.StoreInUseError, 3),
        (errors.DamagedError, 4),
    ],
)
def test_an_error_becomes_its_exit_code_and_one_line(
    error: type[errors.MemtraceError], code: int
) -> None:
    group = CommandGroup("test")

    @group.command()
    def fail() -> None:
        raise error("what went wrong")

    result = CliRunner().invoke(group, ["fail"])
    assert result.exit_code == code
    assert result.stderr == "Error: what went wrong\n"


@pytest.mark.parametrize("name", ["graphs", "process", "work", "serve", "attribute", "up"])
def test_a_store_of_an_unknown_kind_is_refused_clearly(name: str) -> None:
    result = CliRunner().invoke(cli, [name, "--store", "mysql://db/memtrace", *LOG.get(name, ())])
    assert result.exit_code == 2
    assert "version" in result.stderr


def test_up_needs_a_folder() -> None:
    result = CliRunner().invoke(cli, ["up", "--store", "postgresql://db/memtrace"])
    assert result.exit_code == 2
    assert "memtrace-otel process" in result.stderr


@pytest.mark.parametrize("name", ["process", "work", "serve"])
def test_parts_of_up_need_a_shared_store(name: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, [name, "--store", str(tmp_path), *LOG.get(name, ())])
    assert result.exit_code == 2
    assert "postgresql://" in result.stderr


@pytest.mark.parametrize("name", ["graphs", "process", "work", "serve", "verdicts"])
def test_a_database_that_does_not_answer_is_unreachable(name: str, tmp_path: Path) -> None:
    url = f"postgresql://nobody@/nothing?host={tmp_path}"
    log = ("--log", str(tmp_path / "log")) if name in LOG else ()
    result = CliRunner().invoke(cli, [name, "--store", url, *log])
    assert result.exit_code == 3, result.stderr


def test_without_its_driver_a_database_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for name in [name for name in sys.modules if name.startswith(POSTGRES)]:
        monkeypatch.delitem(sys.modules, name)
    result = CliRunner().invoke(cli, ["graphs", "--store", "postgresql://db/memtrace"])
    assert result.exit_code == 2
    assert 'pip install "memtrace-otel[postgres]"' in result.stderr


@pytest.mark.parametrize("method", ["auto", "model", "agent"])
def test_a_method_that_asks_a_model_needs_one(tmp_path: Path, method: str) -> None:
    result = CliRunner().invoke(cli, ["attribute", "--store", str(tmp_path), "--method", method])
    assert result.exit_code == 2
    assert "--model" in result.stderr


def test_without_the_collector_extra_the_script_says_what_to_install() -> None:
    program = "import sys; sys.modules['click'] = None; from memtrace_collector.__main__ import *"
    result = subprocess.run(
        [sys.executable, "-c", f"{program}; main()"],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert result.returncode == 2
    assert 'pip install "memtrace-otel[collector]"' in result.stderr
    assert "Traceback" not in result.stderr
