"""The verbs: context, decorators, graphs, links, flags."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator

import pytest
from opentelemetry import baggage, trace
from opentelemetry import context as context_api

import memtrace_otel as memtrace
from memtrace_otel import testing
from memtrace_otel.config import Config
from memtrace_otel.testing import Spans, lineage

UUID = "4f0c2d1e-0000-4000-8000-000000000001"


def links(span: testing.SpanDict) -> list[tuple[str, str]]:
    return [
        (link["span_id"], link["attributes"]["memtrace.link.relation"]) for link in span["links"]
    ]


def test_operations_nest_and_children_inherit(spans: Spans) -> None:
    with memtrace.operation(
        "add", graph_id="user:1", conversation_id="c", capture="observed"
    ) as outer:
        assert memtrace.current_operation() is outer
        with memtrace.operation("extract") as inner:
            assert memtrace.current_operation() is inner
        assert memtrace.current_operation() is outer
    assert memtrace.current_operation() is None
    add, extract = spans.one("add"), spans.one("extract")
    assert extract["parent_span_id"] == add["span_id"]
    for name in ("memtrace.graph.id", "gen_ai.conversation.id", "memtrace.capture"):
        assert extract["attributes"][name] == add["attributes"][name]
    assert lineage(add)["composite"] is True
    assert "composite" not in lineage(extract)
    assert [lineage(add)["seq"], lineage(extract)["seq"]] == ["00000000:1", "00000000:2"]


def test_decorated_function_and_coroutine(spans: Spans) -> None:
    @memtrace.operation("rewrite", graph_id="g")
    def rewrite(text: str) -> str:
        """Doc."""
        op = memtrace.current_operation()
        assert op
        op.outputs(memtrace.query(text))
        return text.upper()

    @memtrace.operation("rerank", graph_id="g")
    async def rerank() -> int:
        await asyncio.sleep(0)
        assert memtrace.current_operation()
        return 3

    assert rewrite("a") == "A"
    assert rewrite("b") == "B"
    assert rewrite.__doc__ == "Doc."
    assert asyncio.run(rerank()) == 3
    assert spans.steps() == ["rewrite", "rewrite", "rerank"]


def test_async_with(spans: Spans) -> None:
    async def work() -> None:
        async with memtrace.operation("consolidate") as op:
            op.inputs("mem:a:1@1")

    asyncio.run(work())
    assert lineage(spans.one("consolidate"))["inputs"] == ["mem:a:1@1"]


def test_tasks_have_their_own_current_operation(spans: Spans) -> None:
    async def one(number: int) -> None:
        with memtrace.graph(f"user:{number}"), memtrace.operation("retrieve") as op:
            await asyncio.sleep(0)
            assert memtrace.current_operation() is op
            op.inputs(f"query:q@{number}")
            await asyncio.sleep(0)

    async def many() -> None:
        await asyncio.gather(*[one(number) for number in range(20)])

    asyncio.run(many())
    for span in spans.of("retrieve"):
        number = span["attributes"]["memtrace.graph.id"].removeprefix("user:")
        assert lineage(span)["inputs"] == [f"query:q@{number}"]
        assert span["parent_span_id"] == ""


def test_threads_share_sequence_and_lineage(spans: Spans) -> None:
    def work(number: int) -> None:
        for turn in range(25):
            with memtrace.operation("create", graph_id=f"user:{number}") as op:
                op.outputs(memtrace.memory(f"{number} {turn}", f"{number}{turn}", system="s"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers = sorted(int(lineage(span)["seq"].partition(":")[2]) for span in spans.all())
    assert numbers == list(range(1, 101))


@memtrace.operation("answer", graph_id="g")
def stream(end: str = "end") -> Iterator[int]:
    op = memtrace.current_operation()
    assert op
    try:
        received = yield 1
        op.outputs(memtrace.answer(str(received)))
        yield 2
    finally:
        assert memtrace.current_operation() is op
    if end == "error":
        raise LookupError("from the host")
    return end


def test_a_generators_operation_ends_when_it_is_exhausted(spans: Spans) -> None:
    generator = stream()
    assert spans.all() == []
    assert next(generator) == 1
    assert memtrace.current_operation() is None
    assert not trace.get_current_span().is_recording()
    with memtrace.operation("judge"):
        assert generator.send("said") == 2  # type: ignore[attr-defined]  # a generator
    assert spans.steps() == ["judge"]
    with pytest.raises(StopIteration) as end:
        next(generator)
    assert end.value.value == "end"
    answer = spans.one("answer")
    assert lineage(answer)["outputs"] == [memtrace.answer("said").ref]
    assert answer["status"] == "UNSET"
    assert spans.one("judge")["parent_span_id"] == ""


def test_a_generators_operation_ends_when_it_is_closed_or_fails(spans: Spans) -> None:
    closed = stream()
    next(closed)
    closed.close()  # type: ignore[attr-defined]  # a generator
    assert [span["status"] for span in spans.of("answer")] == ["UNSET"]
    with pytest.raises(LookupError, match="from the host"):
        list(stream("error"))
    thrown = stream()
    next(thrown)
    with pytest.raises(KeyError, match="thrown"):
        thrown.throw(KeyError("thrown"))  # type: ignore[attr-defined]  # a generator
    assert [span["attributes"].get("error.type") for span in spans.of("answer")] == [
        None,
        "LookupError",
        "KeyError",
    ]


def test_an_abandoned_generator_ends_its_operation(spans: Spans) -> None:
    generator = stream()
    next(generator)
    del generator
    assert spans.one("answer")["status"] == "UNSET"


def test_async_generators(spans: Spans) -> None:
    @memtrace.operation("answer", graph_id="g")
    async def tokens(fail: bool = False) -> AsyncIterator[int]:
        for token in range(3):
            await asyncio.sleep(0)
            assert memtrace.current_operation()
            yield token
        if fail:
            raise LookupError("from the host")

    async def work() -> list[int]:
        seen = []
        async for token in tokens():
            assert memtrace.current_operation() is None
            seen.append(token)
        closed = tokens()
        await closed.__anext__()
        await closed.aclose()  # type: ignore[attr-defined]  # an asynchronous generator
        with pytest.raises(LookupError):
            async for _ in tokens(fail=True):
                pass
        return seen

    assert asyncio.run(work()) == [0, 1, 2]
    errors = [span["attributes"].get("error.type") for span in spans.of("answer")]
    assert errors == [None, None, "LookupError"]


def test_cancelled_tasks_fail_their_operation(spans: Spans) -> None:
    @memtrace.operation("answer")
    async def slow() -> None:
        await asyncio.sleep(60)

    async def work() -> None:
        task = asyncio.create_task(slow())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())
    assert spans.one("answer")["attributes"]["error.type"] == "asyncio.exceptions.CancelledError"


def graph_of(spans: Spans) -> str:
    found: str = spans.all()[-1]["attributes"]["memtrace.graph.id"]
    return found


def test_the_graph_comes_from_the_nearest_source(spans: Spans) -> None:
    def run(**arguments: str) -> str:
        with memtrace.operation("create", **arguments):  # type: ignore[arg-type]  # names vary
            pass
        return graph_of(spans)

    assert run() == "service:test"
    assert run(conversation_id="c7") == "conversation:c7"
    assert run(library_graph_id="user:lib") == "user:lib"
    assert run(library_graph_id="user:lib", graph_id="given") == "given"
    with memtrace.graph("declared", conversation_id="c8"):
        assert run() == "declared"
        assert run(library_graph_id="user:lib") == "declared"
        assert spans.all()[-1]["attributes"]["gen_ai.conversation.id"] == "c8"
        with memtrace.graph("inner"):
            assert run() == "inner"
            assert spans.all()[-1]["attributes"]["gen_ai.conversation.id"] == "c8"
        assert run() == "declared"
    with memtrace.operation("answer", graph_id="asker"):
        assert run() == "asker"
        assert run(library_graph_id="corpus") == "corpus"
    tracer = spans.provider.get_tracer("web")
    with tracer.start_as_current_span("request", attributes={"user.id": "anna"}):
        assert run() == "user:anna"
    assert memtrace.owner_graph_id("user", "anna") == "user:anna"


def test_user_ids_are_digested_under_a_key() -> None:
    with testing.capture(digest_key="k"):
        digested = memtrace.owner_graph_id("user", "anna")
        assert digested == memtrace.owner_graph_id("user", "anna")
        assert "anna" not in digested
        assert len(digested) == len("user:") + 32


def test_baggage_is_not_used_unless_asked() -> None:
    context = baggage.set_baggage("memtrace.graph.id", "from afar")
    for wanted in (False, True):
        config = Config(digest_key="plain", baggage=wanted)
        with testing.capture(config=config) as spans:
            with memtrace.graph("g", conversation_id="c"):
                expected = {"memtrace.graph.id": "g", "gen_ai.conversation.id": "c"}
                assert dict(baggage.get_all()) == (expected if wanted else {})
            with memtrace.operation("create", context=context):
                pass
            assert graph_of(spans) == ("from afar" if wanted else "service:test")


def test_a_conversation_alone_in_baggage_names_the_graph_too() -> None:
    context = baggage.set_baggage("gen_ai.conversation.id", "c7")
    config = Config(digest_key="plain", baggage=True)
    with testing.capture(config=config) as spans:
        with memtrace.operation("answer", context=context):
            memtrace.start_operation("create").stop()
        with memtrace.operation("ingest", context=context, graph_id="mine"):
            pass
    for step, graph in (("answer", "conversation:c7"), ("create", "conversation:c7")):
        attributes = spans.one(step)["attributes"]
        assert attributes["memtrace.graph.id"] == graph
        assert attributes["gen_ai.conversation.id"] == "c7"
    assert spans.one("ingest")["attributes"]["memtrace.graph.id"] == "mine"
    assert spans.one("ingest")["attributes"]["gen_ai.conversation.id"] == "c7"


def test_links_lead_to_producers_deliverers_and_decisions(spans: Spans) -> None:
    fact = memtrace.fact("User lives in Lisbon")
    record = memtrace.memory("User lives in Lisbon", UUID, system="s")
    with memtrace.operation("add", graph_id="g") as add:
        add.inputs("msg:m@1")
        with memtrace.operation("extract") as op:
            op.inputs("msg:m@1")
            op.outputs(fact)
        with memtrace.operation("decide") as op:
            op.inputs(fact)
            op.decision(fact, "ADD")
        with memtrace.operation("create") as op:
            op.inputs(fact)
            op.outputs(record)
    extract, decide, create = (spans.one(step) for step in ("extract", "decide", "create"))
    assert links(extract) == []
    assert links(decide) == [(extract["span_id"], "derived_from")]
    assert links(create) == [
        (decide["span_id"], "decided_by"),
        (extract["span_id"], "derived_from"),
    ]
    with memtrace.operation("answer", graph_id="g") as op:
        with memtrace.operation("retrieve") as read:
            read.delivered(record, 0.9)
        op.inputs(record)
    retrieve, answer = spans.one("retrieve"), spans.one("answer")
    assert links(retrieve) == [(create["span_id"], "retrieved_from")]
    assert links(answer) == [(retrieve["span_id"], "answered_with")]
    with memtrace.operation("update", graph_id="g") as op:
        op.supersedes(record)
    assert links(spans.one("update")) == [(create["span_id"], "supersedes")]
    # another trace uses the record, not its delivery in the trace before
    with memtrace.operation("assemble", graph_id="g") as op:
        op.inputs(record)
    assert links(spans.one("assemble")) == [(create["span_id"], "assembled_from")]


def test_at_most_eight_links_nearest_first_and_none_to_the_parent(spans: Spans) -> None:
    for number in range(12):
        with memtrace.operation("create", graph_id="g") as op:
            op.outputs(f"mem:s:{number}@1")
    with memtrace.operation("consolidate", graph_id="g") as parent:
        parent.outputs("mem:s:parent@1")
        with memtrace.operation("retrieve") as op:
            op.inputs("mem:s:parent@1", *[f"mem:s:{number}@1" for number in range(12)])
    created = [span["span_id"] for span in spans.of("create")]
    assert [target for target, _ in links(spans.one("retrieve"))] == created[:3:-1]


def test_a_named_source_is_linked_first(spans: Spans) -> None:
    with memtrace.operation("create") as op:
        op.outputs("mem:s:1@1", "mem:s:2@1")
    with memtrace.operation("answer") as op:
        op.inputs("mem:s:1@1", "mem:s:2@1")
        op.source("mem:s:1@1", "ab" * 16, "cd" * 8)
    named, created = spans.one("answer")["links"]
    assert (named["trace_id"], named["span_id"]) == ("ab" * 16, "cd" * 8)
    assert created["span_id"] == spans.one("create")["span_id"]


def test_flags_name_their_target(spans: Spans) -> None:
    with memtrace.operation("answer", graph_id="g") as op:
        memtrace.flag(expected="", reason="wrong", source="operator")
    said = memtrace.message("I live in Lisbon", "m/1")
    memtrace.flag(span=op.span, expected="Lisbon", evidence=[said, "mem:s:1@?"])
    memtrace.flag(trace_id=op.span.get_span_context().trace_id)
    memtrace.flag(response_id="resp-1")
    memtrace.flag(conversation_id="conv-1")
    answer = spans.one("answer")
    inside, by_span, by_trace, by_response, by_conversation = (
        span["attributes"] for span in spans.of("flag")
    )
    assert inside["memtrace.flag.span_id"] == answer["span_id"]
    assert inside["memtrace.expected"] == ""
    assert inside["memtrace.flag.reason"] == "wrong"
    assert inside["memtrace.flag.source"] == "operator"
    assert by_span["memtrace.flag.trace_id"] == answer["trace_id"]
    assert by_span["memtrace.expected"] == "Lisbon"
    assert by_span["memtrace.evidence"] == [said.ref, "mem:s:1@?"]
    assert by_span["memtrace.flag.source"] == "user"
    assert "memtrace.flag.span_id" not in by_trace
    assert by_trace["memtrace.flag.trace_id"] == answer["trace_id"]
    assert by_response["gen_ai.response.id"] == "resp-1"
    assert by_conversation["gen_ai.conversation.id"] == "conv-1"
    assert "memtrace.graph.id" not in by_conversation
    assert links(spans.of("flag")[1]) == [(answer["span_id"], "flags")]


def test_a_flag_without_a_target_is_reported(
    spans: Spans, caplog: pytest.LogCaptureFixture
) -> None:
    memtrace.flag(expected="x")
    assert spans.all() == []
    assert "nothing to flag" in caplog.text


def test_the_hosts_context_is_left_as_it_was(spans: Spans) -> None:
    before = context_api.get_current()
    with memtrace.graph("g"), memtrace.operation("create"):
        pass
    with pytest.raises(KeyError), memtrace.graph("g"), memtrace.operation("create"):
        raise KeyError
    assert context_api.get_current() == before


def test_recent_values_are_kept_also_when_nothing_is_captured() -> None:
    from memtrace_otel import runtime

    with testing.capture(content=False) as spans:
        with memtrace.operation("retrieve", graph_id="g") as op:
            op.inputs(memtrace.query("What is my dog called?"))
            op.delivered(memtrace.memory("The dog is called Rex", UUID, system="s"))
        matches = runtime.get().recent.find(["Facts: The dog is called Rex."])
        (match,) = matches
        span = spans.one("retrieve")
        assert match.kind == "delivered"
        assert match.graph_id == "g"
        assert match.origin == (span["trace_id"], span["span_id"])
