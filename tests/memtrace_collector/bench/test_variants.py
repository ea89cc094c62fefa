"""What a variant does to the recorded spans, and what it must leave alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from memtrace_collector.bench import variants
from memtrace_collector.bench.judging import facts_path, log_folder, project
from memtrace_collector.bench.variants import RecordedSpan, Variant
from memtrace_collector.graph.facts import Flag
from memtrace_collector.store.in_memory import InMemoryFactStore
from memtrace_collector.store.sqlite_facts import SqliteFactStore
from tests.memtrace_collector.bench import recorded


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = recorded.make(tmp_path_factory.mktemp("run"), recorded.PLAIN[:40])
    (unit,) = folder.units()
    return log_folder(unit)


def spans(log: Path) -> list[RecordedSpan]:
    return list(variants.recorded_spans(log))


def store_of(variant: Variant, log: Path) -> InMemoryFactStore:
    store = InMemoryFactStore()
    variants.fill(store, variants.damaged(variant, spans(log)))
    return store


def hashes(store: InMemoryFactStore) -> dict[str, str]:
    return {each.graph_id: store.graph_hash(each.graph_id) for each in store.graphs()}


def keys(requests: Iterable[Any]) -> Counter[str]:
    return Counter(
        span.span_id.hex()
        for request in requests
        for group in request.resource_spans
        for scope in group.scope_spans
        for span in scope.spans
    )


def test_shuffled_and_repeated_spans_give_graphs_of_the_same_hashes(log: Path) -> None:
    shuffled = store_of(variants.SHUFFLED, log)
    assert len(hashes(shuffled)) == 40
    assert hashes(shuffled) == hashes(store_of(variants.GIVEN, log))


def test_shuffling_changes_the_order_and_the_requests_and_repeats_some(log: Path) -> None:
    before = list(variants.damaged(variants.GIVEN, spans(log)))
    after = list(variants.damaged(variants.SHUFFLED, spans(log)))
    assert set(keys(after)) == set(keys(before))
    repeated = sum(count > 1 for count in keys(after).values()) / len(keys(before))
    assert 0.1 < repeated < 0.3
    assert list(keys(after)) != list(keys(before))
    assert len({len(list(keys([request]))) for request in after}) > 5


@pytest.mark.parametrize("variant", variants.LOSSY, ids=lambda variant: f"seed {variant.seed}")
def test_lossy_loses_about_five_percent_of_the_spans(log: Path, variant: Variant) -> None:
    many = spans(log) * 8
    left = sum(keys(variants.damaged(variant, many)).values())
    assert 0.03 < 1 - left / len(many) < 0.07


def test_seeds_lose_different_spans_and_each_seed_the_same(log: Path) -> None:
    one, two = (keys(variants.damaged(v, spans(log))) for v in variants.LOSSY[:2])
    assert one != two
    assert one == keys(variants.damaged(variants.LOSSY[0], spans(log)))


def test_flagged_answers_are_never_lost(log: Path) -> None:
    every = frozenset(each.key for each in spans(log))
    left = keys(variants.damaged(variants.LOSSY[0], spans(log), every))
    assert sum(left.values()) == len(spans(log))


def test_without_content_no_value_is_left_and_the_operations_stay(log: Path) -> None:
    given, bare = store_of(variants.GIVEN, log), store_of(variants.NO_CONTENT, log)
    assert any(_values(given, graph_id) for graph_id in hashes(given))
    assert not any(_values(bare, graph_id) for graph_id in hashes(given))
    for summary in given.graphs():
        before = [o.outputs for o in given.all_operations(summary.graph_id)]
        assert [o.outputs for o in bare.all_operations(summary.graph_id)] == before


def test_the_recorded_spans_are_not_changed_by_stripping_them(log: Path) -> None:
    found = spans(log)
    before = [each.span.SerializeToString() for each in found]
    list(variants.damaged(variants.NO_CONTENT, found))
    assert [each.span.SerializeToString() for each in found] == before


def test_what_the_flag_says_follows_the_variant() -> None:
    flag = Flag(expected="Oslo", evidence=("msg:m1@?",), source="evaluator")
    assert variants.flag_in(variants.GIVEN, flag) == flag
    found = variants.flag_in(variants.FOUND, flag)
    assert found.evidence == () and found.expected == "Oslo"
    unhappy = variants.flag_in(variants.NO_EXPECTED, flag)
    assert unhappy.evidence == () and unhappy.expected is None and unhappy.source == "user"


def test_a_wrong_reference_is_no_case_where_none_is_given() -> None:
    assert not variants.applies(variants.NO_EXPECTED, {"bad_reference"})
    assert variants.applies(variants.FOUND, {"bad_reference"})
    assert variants.applies(variants.NO_EXPECTED, {"bad_judge"})


def test_a_built_store_holds_what_the_recorded_one_holds(log: Path, tmp_path: Path) -> None:
    (unit,) = recorded.RunFolder(log.parents[2]).units()
    project(unit)
    variants.build(variants.SHUFFLED, log, tmp_path / "facts.db")
    built, plain = SqliteFactStore(tmp_path / "facts.db"), SqliteFactStore(facts_path(unit))
    try:
        for summary in plain.graphs():
            assert built.graph_hash(summary.graph_id) == plain.graph_hash(summary.graph_id)
    finally:
        built.close()
        plain.close()


def _values(store: InMemoryFactStore, graph_id: str) -> int:
    refs = [ref for o in store.all_operations(graph_id) for ref in (*o.inputs, *o.outputs)]
    return len(store.values(graph_id, refs))
