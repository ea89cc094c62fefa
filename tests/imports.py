"""The imports of the project's modules, read from their source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
HOST = ROOT / "memtrace_otel"
COLLECTOR = ROOT / "collector" / "memtrace_collector"


class Import(NamedTuple):
    """``module`` imports ``target``, both dotted; ``for_types``: under ``TYPE_CHECKING``."""

    module: str
    target: str
    line: int
    for_types: bool

    def __str__(self) -> str:
        return f"{self.module}:{self.line} imports {self.target}"


def files(package: Path) -> list[Path]:
    """Every module of a package."""
    return sorted(package.rglob("*.py"))


def module_name(path: Path) -> str:
    """Dotted name of a module of the project."""
    base = COLLECTOR.parent if COLLECTOR in path.parents else ROOT
    parts = path.relative_to(base).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def of(package: Path) -> Iterator[Import]:
    """All imports of a package, wherever they stand in a module."""
    for path in files(package):
        name = module_name(path)
        tree = ast.parse(path.read_text(), str(path))
        for_types = _for_types(tree)
        for node in ast.walk(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                for target in _targets(node):
                    yield Import(name, target, node.lineno, node in for_types)


def _for_types(tree: ast.Module) -> set[ast.AST]:
    return {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    }


def _targets(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    assert node.level == 0, f"relative import in line {node.lineno}"
    names = [f"{node.module}.{alias.name}" for alias in node.names]
    return [name if _is_module(name) else str(node.module) for name in names]


def _is_module(dotted: str) -> bool:
    relative = Path(*dotted.split("."))
    return any(
        (base / relative).with_suffix(".py").exists() or (base / relative).is_dir()
        for base in (ROOT, COLLECTOR.parent)
    )
