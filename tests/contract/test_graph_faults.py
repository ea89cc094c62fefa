"""Faults of time, order, identity and shape, through store and walk: one answer whatever came."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator, Sequence

import pytest
from msgspec.structs import replace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Span

from memtrace_collector.dialects import registry
from memtrace_collector.graph import flags
from memtrace_collector.graph.ancestry import MAX_OPERATIONS, Ancestry, ancestry
from memtrace_collector.graph.closure import closure, processes_of
from memtrace_collector.graph.facts import DEFAULT_TENANT, Flag, Operation, OperationKey, SpanFacts
from memtrace_collector.graph.loader import load_case
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.log.position import LogPosition
from memtrace_collector.store.base import FactStore
from memtrace_collector.store.in_memory import InMemoryFactStore
from tests.contract import scenarios
from tests.contract.test_fact_stores import MAKERS
from tests.memtrace_collector.graph.build import GRAPH, SECOND, key, operation

DAY = 86_400
KEPT = [name for name in MAKERS if name != "in memory"]
"""Stores with an index: the other scans, which 10,000 levels would take minutes of."""


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Iterator[FactStore]:
    store = MAKERS[getattr(request, "param", "in memory")](request)
    yield store
    store.close()


every_store = pytest.mark.parametrize("store", MAKERS, indirect=True)
every_kept_store = pytest.mark.parametrize("store", KEPT, indirect=True)


def put(store: FactStore, *operations: Operation) -> None:
    at = LogPosition(1, 1)
    store.apply([(at, SpanFacts(tenant=o.tenant, operation=o)) for o in operations], at)


def walk(store: FactStore, answer: Operation) -> Ancestry:
    return ancestry(Lookups(store), answer)


def names(found: Ancestry) -> list[str]:
    return sorted(item.name for item in found.operations.values())


def remembered(owner: str) -> list[Operation]:
    """Said, written, changed and asked for, weeks apart; the answer is last."""

    def made(name: str, step: str, week: int, trace: str, **fields: object) -> Operation:
        at = 7 * DAY * week + len(name)
        return operation(f"{owner}{trace}/{name}", step, at, name=name, graph_id=owner, **fields)

    old, new = "mem:s:1@a", "mem:s:1@b"
    return [
        made("said", "ingest", 0, "w", outputs=["msg:1@a"], parent="write"),
        made("write", "create", 0, "w", inputs=["msg:1@a"], outputs=[old]),
        made("change", "update", 3, "c", inputs=[old], outputs=[new], supersedes=[old]),
        made(
            "search",
            "retrieve",
            6,
            "a",
            delivered=[new],
            parent="answer",
            sources={new: key(f"{owner}c/change")},
        ),
        made("answer", "answer", 6, "a", inputs=[new], outputs=["ans:a@1"]),
    ]


@pytest.mark.fault("F13")
@every_store
def test_weeks_of_one_memory_are_walked_the_same_in_every_order_of_arrival(
    store: FactStore,
) -> None:
    """Among the orders: child before parent, link before what it leads to, last week first."""
    expected = {"said", "write", "change", "search", "answer"}
    orders = random.Random(13).sample(list(itertools.permutations(range(5))), 30)
    for number, order in enumerate([(4, 3, 2, 1, 0), *orders]):
        operations = remembered(f"u{number:02}")
        for index in order:
            put(store, operations[index])
        found = walk(store, operations[-1])
        assert (set(names(found)), found.status) == (expected, "complete"), order


@pytest.mark.fault("F13")
@every_store
def test_a_walk_says_what_has_not_arrived_and_is_whole_once_it_has(store: FactStore) -> None:
    operations = remembered("u1")
    put(store, *operations[3:])
    found = walk(store, operations[-1])
    assert (found.status, found.missing) == ("incomplete", ("mem:s:1@b",))
    put(store, *operations[:3])
    found = walk(store, operations[-1])
    assert (found.status, found.missing, len(found.operations)) == ("complete", (), 5)


@pytest.mark.fault("F14")
@every_store
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (1, 0, 1, 2, 2)])
def test_of_several_contents_of_one_span_every_order_walks_the_last(
    store: FactStore, order: Sequence[int]
) -> None:
    said = [operation(f"m/{n}", "ingest", n, outputs=[f"msg:{n}@1"]) for n in range(3)]
    contents = [
        operation("w/w", "create", 9, took=n, inputs=[f"msg:{n}@1"], outputs=["mem:s:1@a"])
        for n in range(3)
    ]
    answer = operation("a/a", "answer", 20, inputs=["mem:s:1@a"], outputs=["ans:a@1"])
    put(store, *said, answer)
    for number in order:
        put(store, contents[number])
    found = walk(store, answer)
    assert set(found.operations) == {answer.key, contents[2].key, said[2].key}
    assert found.operations[contents[2].key] == contents[2]


@pytest.mark.fault("F14")
@every_store
def test_one_span_id_in_two_traces_means_two_operations(store: FactStore) -> None:
    one = operation("t1/same", "create", 1, outputs=["mem:s:1@a"])
    two = operation("t2/same", "create", 2, inputs=["mem:s:1@a"], outputs=["mem:s:2@a"])
    answer = operation("t3/same", "answer", 3, inputs=["mem:s:2@a"], outputs=["ans:a@1"])
    put(store, two, answer, one)
    found = walk(store, answer)
    assert set(found.operations) == {one.key, two.key, answer.key}
    assert (found.parents[answer.key], found.parents[two.key]) == ((two.key,), (one.key,))


@pytest.mark.fault("F14")
@every_store
def test_a_process_that_puts_everything_into_one_trace_is_walked(store: FactStore) -> None:
    """A turn reads what the one before wrote; all of it under one span that never ends."""
    turns = []
    for n in range(300):
        before, query = f"mem:s:{n}@a", f"query:{n}@1"
        turns += [
            operation(f"t/r{n}", "retrieve", 3 * n, inputs=[query], delivered=[before]),
            operation(
                f"t/w{n}", "create", 3 * n + 1, inputs=[before], outputs=[f"mem:s:{n + 1}@a"]
            ),
        ]
    first = operation("t/first", "create", -1, outputs=["mem:s:0@a"])
    put(store, *turns[::-1], first)
    found = walk(store, turns[-1])
    assert (len(found.operations), found.status) == (601, "complete")


def with_writers_at(start_ns: int, end_ns: int, shift_ns: int = 0) -> list[SpanFacts]:
    """A vector whose spans outside the answer's trace carry these times, or are shifted."""
    request = scenarios.request("clock_skew")
    answer = scenarios.expected("clock_skew")["answer"]["traceId"]
    for resource in request.resource_spans:
        for span in itertools.chain.from_iterable(s.spans for s in resource.scope_spans):
            if span.trace_id.hex() != answer and shift_ns:
                span.start_time_unix_nano += shift_ns
                span.end_time_unix_nano += shift_ns
            elif span.trace_id.hex() != answer:
                span.start_time_unix_nano, span.end_time_unix_nano = start_ns, end_ns
    return list(registry.read_request(DEFAULT_TENANT, request))


