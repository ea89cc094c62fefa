"""The held-out scenarios: written from the decision table alone, sent in as OTLP.

A scenario changes neither by the order nor by repeats of its spans; and what is taken away from
it (a write, the contents) may make the verdict vaguer, never turn it against somebody else.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from functools import cache
from pathlib import Path

import pytest
from msgspec import structs

from memtrace_collector.attribution.attribute import attribute
from memtrace_collector.attribution.verdict import STAGE_OF, Verdict
from memtrace_collector.graph import flags
from memtrace_collector.graph.facts import SpanFacts
from memtrace_collector.graph.loader import load_case
from memtrace_collector.log.position import LogPosition
from memtrace_collector.store.in_memory import InMemoryFactStore
from memtrace_collector.store.sqlite_facts import SqliteFactStore
from tests.contract import scenarios
from tests.contract.held_out import (
    answered,
    crowded,
    edges,
    found,
    kept,
    mixed,
    shapes,
    stored,
    told,
    wording,
)
from tests.contract.held_out.registry import SCENARIOS
from tests.contract.held_out.story import Expected

MODULES = (told, stored, kept, found, answered, shapes, wording, edges, crowded, mixed)
NAMES = list(SCENARIOS)
WRITES = ("ingest", "extract", "decide", "create", "update", "delete", "consolidate")
MAX_EXPLANATION = 600
ONLY_BY_EVIDENCE = (
    "data_set_contradicts_its_evidence",
    "evidence_unknown_to_the_store",
    "told_under_another_account",
)
"""Without their evidence nothing that this answer could read was ever said."""


@cache
def told_facts(name: str) -> tuple[tuple[SpanFacts, ...], Expected]:
    story, expected = SCENARIOS[name].told()
    return tuple(scenarios.facts_of(story.otlp())), expected


def verdict_from(facts: Iterable[SpanFacts], *, evidence_given: bool = True) -> Verdict:
    store = InMemoryFactStore.of(facts)
    (flag,) = store.flags()
    answer = flags.resolve(store, flag)
    assert answer is not None
    return attribute(load_case(store, answer, flag, evidence_given=evidence_given))


@cache
def verdict_of(name: str) -> Verdict:
    return verdict_from(told_facts(name)[0])


@pytest.mark.parametrize("name", NAMES)
def test_scenario_gives_the_verdict_of_the_decision_table(name: str) -> None:
    _, expected = told_facts(name)
    verdict = verdict_of(name)
    said = f"{SCENARIOS[name].why}\nfound: {verdict.error_type}: {verdict.explanation}"
    assert verdict.error_type in expected.types, said
    if verdict.error_type != expected.types[0]:
        return
    if expected.decisive is not None:
        blamed = [(d.operation.trace_id, d.operation.span_id) for d in verdict.decisive]
        assert blamed == [step.id for step in expected.decisive], said
        kinds = (expected.types[0], *expected.then)
        assert all(d.error_type == kind for d, kind in zip(verdict.decisive, kinds)), said
    if expected.aspect:
        assert verdict.aspect == expected.aspect, said
    if expected.mechanism:
        assert verdict.mechanism == expected.mechanism, said
    assert set(expected.missing) <= set(verdict.missing), (verdict.missing, said)
    also = {(d.operation.trace_id, d.operation.span_id, d.error_type) for d in verdict.also}
    assert {(*step.id, kind) for step, kind in expected.also} <= also, (also, said)
    for name_of, value in (
        ("last_right", expected.last_right),
        ("first_wrong", expected.first_wrong),
    ):
        if value is not None:
            wanted = value if isinstance(value, str) else value.ref
            assert getattr(verdict.decisive[0], name_of) == wanted, said


@pytest.mark.parametrize("name", NAMES)
def test_scenario_shuffled_and_repeated_gives_the_same_verdict(name: str) -> None:
    facts = [*told_facts(name)[0], *told_facts(name)[0][::2]]
    random.Random(name).shuffle(facts)
    assert verdict_from(facts) == verdict_of(name)


@pytest.mark.parametrize("name", NAMES)
def test_scenario_without_one_write_is_never_blamed_on_something_else(name: str) -> None:
    facts, expected = told_facts(name)
    allowed = {STAGE_OF[kind] for kind in (*expected.types, *expected.then)} | {"unknown"}
    processes = Counter(each.operation.service for each in facts if each.operation)
    for number, lost in enumerate(facts):
        if lost.flags or lost.operation is None or lost.operation.step not in WRITES:
            continue
        if processes[lost.operation.service] == 1:
            continue  # of such a process nothing at all is known
        verdict = verdict_from(facts[:number] + facts[number + 1 :])
        assert verdict.stage in allowed, (lost.operation, verdict.explanation)


@pytest.mark.parametrize("name", NAMES)
def test_scenario_without_its_evidence_keeps_its_verdict(name: str) -> None:
    facts, expected = told_facts(name)
    verdict = verdict_from(facts, evidence_given=False)
    allowed = (*expected.types, *(("never_told",) if name in ONLY_BY_EVIDENCE else ()))
    assert verdict.error_type in (*allowed, "insufficient_evidence"), verdict.explanation


@pytest.mark.parametrize("name", NAMES)
def test_scenario_without_contents_claims_structure_only(name: str) -> None:
    facts, expected = told_facts(name)
    verdict = verdict_from(structs.replace(each, values=()) for each in facts)
    allowed = {STAGE_OF[kind] for kind in expected.types} | {"unknown"}
    assert verdict.stage in allowed, verdict.explanation
    assert verdict.stage == "unknown" or verdict.basis == ("structure",)


@pytest.mark.parametrize("name", NAMES)
def test_argument_of_a_scenario_is_short_names_its_operation_and_points_at_spans(
    name: str,
) -> None:
    facts, _ = told_facts(name)
    spans = {each.operation.key for each in facts if each.operation}
    verdict = verdict_of(name)
    assert verdict.explanation and len(verdict.explanation) <= MAX_EXPLANATION
    assert verdict.evidence or not verdict.decisive
    assert all(claim.says and claim.span in spans for claim in verdict.evidence)
    assert all(hop.operation is None or hop.operation in spans for hop in verdict.path)
    hops = {hop.operation for hop in verdict.path if hop.decisive}
    assert verdict.stage == "not_memory" or hops == {each.operation for each in verdict.decisive}
    names = {each.operation.key: each.operation.name for each in facts if each.operation}
    for decisive in verdict.decisive:
        assert names[decisive.operation] in verdict.explanation


def test_every_type_of_the_table_has_a_scenario() -> None:
    covered = {told_facts(name)[1].types[0] for name in NAMES}
    assert covered == set(STAGE_OF)


def test_all_scenarios_in_one_sqlite_store_give_the_same_verdicts(tmp_path: Path) -> None:
    with closing(SqliteFactStore(tmp_path / "facts.db")) as store:
        begin = LogPosition(1, 0)
        batch = [(begin, facts) for name in NAMES for facts in told_facts(name)[0]]
        store.apply(batch, LogPosition(1, 1))
        verdicts = {}
        for flag in store.flags():
            answer = flags.resolve(store, flag)
            assert answer is not None
            verdicts[answer.key] = attribute(load_case(store, answer, flag))
    assert verdicts == {verdict_of(name).answer: verdict_of(name) for name in NAMES}
