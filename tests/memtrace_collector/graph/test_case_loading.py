"""The case of an answer: evidence, turn, closure, what lies downstream; and finding the answer."""

from __future__ import annotations

from memtrace_collector.graph import flags
from memtrace_collector.graph.case import Case
from memtrace_collector.graph.closure import closure
from memtrace_collector.graph.facts import Edge, Flag, Operation, SpanFacts
from memtrace_collector.graph.facts import Sequence as Number
from memtrace_collector.graph.forward import downstream
from memtrace_collector.graph.loader import load_case
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.resolution import Occurrence
from memtrace_collector.store.in_memory import InMemoryFactStore
from tests.memtrace_collector.graph.build import GRAPH, SECOND, facts, key, operation

QUERY, ANSWER = "query:q@1", "ans:a@1"
ANSWERED = operation("a/answer", "answer", 100, inputs=[QUERY], outputs=[ANSWER])
SAID = operation("m/say", "ingest", 1, outputs=["msg:c/1@aaa"])


def case_of(
    *others: Operation,
    values: dict[str, str] | None = None,
    answer: Operation = ANSWERED,
    **flag: object,
) -> Case:
    store = InMemoryFactStore.of(facts(answer, *others, values=values))
    return load_case(store, answer, Flag(trace_id=answer.trace_id, **flag))  # type: ignore[arg-type]


def test_evidence_of_an_unseen_version_joins_by_its_record() -> None:
    for ref in ("msg:c/1@?", "msg:c/1@otherkey", "msg:c/1@aaa"):
        case = case_of(SAID, evidence=(ref,))
        assert case.evidence == ("msg:c/1@aaa",) and SAID.key in case.operations
        assert case.evidence_given and case.foreign == {}


def test_evidence_that_only_another_graph_holds_is_foreign() -> None:
    theirs = operation("m/say", "ingest", 1, outputs=["msg:c/1@aaa"], graph_id="user:eve")
    case = case_of(theirs, evidence=("msg:c/1@aaa",))
    assert case.foreign == {"msg:c/1@aaa": "user:eve"}
    assert case.readable_graphs == {GRAPH}


def test_evidence_that_was_only_read_joins_by_its_record_too() -> None:
    """A chunk is made of a message that no operation was seen to take in."""
    chunked = operation("m/chunk", "ingest", 1, inputs=["msg:c/1@aaa"], outputs=["doc:d@bbb"])
    for ref in ("msg:c/1@?", "msg:c/1@aaa"):
        case = case_of(chunked, evidence=(ref,))
        assert case.evidence == ("msg:c/1@aaa",) and chunked.key in case.operations
    theirs = operation(
        "m/chunk", "ingest", 1, inputs=["msg:c/1@aaa"], outputs=["doc:d@bbb"], graph_id="user:eve"
    )
    assert case_of(theirs, evidence=("msg:c/1@?",)).foreign == {"msg:c/1@aaa": "user:eve"}


def test_evidence_nobody_saw_stays_as_it_was_named() -> None:
    assert case_of(evidence=("msg:none@1",)).evidence == ("msg:none@1",)


def test_without_evidence_the_messages_that_match_question_and_answer_are_found() -> None:
    said = operation("m2/say", "ingest", 2, outputs=["msg:c/2@bbb"])
    later = operation("m3/say", "ingest", 200, outputs=["msg:c/3@ccc"])
    values = {
        QUERY: "Where do I live?",
        "msg:c/1@aaa": "I like tea",
        "msg:c/2@bbb": "I live in Lisbon",
        "msg:c/3@ccc": "I live in Lisbon",
    }
    case = case_of(SAID, said, later, values=values, expected="Lisbon")
    assert case.evidence[0] == "msg:c/2@bbb" and "msg:c/3@ccc" not in case.evidence
    assert not case.evidence_given


def test_the_turn_of_a_plain_script_is_found_without_an_enclosing_trace() -> None:
    search = operation("s1/s", "retrieve", 90, inputs=[QUERY], delivered=["mem:s:1@a"])
    old = operation("s2/s", "retrieve", -900, inputs=[QUERY])
    other = operation("s3/s", "retrieve", 91, inputs=["query:x@1"])
    named = operation("s4/s", "retrieve", 92, delivered=["mem:s:9@a"])
    answer = operation(
        "a/answer",
        "answer",
        100,
        inputs=[QUERY, "mem:s:9@a"],
        outputs=[ANSWER],
        sources={"mem:s:9@a": key("s4/s")},
    )
    case = case_of(search, old, other, named, answer=answer)
    assert case.turn == {answer.key, search.key, named.key}