def ancestors_of_skewed(store: FactStore, facts: list[SpanFacts]) -> Ancestry:
    store.apply([(LogPosition(1, 1), item) for item in facts], LogPosition(1, 2))
    expected = scenarios.expected("clock_skew")
    (flag,) = store.flags()
    answer = flags.resolve(store, flag)
    assert answer is not None and answer.span_id == expected["answer"]["spanId"]
    assert load_case(store, answer, flag).lineage == expected["verdict"]["lineage"]
    return walk(store, answer)


@pytest.mark.fault("F15")
@every_store
@pytest.mark.parametrize(
    ("start_ns", "end_ns"),
    [
        (0, 0),
        (1, 0),
        (2**32 * 10**9, 2**32 * 10**9 + 1),
        (2**63 - 1, 2**63 - 1),
        (2**63, 2**64 - 1),
        (2**64 - 1, 1),
    ],
    ids=["1970", "end before start", "2106", "greatest", "past 2**63", "wrapped"],
)
def test_any_time_that_otlp_can_carry_is_stored_and_walked(
    store: FactStore, start_ns: int, end_ns: int
) -> None:
    """Who alone made a version made it, whatever its clock said."""
    found = ancestors_of_skewed(store, with_writers_at(start_ns, end_ns))
    for span in scenarios.expected("clock_skew")["ancestry_contains"]:
        assert OperationKey(span["traceId"], span["spanId"]) in found.operations
    assert found.status == "complete"


