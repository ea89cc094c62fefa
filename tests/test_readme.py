"""The README promises nothing that the code does not have, and leaves out nothing it has."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from memtrace_collector import config
from memtrace_collector.access.directory import read_directory
from memtrace_collector.cli import cli
from memtrace_collector.telemetry.catalog import METRICS
from memtrace_otel import environment_variables, semconv
from tests.integration.test_jaeger_page import SEARCHES

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()
CODE_BLOCKS = re.findall(r"```(?:console|sh|bash)\n(.*?)```", README, re.S)
COMMAND_LINES = [
    line.removeprefix("$ ").strip()
    for block in CODE_BLOCKS
    for line in block.splitlines()
    if line.removeprefix("$ ").startswith(("memtrace-otel ", "make ", "python -m memtrace"))
]


def table(heading: str) -> list[list[str]]:
    """The rows of the first table below a heading, cells without back-quotes."""
    section = README.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    return [
        [cell.strip().replace("`", "") for cell in row.strip("|").split("|")] for row in rows[2:]
    ]


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_every_command_line_in_the_readme_parses(line: str) -> None:
    """Each option and sub-command shown exists."""
    program, *words = shlex.split(line, comments=True)
    if program == "make":
        assert re.search(rf"^{re.escape(words[0])}:", MAKEFILE, re.M), words
        return
    command = cli.get_command(click.Context(cli), words[0])
    assert command is not None, words[0]
    if isinstance(command, click.Group):
        command = command.get_command(click.Context(command), words[1])
        assert command is not None, words[1]
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word.split("=")[0] for word in words if word.startswith("--")} <= known


def test_the_command_table_is_complete() -> None:
    """Every command of the program has its row, and no row is invented."""
    named = {row[0].split()[0] for row in table("Commands")}
    assert named == set(cli.list_commands(click.Context(cli)))


def test_the_attribute_table_is_complete() -> None:
    """Every memtrace attribute in semconv is explained, and no other."""
    prefixes = ("SPAN_", "BAGGAGE_", "LINK_", "STEP_")
    attributes = {
        value
        for name, value in vars(semconv).items()
        if isinstance(value, str) and name.startswith("MEMTRACE_") and not name.startswith(prefixes)
    }
    documented = {row[0] for row in table("Attributes")}
    assert documented == attributes | {semconv.LINK_RELATION}


def test_the_lineage_key_table_is_complete() -> None:
    """Every key of memtrace.lineage is explained."""
    lines = (Path(semconv.__file__).read_text()).split("# Keys of memtrace.lineage\n")[1]
    block = lines.split("\n\n")[0]
    keys = {
        value
        for name, value in vars(semconv).items()
        if re.search(rf"^{name} = ", block, re.M) and name != "KEY_PLAIN"
    }
    assert {row[0] for row in table("Lineage keys")} == keys


def test_the_settings_table_is_complete() -> None:
    """Every setting of the server side is documented with its variable."""
    documented = {(row[0], row[1]) for row in table("Settings of `up`")}
    assert documented == {(setting.path, setting.variable) for setting in config.SETTINGS}


def test_the_environment_table_is_complete() -> None:
    """Every environment variable the package reads is documented."""
    variables = {
        value
        for name, value in vars(environment_variables).items()
        if name.isupper() and isinstance(value, str)
    }
    documented = {row[0] for row in table("Environment variables")}
    assert variables <= documented


def test_the_metrics_table_is_the_catalogue() -> None:
    """Every metric of ours with its unit, its attributes and its meaning, in their order."""
    told = [
        [
            metric.name,
            f"{metric.kind}{', fleet' if metric.teller == 'fleet' else ''}, {metric.unit}",
            ", ".join(metric.attributes) or "–",
            metric.description,
        ]
        for metric in METRICS.values()
    ]
    assert table("Metrics") == told


def test_the_file_of_tokens_is_one(tmp_path: Path) -> None:
    """What is shown as a file of tokens can be read as one."""
    path = tmp_path / "tokens.yaml"
    path.write_text(README.split("```yaml\n", 1)[1].split("```", 1)[0])
    path.chmod(0o600)
    assert read_directory(path).tenants() == {"acme", "globex"}


def test_every_picture_and_file_that_is_linked_exists() -> None:
    linked = re.findall(r"\]\(([^)#:]+)\)", README)
    assert "dashboards/screenshots/failure.png" in linked
    assert [path for path in linked if not (ROOT / path).exists()] == []


def test_the_searches_of_jaeger_are_those_that_are_tested() -> None:
    section = README.split("### Jaeger\n", 1)[1].split("\n### ", 1)[0]
    shown = re.findall(r"\| `(memtrace[a-z._]+)=([^`]+)` \|", section)
    assert shown[-1][0] == semconv.MEMTRACE_GRAPH_ID
    assert shown[:-1] == list(SEARCHES.values())


def test_the_number_of_alerts_is_the_one_told() -> None:
    rules = (ROOT / "dashboards" / "prometheus" / "alerts.yml").read_text()
    assert f"holds {rules.count('alert: ')} alerts" in README
