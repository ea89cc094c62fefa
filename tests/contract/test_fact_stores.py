"""One suite for every fact store: what :mod:`memtrace_collector.store.base` promises."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from msgspec import structs

from memtrace_collector.graph.facts import Dropped, Flag, Operation, Sequence, SpanFacts, Value
from memtrace_collector.graph.reader import Near
from memtrace_collector.log.position import START, LogPosition
from memtrace_collector.store.base import Applied, Change, ErasedFacts, FactStore
from memtrace_collector.store.in_memory import InMemoryFactStore
from memtrace_collector.store.postgres.facts import PostgresFactStore
from memtrace_collector.store.sqlite_facts import SqliteFactStore
from tests.memtrace_collector.graph.build import GRAPH, SECOND, facts, key, operation

MAKERS: dict[str, Callable[[pytest.FixtureRequest], FactStore]] = {
    "in memory": lambda request: InMemoryFactStore(),
    "sqlite": lambda request: SqliteFactStore(request.getfixturevalue("tmp_path") / "facts.db"),
    "postgresql": lambda request: PostgresFactStore(request.getfixturevalue("postgres_url")),
}
ADDED = operation("t1/create", "create", 1, inputs=["fact:f@1"], outputs=["mem:s:1@a"])
READ = operation(
    "t2/read",
    "retrieve",
    9,
    inputs=["query:q@1"],
    delivered=["mem:s:1@a"],
    scores=[0.5],
    dropped=[Dropped("mem:s:2@b", 0.1, "limit", 2)],
    conversation_id="conv-1",
    response_id="resp-1",
    limits={"k": 1},
)


@pytest.fixture(params=MAKERS)
def store(request: pytest.FixtureRequest) -> Iterator[FactStore]:
    store = MAKERS[request.param](request)
    yield store
    store.close()


def put(store: FactStore, *items: SpanFacts, at: int = 0) -> Applied:
    batch = [(LogPosition(1, at + number), item) for number, item in enumerate(items)]
    return store.apply(batch, LogPosition(1, at + len(items)))


def keys(operations: list[Operation]) -> list[str]:
    return [item.name for item in operations]


def test_an_empty_store_answers_everything_with_nothing(store: FactStore) -> None:
    assert store.graphs() == [] and store.flags() == [] and store.cursor() == START
    assert list(store.all_operations("none")) == [] and store.trace_operations("00" * 16) == []
    assert store.operations("none", [key("t/s")]) == {} and store.producers("none", ["a:b@c"]) == {}
    assert store.record_writers("none", ["a:b"]) == {} and store.users("none", ["a:b@c"]) == {}
    assert store.record_users("none", ["a:b"]) == {} and store.values("none", ["a:b@c"]) == {}
    assert store.search_values("none", "word") == [] and store.sequence(["p"]) == {}
    assert store.first_position([key("t/s")]) == {} and store.response_operations("") == []


def test_an_operation_comes_back_as_it_was(store: FactStore) -> None:
    put(store, *facts(ADDED, READ))
    assert store.operations(GRAPH, [READ.key, key("no/no")]) == {READ.key: READ}
    assert list(store.all_operations(GRAPH)) == [ADDED, READ]
    assert store.trace_operations(READ.trace_id) == [READ]
    assert store.response_operations("resp-1") == [READ]
    assert store.conversation_operations("conv-1") == [READ]
    (summary,) = store.graphs()
    assert summary == (GRAPH, 2, ADDED.start_ns, READ.end_ns)


def test_siblings_in_a_trace_are_named_in_whatever_graph_they_are(store: FactStore) -> None:
    elsewhere = operation("t1/other", "ingest", 2, graph_id="user:eve")
    again = operation("t1/again", "ingest", 3)
    put(store, *facts(ADDED, READ, elsewhere, again))
    many = [operation(f"m{n}/s", "ingest", n).key for n in range(300)]
    found = {elsewhere.key: "user:eve", again.key: GRAPH}
    assert store.trace_siblings([*many, ADDED.key, READ.key]) == found
    assert store.trace_siblings([again.key]) == {elsewhere.key: "user:eve", ADDED.key: GRAPH}
    assert store.trace_siblings([READ.key]) == store.trace_siblings([]) == {}
    assert (store.size(GRAPH), store.size("user:eve"), store.size("none")) == (3, 1, 0)


def test_lookups_lead_from_references_and_records_to_operations(store: FactStore) -> None:
    put(store, *facts(ADDED, READ))
    assert store.producers(GRAPH, ["mem:s:1@a", "mem:s:1@b"]) == {"mem:s:1@a": [ADDED]}
    assert store.record_writers(GRAPH, ["mem:s:1", "mem:s:2"]) == {"mem:s:1": [ADDED]}
    assert store.users(GRAPH, ["mem:s:1@a", "mem:s:2@b", "mem:s:2@x"]) == {
        "mem:s:1@a": [READ],
        "mem:s:2@b": [READ],
    }
    assert store.record_users(GRAPH, ["mem:s:2"]) == {"mem:s:2": [READ]}


def test_of_those_that_merely_met_a_record_only_the_nearest_are_found(store: FactStore) -> None:
    reads = [
        operation(
            f"r{n}/s", "retrieve", n, delivered=[f"mem:s:1@{n}"], dropped=[Dropped("mem:s:2@a")]
        )
        for n in range(1, 21)
    ]
    changed = operation("w/u", "update", 9, inputs=["fact:f@1"], supersedes=["mem:s:1@3"])
    saved = operation("c/c", "answer", 8, inputs=["mem:s:1@5"], outputs=["fact:f@1"])
    put(store, *facts(*reads, changed, saved))
    near = Near(reads[9].start_ns, first=1, before=2, after=3)
    found = store.record_users(GRAPH, ["mem:s:1", "mem:s:2", "mem:s:3"], near)
    expected = [reads[n - 1] for n in (1, 9, 10, 11, 12, 13)]
    assert found["mem:s:2"] == expected and sorted(found) == ["mem:s:1", "mem:s:2"]
    assert {item.key for item in found["mem:s:1"]} == {
        item.key for item in (*expected, changed, saved)
    }
    assert len(store.record_users(GRAPH, ["mem:s:1"])["mem:s:1"]) == 22
    assert len(store.users(GRAPH, ["mem:s:2@a"])["mem:s:2@a"]) == 20


def test_the_numbers_of_a_process_are_told_in_unbroken_runs(store: FactStore) -> None:
    seen = [1, 2, 3, 5, 8, 9]
    numbered = [operation(f"t/{n}", "ingest", n, seq=("p", n)) for n in seen]
    whole = [operation(f"q/{n}", "ingest", n, seq=("q", n)) for n in (4, 5, 6)]
    ends = [SpanFacts(farewell=Sequence(*at), farewell_ns=1) for at in (("p", 10), ("r", 2))]
    after = operation("r/3", "ingest", 3, seq=("r", 3))
    put(store, *facts(*numbered, *whole, after), *ends)
    found = {
        process: [(run.first.number, run.last.number, run.last.farewell) for run in runs]
        for process, runs in store.runs(["p", "q", "r", "none"]).items()
    }
    assert found == {
        "p": [(1, 3, False), (5, 5, False), (8, 10, True)],
        "q": [(4, 6, False)],
        "r": [(2, 2, True), (3, 3, False)],
    }
    first = store.runs(["q"])["q"][0].first
    assert (first.process, first.start_ns) == ("q", whole[0].start_ns)
    put(store, *facts(*(operation(f"q2/{n}", "ingest", n, seq=("q", n)) for n in (2, 7, 9))))
    later = [(run.first.number, run.last.number) for run in store.runs(["q"])["q"]]
    assert later == [(2, 2), (4, 7), (9, 9)]


def test_no_lookup_crosses_graphs(store: FactStore) -> None:
    other = structs.replace(ADDED, span_id="ab" * 8, graph_id="user:eve")
    put(store, *facts(ADDED, other))
    assert store.producers(GRAPH, ["mem:s:1@a"]) == {"mem:s:1@a": [ADDED]}
    assert store.operations(GRAPH, [other.key]) == {}
    assert [item.graph_id for item in store.graphs()] == [GRAPH, "user:eve"]


@pytest.mark.fault("F11")
def test_a_repeat_is_counted_and_changes_nothing(store: FactStore) -> None:
    assert put(store, *facts(ADDED)) == Applied((ADDED,), 0, 0)
    before = store.graph_hash(GRAPH)
    assert put(store, *facts(ADDED, ADDED)) == Applied((), 2, 0)
    assert store.graph_hash(GRAPH) == before
    assert store.graphs()[0].operations == 1


@pytest.mark.fault("F14")
@pytest.mark.parametrize("late_first", [True, False])
def test_of_two_contents_of_a_span_the_later_end_wins(store: FactStore, late_first: bool) -> None:
    late = structs.replace(
        ADDED, outputs=("mem:s:1@z",), end_ns=ADDED.end_ns + 5, digest="0", response_id="r"
    )
    first, second = (late, ADDED) if late_first else (ADDED, late)
    put(store, *facts(first))
    assert put(store, *facts(second)) == Applied((), 0, 1)
    assert list(store.all_operations(GRAPH)) == [late]
    assert store.producers(GRAPH, ["mem:s:1@a"]) == {}
    assert store.producers(GRAPH, ["mem:s:1@z"]) == {"mem:s:1@z": [late]}
    assert store.response_operations("r") == [late]
    assert store.graphs()[0] == (GRAPH, 1, ADDED.start_ns, late.end_ns)


@pytest.mark.fault("F14")
def test_of_two_contents_with_one_end_the_greater_digest_wins(store: FactStore) -> None:
    one, two = (structs.replace(ADDED, digest=digest) for digest in ("aa", "bb"))
    assert put(store, *facts(two, one)) == Applied((two,), 0, 1)
    assert list(store.all_operations(GRAPH)) == [two]


@pytest.mark.fault("F14")
def test_a_span_that_moves_to_another_graph_leaves_the_first(store: FactStore) -> None:
    moved = structs.replace(ADDED, graph_id="user:eve", end_ns=ADDED.end_ns + 1, digest="0")
    put(store, *facts(ADDED))
    put(store, *facts(moved))
    assert [item.graph_id for item in store.graphs()] == ["user:eve"]
    assert store.producers(GRAPH, ["mem:s:1@a"]) == {}


def test_the_first_position_in_the_log_is_kept_whatever_comes_first(store: FactStore) -> None:
    put(store, *facts(ADDED), at=70)
    put(store, *facts(ADDED), at=20)
    put(store, *facts(ADDED), at=90)
    assert store.first_position([ADDED.key]) == {ADDED.key: LogPosition(1, 20)}


def test_cursors_are_kept_by_name(store: FactStore) -> None:
    put(store, *facts(ADDED))
    store.set_cursor("forward", LogPosition(3, 4))
    assert store.cursor() == LogPosition(1, 2)
    assert store.cursor("forward") == LogPosition(3, 4)


def test_a_verified_value_beats_a_longer_and_an_uncut_beats_a_cut(store: FactStore) -> None:
    def value(text: str, **how: bool) -> SpanFacts:
        return SpanFacts(values=(Value(graph_id=GRAPH, ref="mem:s:1@a", content=text, **how),))

    put(store, value("a much longer text", cut=True), value("short"))
    assert store.values(GRAPH, ["mem:s:1@a"])["mem:s:1@a"].content == "short"
    put(store, value("tea", verified=True), value("a much longer text"))
    assert store.values(GRAPH, ["mem:s:1@a"])["mem:s:1@a"].content == "tea"
    assert store.search_values(GRAPH, "longer") == []
    assert [item.content for item in store.search_values(GRAPH, "tea")] == ["tea"]


def test_search_finds_words_in_any_case_accent_and_script(store: FactStore) -> None:
    texts = {
        "msg:1@a": "I moved to Lisbon in March",
        "msg:2@a": "Das Café in Köln",
        "msg:3@a": "わたしは東京都に住んでいます",
        "mem:s:4@a": "User lives in Lisbon",
        "ctx:5@a": "Lisbon, Lisbon, Lisbon",
    }
    put(store, *facts(ADDED, values=texts))
    put(store, *facts(structs.replace(ADDED, graph_id="user:eve"), values=texts))

    def found(text: str, *kinds: str) -> list[str]:
        return [item.ref for item in store.search_values(GRAPH, text, kinds)]

    assert found("LISBON march", "msg") == ["msg:1@a"]
    assert found("cafe koln") == ["msg:2@a"]
    assert found("東京") == ["msg:3@a"]
    assert set(found("lisbon", "msg", "mem")) == {"msg:1@a", "mem:s:4@a"}
    assert found("absent") == [] and found("") == [] and found('"OR" ( NEAR *') == []
    assert len(store.search_values(GRAPH, "lisbon", limit=1)) == 1


def test_a_value_made_of_texts_and_references_comes_back(store: FactStore) -> None:
    content: list[object] = ["Memories:\n", {"ref": "mem:s:1@a"}]
    put(store, SpanFacts(values=(Value(graph_id=GRAPH, ref="ctx:1@a", content=content),)))
    assert store.values(GRAPH, ["ctx:1@a"])["ctx:1@a"].content == content


def test_flags_come_in_time_order_and_a_redelivered_one_is_the_same(store: FactStore) -> None:
    flag = Flag(trace_id="aa", origin="one", at_ns=5, expected="", evidence=("msg:1@a",))
    early = Flag(trace_id="bb", origin="two", at_ns=1, graph_id=GRAPH)
    put(store, SpanFacts(flags=(flag, early)))
    put(store, SpanFacts(flags=(flag,)))
    assert store.flags() == [early, flag]
    assert store.flag_counts() == {"": 2}
    assert store.flags(GRAPH) == [early]


def test_flags_are_found_by_what_they_name(store: FactStore) -> None:
    by_span = Flag(trace_id=READ.trace_id, span_id=READ.span_id, origin="one", response_id="r")
    by_response = Flag(response_id="resp-1", origin="two", at_ns=1)
    by_conversation = Flag(conversation_id="conv-1", origin="three", at_ns=2)
    put(store, SpanFacts(flags=(by_span, by_response, by_conversation, Flag(trace_id="cc"))))
    assert store.flags_at(READ.flag_targets) == [by_span, by_response, by_conversation]
    assert store.flags_at(["response:conv-1"]) == [] and store.flags_at([]) == []


def test_changes_come_once_each_in_order_and_only_when_something_changed(store: FactStore) -> None:
    flag = Flag(trace_id="aa", origin="one")
    put(store, *facts(ADDED), SpanFacts(flags=(flag,)))
    first = store.changes(None)
    assert (first.flags, first.graph_ids, first.is_all) == ((flag,), (GRAPH,), True)
    put(store, *facts(ADDED), SpanFacts(flags=(flag,)))
    again = store.changes(first.until)
    assert (again.flags, again.graph_ids) == ((), ())
    other = structs.replace(READ, graph_id="user:eve", span_id="ab" * 8)
    later = structs.replace(flag, at_ns=9, expected="tea")
    put(store, *facts(other), SpanFacts(flags=(later,)))
    put(store, *facts(READ))
    changes = store.changes(again.until)
    assert changes.flags == (later,)
    assert changes.graph_ids == ("user:eve", GRAPH)
    assert store.changes(changes.until).graph_ids == ()


def test_changes_are_read_in_parts_without_losing_any(store: FactStore) -> None:
    flags = [Flag(trace_id=f"{n:02x}", origin=f"{n:03}") for n in range(25)]
    for start in range(0, 25, 5):
        put(store, SpanFacts(flags=tuple(flags[start : start + 5])))
    found: list[Flag] = []
    changes = store.changes(None, limit=7)
    while True:
        assert len(changes.flags) <= 7 + 5, "a part is bounded"
        found += changes.flags
        if changes.is_all:
            break
        changes = store.changes(changes.until, limit=7)
    assert found == flags


def test_a_place_of_another_epoch_means_from_the_beginning(store: FactStore) -> None:
    put(store, *facts(ADDED))
    until = store.changes(None).until
    elsewhere = Change(until.epoch + 1, until.number + 5)
    assert store.changes(elsewhere).graph_ids == (GRAPH,)


def test_sequences_join_numbers_of_all_graphs_and_end_with_a_farewell(store: FactStore) -> None:
    one = structs.replace(ADDED, sequence=Sequence("p", 1))
    two = structs.replace(READ, sequence=Sequence("p", 2), graph_id="user:eve")
    bye = SpanFacts(farewell=Sequence("p", 3), farewell_ns=99)
    put(store, SpanFacts(operation=two), bye, SpanFacts(operation=one), bye)
    numbers = store.sequence(["p", "unknown"])
    assert [(n.number, n.farewell) for n in numbers["p"]] == [(1, False), (2, False), (3, True)]
    assert numbers["p"][2].start_ns == 99 and list(numbers) == ["p"]


@pytest.mark.fault("F32")
def test_another_tenants_facts_are_not_seen(store: FactStore) -> None:
    theirs = structs.replace(ADDED, tenant="other")
    value = Value(graph_id=GRAPH, ref="msg:1@a", content="secret", tenant="other")
    flag = Flag(tenant="other", trace_id="aa", origin="x")
    put(
        store,
        SpanFacts(tenant="other", operation=theirs, values=(value,), flags=(flag,)),
        SpanFacts(tenant="other", farewell=Sequence("p", 1)),
    )
    assert store.graphs() == [] and store.flags() == [] and store.sequence(["p"]) == {}
    assert store.values(GRAPH, ["msg:1@a"]) == {} and store.search_values(GRAPH, "secret") == []
    assert store.trace_operations(theirs.trace_id) == []


def everything(tenant: str, graph_id: str, name: str) -> SpanFacts:
    """One span that says everything there is to say."""
    said = operation(
        f"{name}/s", "answer", 3, graph_id=graph_id, tenant=tenant, outputs=["ans:1@a"],
        inputs=["mem:s:1@a"], response_id=f"resp-{name}", seq=(name, 1),
    )  # fmt: skip
    return SpanFacts(
        tenant=tenant,
        operation=said,
        values=(Value(graph_id=graph_id, ref="ans:1@a", content="secret tea", tenant=tenant),),
        flags=(
            Flag(tenant=tenant, graph_id=graph_id, origin=f"{name}1", at_ns=1),
            Flag(tenant=tenant, response_id=f"resp-{name}", origin=f"{name}2", at_ns=2),
            Flag(tenant=tenant, trace_id="ab" * 16, origin=f"{name}3", at_ns=3),
        ),
    )


def is_empty(store: FactStore, graph_id: str, said: SpanFacts) -> bool:
    item = said.operation
    assert item is not None
    found = (
        list(store.all_operations(graph_id)),
        store.operations(graph_id, [item.key]),
        store.trace_operations(item.trace_id),
        store.trace_siblings([item.key]),
        store.response_operations(item.response_id),
        store.producers(graph_id, ["ans:1@a"]),
        store.record_writers(graph_id, ["ans:1"]),
        store.users(graph_id, ["mem:s:1@a"]),
        store.record_users(graph_id, ["mem:s:1"]),
        store.values(graph_id, ["ans:1@a"]),
        store.search_values(graph_id, "secret"),
        store.first_position([item.key]),
        store.size(graph_id),
    )
    return not any(found) and graph_id not in [each.graph_id for each in store.graphs()]


def test_a_store_answers_each_tenant_with_its_own_facts(store: FactStore) -> None:
    ours, theirs = everything(store.tenant, GRAPH, "a"), everything("other", GRAPH, "b")
    put(store, ours, theirs)
    other = store.for_tenant("other")
    assert (store.tenant, other.tenant) == ("default", "other")
    assert list(store.all_operations(GRAPH)) == [ours.operation]
    assert list(other.all_operations(GRAPH)) == [theirs.operation]
    assert [value.tenant for value in other.search_values(GRAPH, "tea")] == ["other"]
    assert len(store.flags()) == len(other.flags()) == 3
    assert other.sequence(["a", "b"]).keys() == {"b"} and other.cursor() == store.cursor()
    assert other.changes(None).graph_ids == (GRAPH,)
    assert is_empty(store.for_tenant("third"), GRAPH, ours)


def test_an_erased_graph_is_gone_from_every_answer_and_nothing_else_is(store: FactStore) -> None:
    gone, kept = everything(store.tenant, GRAPH, "a"), everything(store.tenant, "user:eve", "b")
    theirs = everything("other", GRAPH, "c")
    put(store, gone, kept, theirs)
    before = store.graph_hash("user:eve"), store.for_tenant("other").graph_hash(GRAPH)
    assert store.erase(GRAPH) == ErasedFacts(operations=1, values=1, flags=2)
    assert is_empty(store, GRAPH, gone)
    assert [flag.origin for flag in store.flags()] == ["b1", "b2", "a3", "b3"]
    assert store.sequence(["a"])["a"][0].number == 1, "its numbers are not taken for lost"
    assert (store.graph_hash("user:eve"), store.for_tenant("other").graph_hash(GRAPH)) == before
    assert store.changes(None).graph_ids == ("user:eve",)
    assert store.erase(GRAPH) == store.erase("unknown") == ErasedFacts(0, 0, 0)


def test_an_erased_tenant_is_gone_and_the_others_are_not(store: FactStore) -> None:
    ours, theirs = everything(store.tenant, GRAPH, "a"), everything("other", GRAPH, "b")
    put(store, ours, theirs, everything("other", "user:eve", "c"))
    before = store.graph_hash(GRAPH)
    other = store.for_tenant("other")
    assert other.erase(None) == ErasedFacts(operations=2, values=2, flags=6)
    assert is_empty(other, GRAPH, theirs) and other.graphs() == [] and other.flags() == []
    assert other.sequence(["b", "c"]) == {} and other.changes(None).graph_ids == ()
    assert store.graph_hash(GRAPH) == before and store.flag_counts() == {"": 3}


def test_what_is_delivered_again_after_an_erasure_is_new(store: FactStore) -> None:
    said = everything(store.tenant, GRAPH, "a")
    put(store, said)
    store.erase(GRAPH)
    applied = put(store, said, at=50)
    assert (len(applied.added), applied.duplicates) == (1, 0)
    assert said.operation is not None
    key_of = said.operation.key
    assert store.first_position([key_of]) == {key_of: LogPosition(1, 50)}
    assert [value.ref for value in store.search_values(GRAPH, "tea")] == ["ans:1@a"]
    assert store.graphs()[0].operations == 1 and len(store.flags()) == 3


def test_values_expire_by_the_last_time_they_were_given(store: FactStore) -> None:
    def given(path: str, at: float, text: str, **how: str) -> SpanFacts:
        item = operation(path, "create", at, **how)
        value = Value(graph_id=item.graph_id, ref="mem:s:1@a", content=text, tenant=item.tenant)
        return SpanFacts(tenant=item.tenant, operation=item, values=(value,))

    put(store, given("t1/a", 5, "coffee and tea"), given("t2/a", 9, "tea"))
    put(store, given("t3/a", 4, "tea", graph_id="user:eve"))
    put(store, given("t4/a", 3, "tea", tenant="other"))
    put(store, SpanFacts(values=(Value(graph_id=GRAPH, ref="msg:1@a", content="a time"),)))
    assert store.expire_values(1) == 1
    assert store.expire_values(3 * SECOND) == 0
    assert store.expire_values(9 * SECOND) == 2
    assert store.values("user:eve", ["mem:s:1@a"]) == {}
    assert store.search_values("user:eve", "tea") == []
    assert store.for_tenant("other").values(GRAPH, ["mem:s:1@a"]) == {}
    assert store.values(GRAPH, ["mem:s:1@a"])["mem:s:1@a"].content == "coffee and tea"
    assert store.expire_values(9 * SECOND + 1) == 1 and store.size(GRAPH) == 2


@pytest.mark.parametrize("tidied", [(), (0, 1), (0,), (1,)])
def test_users_are_found_whether_or_not_put_off_work_was_done(
    store: FactStore, tidied: tuple[int, ...]
) -> None:
    """A corpus that many search: thousands of operations in one graph, some replaced later."""
    many = 3_000
    reads = [
        operation(f"r{n}/s", "retrieve", n, delivered=[f"mem:s:{n % 7}@a"], inputs=["mem:x@a"])
        for n in range(many)
    ]
    again = structs.replace(
        reads[8], delivered=("mem:s:2@a",), end_ns=reads[8].end_ns + 1, digest="0"
    )
    later = operation("late/u", "update", many + 1, supersedes=["mem:s:1@a"], inputs=["fact:f@a"])
    born = operation("born/c", "create", 0, outputs=["mem:s:1@a"])
    for part, items in enumerate(([*reads, born], [again, later])):
        put(store, *facts(*items))
        while part in tidied and store.tidy(0.05):
            pass
    expected = [item for n, item in enumerate(reads) if n % 7 == 1 and n != 8] + [later]
    assert store.users(GRAPH, ["mem:s:1@a", "mem:s:1@b"]) == {"mem:s:1@a": expected}
    found = store.record_users(GRAPH, ["mem:s:1", "mem:s:2", "mem:s:9"])
    assert found["mem:s:1"] == expected and again in found["mem:s:2"] and len(found) == 2
    near = Near(reads[70].start_ns, first=2, before=1, after=1)
    of_one = store.record_users(GRAPH, ["mem:s:1"], near)["mem:s:1"]
    assert of_one == [reads[1], reads[15], reads[64], reads[71], later]
    assert len(store.record_users(GRAPH, ["mem:x"])["mem:x"]) == many
    assert store.erase(GRAPH).operations == many + 2
    assert store.users(GRAPH, ["mem:s:1@a"]) == {}


@pytest.mark.fault("F31")
def test_hostile_references_and_names_are_only_data(store: FactStore) -> None:
    ref = "msg:'); DROP TABLE operation;--\x00%@a"
    graph_id = 'user:" OR 1=1 --'
    hostile = structs.replace(ADDED, outputs=(ref,), graph_id=graph_id)
    put(store, *facts(hostile, values={ref: "'); DELETE FROM value;--"}))
    assert store.producers(graph_id, [ref]) == {ref: [hostile]}
    assert store.search_values(graph_id, "'); DELETE FROM value;--")[0].ref == ref


def test_readers_in_other_threads_see_what_was_applied(store: FactStore) -> None:
    put(store, *facts(ADDED))
    seen: list[int] = []
    threads = [
        threading.Thread(target=lambda: seen.append(len(list(store.all_operations(GRAPH)))))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [1, 1, 1, 1]


def test_a_search_finds_other_endings_of_a_word_and_puts_what_is_asked_twice_first(
    store: FactStore,
) -> None:
    texts = {
        "msg:c/1@a": "we visited a gallery",
        "msg:c/2@a": "we wait for the bus",
        "msg:c/3@a": "we painted a gate",
    }
    put(store, *facts(values=texts))
    found = [value.ref for value in store.search_values(GRAPH, "When did we visit? Painting")]
    assert set(found[:2]) == {"msg:c/1@a", "msg:c/3@a"}
    twice = store.search_values(GRAPH, "visits paint painting")
    assert [value.ref for value in twice] == ["msg:c/3@a", "msg:c/1@a"]