@pytest.mark.fault("F15")
@every_store
@pytest.mark.parametrize("days", [-1, 1])
def test_a_day_of_skew_changes_no_ancestor(store: FactStore, days: int) -> None:
    skewed = ancestors_of_skewed(store, with_writers_at(0, 0, days * DAY * SECOND))
    plain = InMemoryFactStore.of(scenarios.facts("clock_skew"))
    answer = next(iter(skewed.operations))
    expected = walk(plain, plain.operations("user:clock_skew", [answer])[answer])
    assert skewed.operations.keys() == expected.operations.keys()
    assert (skewed.status, skewed.missing) == (expected.status, expected.missing)


@pytest.mark.fault("F26")
@every_store
def test_circles_and_operations_that_use_what_they_made_end(store: FactStore) -> None:
    links = [
        operation(f"c{n}/c", "assemble", n, inputs=[f"ctx:{(n + 1) % 3}@1"], outputs=[f"ctx:{n}@1"])
        for n in range(3)
    ]
    own = operation("s/s", "update", 9, inputs=["mem:s:1@a"], outputs=["mem:s:1@a"])
    named = replace(own, span_id="ab" * 8, sources={"mem:s:1@a": key("s/s")})
    itself = operation("i/i", "answer", 9, inputs=["ans:i@1"], outputs=["ans:i@1"])
    itself = replace(itself, sources={"ans:i@1": itself.key})
    put(store, *links, own, named, itself)
    assert set(walk(store, links[0]).operations) == {item.key for item in links}
    assert walk(store, own).operations.keys() == {own.key, named.key}
    assert walk(store, itself).operations.keys() == {itself.key}
    looped = replace(own, trace_id="cd" * 16, span_id="cd" * 8, parent_span_id="cd" * 8)
    put(store, looped)
    assert looped.key in walk(store, looped).operations


@pytest.mark.fault("F26")
@every_store
def test_an_answer_from_a_hundred_thousand_versions_is_walked(store: FactStore) -> None:
    """A summary of everything ever said: one operation, 100,000 inputs of 500 writers."""
    writers = [
        operation(f"w{n}/w", "ingest", n, outputs=[f"msg:{n}/{m}@1" for m in range(200)])
        for n in range(500)
    ]
    everything = [ref for writer in writers for ref in writer.outputs]
    answer = operation("a/a", "answer", 900, inputs=everything, outputs=["ans:a@1"])
    put(store, answer, *writers)
    found = walk(store, answer)
    assert (len(found.operations), found.status, found.truncated) == (501, "complete", False)


@pytest.mark.fault("F26")
@every_store
def test_a_version_that_thousands_made_leads_to_those_the_rules_leave(store: FactStore) -> None:
    makers = [operation(f"w{n}/w", "extract", n, outputs=["fact:same@1"]) for n in range(3_000)]
    user = operation("a/a", "answer", 2_000.5, inputs=["fact:same@1"], outputs=["ans:a@1"])
    put(store, user, *makers)
    assert set(walk(store, user).operations) == {user.key, makers[2_000].key}


@pytest.mark.fault("F26")
@every_kept_store
def test_a_chain_of_ten_thousand_is_walked_to_its_end(store: FactStore) -> None:
    chain = [
        operation(f"c{n}/c", "update", n, inputs=[f"mem:s:{n - 1}@1"], outputs=[f"mem:s:{n}@1"])
        for n in range(1, 10_001)
    ]
    first = operation("c0/c", "create", 0, outputs=["mem:s:0@1"])
    put(store, first, *chain)
    found = walk(store, chain[-1])
    assert (len(found.operations), found.status) == (10_001, "complete")
    cut = ancestry(Lookups(store), chain[-1], 100)
    assert cut.truncated and cut.status == "incomplete" and len(cut.operations) < MAX_OPERATIONS


@pytest.mark.fault("F26")
@every_store
def test_more_links_and_inputs_than_an_sdk_sends_are_all_kept(store: FactStore) -> None:
    """SDKs cut at 128 links unless told otherwise; others do not."""
    count = 300
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    writers = []
    for n in range(count):
        lineage = {"outputs": [f"mem:s:{n}@1"]}
        writers.append(add_span(scope, n, "create", lineage))
    lineage = {"inputs": [f"mem:s:{n}@1" for n in range(count)], "outputs": ["ans:a@1"]}
    answer = add_span(scope, count, "answer", lineage)
    for writer in writers:
        answer.links.add(trace_id=writer.trace_id, span_id=writer.span_id)
    facts = list(registry.read_request(DEFAULT_TENANT, request))
    store.apply([(LogPosition(1, 1), item) for item in facts], LogPosition(1, 2))
    (summary,) = store.graphs()
    assert summary.operations == count + 1
    (user,) = store.trace_operations(answer.trace_id.hex())
    assert len(walk(store, user).operations) == count + 1


