"""Promises about the code itself: size, empty package files, nothing private to one machine."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests import imports

MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 60
FILES = [*imports.files(imports.HOST), *imports.files(imports.COLLECTOR)]


def relative(path: Path) -> str:
    return str(path.relative_to(imports.ROOT))


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_modules_and_functions_stay_small(path: Path) -> None:
    source = path.read_text()
    assert len(source.splitlines()) < MAX_MODULE_LINES
    long = [
        f"{node.name}: {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 >= MAX_FUNCTION_LINES
    ]
    assert not long


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.name == "__init__.py"], ids=relative
)
def test_package_files_only_re_export(path: Path) -> None:
    body = ast.parse(path.read_text()).body
    others = [
        ast.unparse(node)[:80]
        for node in body
        if not isinstance(node, (ast.Import, ast.ImportFrom))
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        and not (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
    ]
    assert not others
