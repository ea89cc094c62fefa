"""The receipt of an answer: what was considered, what became of it, and why."""

from __future__ import annotations

from memtrace_collector.graph import receipt
from memtrace_collector.graph.case import Case
from memtrace_collector.graph.loader import load_case
from tests.memtrace_collector.attribution.scripts import Script, three_candidates


def case_of(script: Script) -> Case:
    script.flag("Enzo")
    return load_case(script.store(), script.operations[-1], script.flags[-1])


def test_every_candidate_has_its_rank_and_fate() -> None:
    script, refs = three_candidates()
    (read,) = receipt.receipt(case_of(script))
    assert read.operation.step == "retrieve"
    assert [tuple(item) for item in read.candidates] == [
        (refs[0], 1, 0.9, receipt.INJECTED, "", True),
        (refs[1], 2, 0.5, receipt.NOT_INJECTED, "", False),
        (refs[2], 3, 0.4, receipt.CUT, "limit", False),
    ]
    assert [item.ref for item in read.of_record("mem:stub:3")] == [refs[2]]


def test_without_texts_nobody_knows_what_was_used() -> None:
    script, _ = three_candidates()
    script.values.clear()
    (read,) = receipt.receipt(case_of(script))
    assert [item.used for item in read.candidates] == [None, False, False]


def test_a_record_is_found_by_its_name_its_version_or_its_text() -> None:
    script, refs = three_candidates()
    case = case_of(script)
    assert receipt.matching_records(case, "mem:stub:3") == ["mem:stub:3"]
    assert receipt.matching_records(case, refs[2]) == ["mem:stub:3"]
    assert receipt.matching_records(case, "LIKES TEA") == ["mem:stub:2"]
    assert receipt.matching_records(case, "coffee") == []