@pytest.mark.fault("F26")
@every_store
def test_nothing_of_another_tenant_is_walked_to(store: FactStore) -> None:
    theirs = operation("w/w", "create", 1, outputs=["mem:s:1@a"], tenant="other")
    same_trace = operation("a/r", "retrieve", 2, delivered=["mem:s:1@a"], tenant="other")
    answer = operation(
        "a/a",
        "answer",
        3,
        inputs=["mem:s:1@a"],
        outputs=["ans:a@1"],
        sources={"mem:s:1@a": theirs.key},
    )
    put(store, theirs, same_trace, answer)
    found = walk(store, answer)
    assert set(found.operations) == {answer.key}
    assert (found.status, found.missing) == ("incomplete", ("mem:s:1@a",))


@pytest.mark.fault("F26")
@every_store
def test_a_graph_that_is_not_read_is_not_walked_to(store: FactStore) -> None:
    """Not even when a span names its producer there."""
    theirs = operation("w/w", "create", 1, outputs=["mem:s:1@a"], graph_id="user:eve")
    ref = "mem:s:1@a"
    blind = operation("a/a", "answer", 3, inputs=[ref], sources={ref: theirs.key})
    reading = operation("b/a", "answer", 3, inputs=[ref], reads=["user:eve"])
    put(store, theirs, blind, reading)
    assert set(walk(store, blind).operations) == {blind.key}
    assert set(walk(store, reading).operations) == {reading.key, theirs.key}


@pytest.mark.fault("F27")
@every_store
def test_a_path_that_retention_cut_says_so(store: FactStore) -> None:
    """Another owner's graph, which this answer was read from, was erased."""
    shared = operation("w/w", "create", 1, outputs=["mem:s:1@a"], graph_id="team:all")
    ref = "mem:s:1@a"
    answer = operation("a/a", "answer", 3, inputs=[ref], outputs=["ans:a@1"], reads=["team:all"])
    put(store, shared, answer)
    assert walk(store, answer).status == "complete"
    store.erase("team:all")
    found = walk(store, answer)
    assert set(found.operations) == {answer.key}
    assert (found.status, found.missing) == ("incomplete", (ref,))
    case = load_case(store, answer, Flag(trace_id=answer.trace_id, span_id=answer.span_id))
    assert case.lineage == "incomplete"


@pytest.mark.fault("F28")
@every_store
def test_a_sampled_away_ancestor_is_a_gap_until_its_span_comes(store: FactStore) -> None:
    said = operation("m/s", "ingest", 1, outputs=["msg:1@a"], seq=("p", 1))
    lost = operation("w/w", "create", 2, inputs=["msg:1@a"], outputs=["mem:s:1@a"], seq=("p", 2))
    answer = operation("a/a", "answer", 3, inputs=["mem:s:1@a"], outputs=["ans:a@1"], seq=("p", 3))
    put(store, said, answer)
    found = walk(store, answer)
    known = closure(store, processes_of(found.operations.values()))
    assert [(loss.process, loss.first, loss.last) for loss in known.losses] == [("p", 2, 2)]
    window = (said.start_ns, answer.end_ns, frozenset("p"))
    assert (found.status, known.absence(*window)) == ("incomplete", "broken")
    put(store, lost)
    found = walk(store, answer)
    known = closure(store, processes_of(found.operations.values()))
    assert known.losses == () and known.absence(*window) in ("assumed", "proven")
    assert (found.status, len(found.operations)) == ("complete", 3)


def add_span(scope: ScopeSpans, number: int, step: str, lineage: dict[str, list[str]]) -> Span:
    span = scope.spans.add(
        trace_id=(number + 1).to_bytes(16, "big"),
        span_id=(number + 1).to_bytes(8, "big"),
        name=step,
        start_time_unix_nano=number * SECOND,
        end_time_unix_nano=number * SECOND + 1,
    )
    for name, value in (
        ("memtrace.step", step),
        ("memtrace.graph.id", GRAPH),
        ("memtrace.lineage", json.dumps(lineage)),
    ):
        span.attributes.add(key=name).value.string_value = value
    span.attributes.add(key="memtrace.schema.version").value.int_value = 1
    return span
