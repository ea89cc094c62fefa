"""The public surface and what importing it costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import memtrace_otel
from memtrace_otel import environment_variables
from tests import imports


def test_all_is_complete_and_sorted() -> None:
    tree = ast.parse(Path(memtrace_otel.__file__).read_text())
    imported = [
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module != "__future__"
        for alias in node.names
    ]
    assert sorted(imported) == memtrace_otel.__all__
    assert all(hasattr(memtrace_otel, name) for name in memtrace_otel.__all__)


def test_everything_public_has_a_docstring() -> None:
    missing = [name for name in memtrace_otel.__all__ if not getattr(memtrace_otel, name).__doc__]
    assert not missing


@pytest.mark.parametrize("module", ["memtrace_otel", "memtrace_otel.instrumentors.mem0"])
def test_importing_loads_neither_sdk_nor_collector_nor_libraries(module: str) -> None:
    program = (
        f"import sys, {module}; print([name for name in sys.modules if name.startswith("
        "('opentelemetry.sdk', 'memtrace_collector', 'mem0', 'openai', 'networkx', 'google'))])"
    )
    outcome = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        text=True,
        cwd=imports.ROOT,
    )
    assert outcome.stdout.strip() == "[]"


def test_every_environment_variable_is_named_once_and_documented() -> None:
    tree = ast.parse(Path(environment_variables.__file__).read_text())
    names = []
    for statement, following in zip(tree.body, [*tree.body[1:], None]):
        if isinstance(statement, ast.Assign):
            name = ast.unparse(statement.targets[0])
            assert getattr(environment_variables, name) == name
            assert isinstance(following, ast.Expr), f"{name} has no docstring"
            names.append(name)
    for path in imports.files(imports.HOST):
        if path.name != "environment_variables.py":
            strings = {
                node.value
                for node in ast.walk(ast.parse(path.read_text()))
                if isinstance(node, ast.Constant) and isinstance(node.value, str)
            }
            assert not strings & set(names), path