def test_a_read_of_another_question_belongs_to_another_turn() -> None:
    own = operation("s1/s", "retrieve", 90, inputs=[QUERY], delivered=["mem:s:1@a"])
    other = operation("s2/s", "retrieve", 91, inputs=["query:x@1"], delivered=["mem:s:1@a"])
    listing = operation("s3/s", "retrieve", 92, delivered=["mem:s:1@a"])
    adding = operation("s4/add", "add", 93, took=2, composite=True)
    similar = operation("s4/s", "retrieve", 94, delivered=["mem:s:1@a"], parent="add")
    answer = operation("a/a", "answer", 100, inputs=[QUERY, "mem:s:1@a"], outputs=[ANSWER])
    case = case_of(own, other, listing, adding, similar, answer=answer)
    assert case.turn == {answer.key, own.key, listing.key}


def test_a_trace_with_several_questions_holds_several_turns() -> None:
    def asked(name: str, at: float) -> tuple[Operation, Operation]:
        query = f"query:{name}@1"
        read = operation(f"t/r{name}", "retrieve", at, inputs=[query], parent="loop")
        outputs = [f"ans:{name}@1"]
        reply = operation(
            f"t/a{name}", "answer", at + 1, inputs=[query], outputs=outputs, parent="loop"
        )
        return read, reply

    read_one, answer_one = asked("one", 10)
    read_two, answer_two = asked("two", 20)
    both = (read_one, answer_one, read_two)
    assert case_of(*both, answer=answer_two).turn == {read_two.key, answer_two.key}
    again = operation("t/again", "answer", 30, inputs=["query:two@1"], outputs=["ans:x@1"])
    assert read_two.key in case_of(*both, answer_two, answer=again).turn


def test_every_write_and_read_of_a_record_that_was_met_is_in_the_case() -> None:
    first = operation("w1/w", "create", 1, outputs=["mem:s:1@a"])
    second = operation("w2/w", "update", 2, outputs=["mem:s:1@b"], supersedes=["mem:s:1@a"])
    read = operation("a/read", "retrieve", 99, delivered=["mem:s:1@a"])
    later = operation("r/read", "retrieve", 200, delivered=["mem:s:1@b"])
    case = case_of(first, second, read, later)
    assert {item.operation.key for item in case.histories["mem:s:1"]} == {first.key, second.key}
    assert later.key in case.operations


def test_a_text_known_by_its_digest_under_the_same_key_is_filled_in() -> None:
    made = operation(
        "w1/w", "create", 1, inputs=["fact:f@abc"], outputs=["mem:s:1@abc"], digest_key="plain"
    )
    read = operation("a/read", "retrieve", 99, delivered=["mem:s:1@abc"], digest_key="plain")
    case = case_of(made, read, values={"fact:f@abc": "lives in Lisbon"})
    assert case.texts["mem:s:1@abc"] == "lives in Lisbon" and "mem:s:1@abc" not in case.values


def test_a_case_beyond_its_limit_is_incomplete() -> None:
    many = [
        operation(f"m{n}/s", "ingest", n, outputs=[f"msg:{n}@1"], inputs=["msg:c/1@aaa"])
        for n in range(2, 40)
    ]
    store = InMemoryFactStore.of(facts(ANSWERED, SAID, *many))
    flag = Flag(trace_id=ANSWERED.trace_id, evidence=("msg:c/1@aaa",))
    case = load_case(store, ANSWERED, flag, max_operations=10)
    assert case.lineage == "incomplete" and len(case.operations) < 60


def test_a_text_made_twice_is_followed_only_from_the_occurrence_at_hand() -> None:
    one = operation("t1/x", "extract", 1, outputs=["fact:f@1"])
    two = operation("t2/x", "extract", 2, outputs=["fact:f@1"])
    stored = operation("t2/w", "create", 3, inputs=["fact:f@1"], outputs=["mem:s:1@a"])
    lookups = Lookups(InMemoryFactStore.of(facts(one, two, stored)))
    assert downstream(lookups, [Occurrence("fact:f@1", one)], [GRAPH], 99).refs == ("fact:f@1",)
    assert "mem:s:1@a" in downstream(lookups, [Occurrence("fact:f@1", two)], [GRAPH], 99).refs


