"""The table of OTLP's rules and of faults: which tests show each, and how they ended.

    python -m tests.conformance          # runs the marked tests, writes tests/CONFORMANCE.md
    python -m tests.conformance --list   # only says which ids have no test

Tests say what they show by ``@pytest.mark.otlp_rule("C9")`` and ``@pytest.mark.fault("F16")``.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conformance_ids import FAULTS, NOT_TESTED, RULES

TESTS = Path(__file__).parent
TABLE = TESTS / "CONFORMANCE.md"
_MARKS = ("otlp_rule", "fault")
_ROW = re.compile(r"^\| ([CF]\d+) \|")
_NAMED = re.compile(r"`([\w/.]+::\w+)`")


class Marked(NamedTuple):
    """A test function and the ids that it is marked with. ``test``: FILE::FUNCTION."""

    test: str
    ids: tuple[str, ...]


def marked_tests(folder: Path = TESTS) -> list[Marked]:
    """Every marked test, read from the sources: nothing is imported.

    Raises:
        ValueError: a mark's arguments are not plain texts.
    """
    found = []
    for path in sorted(folder.rglob("test_*.py")):
        name = path.relative_to(folder).as_posix()
        tree = ast.parse(path.read_text("utf-8"))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                ids = tuple(_ids(node))
                if ids:
                    found.append(Marked(f"{name}::{node.name}", ids))
    return found


def _ids(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    for decorator in function.decorator_list:
        match decorator:
            case ast.Call(func=ast.Attribute(attr=mark), args=arguments) if mark in _MARKS:
                for argument in arguments:
                    value = ast.literal_eval(argument)
                    if not isinstance(value, str):
                        raise ValueError(f"{function.name}: {mark}({value!r})")
                    yield value


def by_id(tests: list[Marked]) -> dict[str, list[str]]:
    """Tests by what they show."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for test, ids in tests:
        for one in ids:
            found[one].append(test)
    return dict(found)


def tests_in_table(text: str) -> dict[str, list[str]]:
    """What :func:`table` wrote: the tests that each id names."""
    rows = [line for line in text.splitlines() if _ROW.match(line)]
    named = {row.split(" ")[1]: _NAMED.findall(row) for row in rows}
    return {one: tests for one, tests in named.items() if tests}


def table(shown: Mapping[str, list[str]], results: Mapping[str, str]) -> str:
    """The document."""
    parts = [
        "# What the tests show\n",
        "Written by `python -m tests.conformance`. Files are below `tests/`; a test with several "
        "parameters has passed when all of them have.\n",
    ]
    for title, texts in (("Rules of OTLP", RULES), ("Faults", FAULTS)):
        parts += [f"## {title}\n", "| id | what | tests | result |", "|---|---|---|---|"]
        for one, text in texts.items():
            tests = shown.get(one, [])
            names = "<br>".join(f"`{test}`" for test in tests) or NOT_TESTED.get(one, "none")
            parts.append(f"| {one} | {text} | {names} | {_result(tests, results)} |")
        parts.append("")
    return "\n".join(parts)


def _result(tests: list[str], results: Mapping[str, str]) -> str:
    ended = [results.get(test, "not run") for test in tests]
    for outcome in ("failed", "not run", "skipped"):
        if outcome in ended:
            return f"{ended.count(outcome)} of {len(ended)} {outcome}"
    return f"{len(ended)} passed" if ended else "–"


class _Results:
    """A pytest plugin that keeps the worst outcome of each test function."""

    _WORSE = ("passed", "skipped", "failed")

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = report.nodeid.partition("[")[0].removeprefix("tests/")
        before = self.outcomes.get(test, "passed")
        self.outcomes[test] = max(before, report.outcome, key=self._WORSE.index)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="run nothing, write nothing")
    options = parser.parse_args()
    marked = marked_tests()
    shown = by_id(marked)
    missing = [one for one in {**RULES, **FAULTS} if one not in shown and one not in NOT_TESTED]
    if options.list:
        print("without a test:", ", ".join(missing) or "none")
        return 1 if missing else 0
    results = _Results()
    names = [str(TESTS / test) for test, _ in marked]
    code = pytest.main(["-q", *names], plugins=[results])
    TABLE.write_text(table(shown, results.outcomes), "utf-8")
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
