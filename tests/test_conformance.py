"""Every rule and fault has a test, and the committed table names the tests that there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import conformance
from tests.conformance_ids import FAULTS, NOT_TESTED, RULES


def test_every_rule_of_otlp_has_a_test() -> None:
    shown = conformance.by_id(conformance.marked_tests())
    assert list(RULES) == [f"C{number}" for number in range(1, 38)]
    assert [rule for rule in RULES if rule not in shown] == []


def test_every_fault_has_a_test_or_a_reason_and_not_both() -> None:
    shown = conformance.by_id(conformance.marked_tests())
    assert list(FAULTS) == [f"F{number}" for number in range(1, 41)]
    assert [fault for fault in FAULTS if (fault in shown) == (fault in NOT_TESTED)] == []


def test_tests_are_marked_with_ids_that_exist() -> None:
    shown = conformance.by_id(conformance.marked_tests())
    assert set(shown) <= {*RULES, *FAULTS}


def test_the_committed_table_names_the_tests_that_there_are() -> None:
    """When it does not: ``python -m tests.conformance`` writes it anew."""
    in_table = conformance.tests_in_table(conformance.TABLE.read_text("utf-8"))
    assert in_table == conformance.by_id(conformance.marked_tests())


def test_marks_are_read_from_the_sources(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(
        '@pytest.mark.otlp_rule("C1", "C2")\n@pytest.mark.fault("F1")\nasync def test_a(): ...\n'
        "def test_b(): ...\n"
    )
    marked = conformance.marked_tests(tmp_path)
    assert marked == [("test_one.py::test_a", ("C1", "C2", "F1"))]
    shown = conformance.by_id(marked)
    text = conformance.table(shown, {"test_one.py::test_a": "passed"})
    assert conformance.tests_in_table(text) == shown
    assert "| F2 |" in text
    assert "1 passed" in text
    (tmp_path / "test_two.py").write_text("@pytest.mark.fault(7)\ndef test_c(): ...\n")
    with pytest.raises(ValueError, match="test_c"):
        conformance.marked_tests(tmp_path)