def test_downstream_respects_edges_and_passes_through_deliveries() -> None:
    batch = operation(
        "t/x",
        "create",
        1,
        inputs=["msg:1@1", "msg:2@1"],
        outputs=["mem:s:1@a", "mem:s:2@a"],
        edges=[
            Edge("msg:1@1", "mem:s:1@a", "derived_from"),
            Edge("msg:2@1", "mem:s:2@a", "derived_from"),
        ],
    )
    said = operation("m/s", "ingest", 0, outputs=["msg:1@1"])
    read = operation("r/r", "retrieve", 5, delivered=["mem:s:1@a"])
    prompt = operation("r/p", "assemble", 6, inputs=["mem:s:1@a"], outputs=["ctx:c@1"])
    lookups = Lookups(InMemoryFactStore.of(facts(batch, said, read, prompt)))
    found = downstream(lookups, [Occurrence("msg:1@1", said)], [GRAPH], 99)
    assert set(found.refs) == {"msg:1@1", "mem:s:1@a", "ctx:c@1"}
    assert read.key in found.operations


def test_a_gap_is_a_loss_between_its_neighbours_and_a_farewell_closes_the_run() -> None:
    one = operation("a/1", "ingest", 1, seq=("p", 1))
    four = operation("a/4", "ingest", 4, seq=("p", 4))
    bye = SpanFacts(farewell=Number("p", 5), farewell_ns=9 * SECOND)
    found = closure(InMemoryFactStore.of([*facts(one, four), bye]), ["p"])
    (loss,) = found.losses
    assert (loss.first, loss.last) == (2, 3)
    assert (loss.after_ns, loss.before_ns) == (SECOND, 4 * SECOND)
    process = frozenset(("p",))
    assert found.absence(2 * SECOND, 3 * SECOND, process) == "broken"
    assert found.absence(5 * SECOND, 99 * SECOND, process) == "proven"


def test_an_open_run_is_assumed_beyond_its_last_number() -> None:
    store = InMemoryFactStore.of(facts(operation("a/1", "ingest", 5, seq=("p", 1))))
    found = closure(store, ["p"])
    assert found.absence(1 * SECOND, 4 * SECOND, frozenset(("p",))) == "broken" or not found.losses
    assert found.absence(6 * SECOND, 9 * SECOND, frozenset(("p",))) == "assumed"


def resolved(flag: Flag, *operations: Operation) -> Operation | None:
    return flags.resolve(InMemoryFactStore.of(facts(*operations)), flag)


def test_a_flag_means_the_latest_ending_answer_at_or_below_its_target() -> None:
    root = operation("t/root", "ingest", 0, took=50, outputs=[QUERY])
    early = operation("t/a1", "answer", 1, outputs=["ans:1@1"], parent="root")
    late = operation("t/a2", "answer", 2, outputs=["ans:2@1"], parent="root")
    beside = operation("t/a3", "answer", 3, outputs=["ans:3@1"], parent="elsewhere")
    all_of_it = (root, early, late, beside)
    target = key("t/root")
    assert resolved(Flag(trace_id=target.trace_id, span_id=early.span_id), *all_of_it) == early
    assert resolved(Flag(trace_id=target.trace_id, span_id=target.span_id), *all_of_it) == late
    assert resolved(Flag(trace_id=target.trace_id), *all_of_it) == beside


def test_a_flag_on_a_span_that_is_no_operation_means_the_answer_of_its_trace() -> None:
    answer = operation("t/a1", "answer", 1, outputs=["ans:1@1"], parent="http")
    assert resolved(Flag(trace_id=answer.trace_id, span_id=key("t/http").span_id), answer) == answer


def test_a_call_that_ended_in_tool_calls_is_no_answer() -> None:
    call = operation("t/a1", "answer", 1, outputs=["fact:arguments@1"])
    assert resolved(Flag(trace_id=call.trace_id), call) is None


def test_a_flag_may_name_a_response_or_a_conversation() -> None:
    answer = operation(
        "t/a", "answer", 1, outputs=["ans:1@1"], response_id="r1", conversation_id="c1"
    )
    assert resolved(Flag(response_id="r1"), answer) == answer
    assert resolved(Flag(conversation_id="c1"), answer) == answer
    assert resolved(Flag(response_id="r2"), answer) is None
