from __future__ import annotations

from memtrace_collector.graph.facts import OperationKey
from memtrace_collector.graph.sources import Role, Source
from memtrace_collector.processor.links import Link, missing_links, relation

HERE = OperationKey("a" * 32, "b" * 16)
PARENT = OperationKey("a" * 32, "c" * 16)


def other(number: int) -> OperationKey:
    return OperationKey("d" * 32, f"{number:016x}")


def add(present: list[OperationKey], sources: list[Source]) -> list[Link]:
    return missing_links(HERE, PARENT, "answer", present, sources)


def test_a_span_has_at_most_eight_lineage_links_with_the_host_s_own() -> None:
    sources = [Source(other(number), Role.SOURCE) for number in range(20)]
    assert len(add([], sources)) == 8
    assert len(add([other(100), other(101)], sources)) == 6
    assert add([other(number) for number in range(100, 120)], sources) == []


def test_the_most_telling_sources_come_first() -> None:
    sources = [Source(other(number), Role.SOURCE) for number in range(20)]
    assert [link.target for link in add([], sources)] == [other(number) for number in range(8)]


def test_no_link_to_the_direct_parent_to_itself_or_twice() -> None:
    sources = [
        Source(target, Role.SOURCE) for target in (PARENT, HERE, other(1), other(1), other(2))
    ]
    assert [link.target for link in add([other(2)], sources)] == [other(1)]


def test_the_relation_tells_what_the_step_did() -> None:
    assert relation("answer", Role.SOURCE) == "answered_with"
    assert relation("retrieve", Role.SOURCE) == "retrieved_from"
    assert relation("extract", Role.SOURCE) == "extracted_from"
    assert relation("consolidate", Role.SOURCE) == "derived_from"
    assert relation("update", Role.DECIDER) == "decided_by"
    assert relation("update", Role.PREDECESSOR) == "supersedes"
