from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import _base_client, _streaming
from opentelemetry import trace
from opentelemetry.instrumentation.utils import suppress_instrumentation

import memtrace_otel as memtrace
from memtrace_otel import testing
from memtrace_otel.instrumentors.openai import OpenAIInstrumentor
from memtrace_otel.testing import SpanDict, Spans, lineage, values
from tests.instrumentors.openai_stub import OpenAIStub, Reply, ToolCall, response_id

QUESTION = "Where does Ann live now?"
MEMORY = "Ann moved to Lisbon in May 2025"


@pytest.fixture(autouse=True)
def _raise_internal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMTRACE_RAISE_INTERNAL", "1")


@pytest.fixture
def spans() -> Iterator[Spans]:
    with testing.capture() as captured:
        OpenAIInstrumentor().instrument()
        try:
            yield captured
        finally:
            OpenAIInstrumentor().uninstrument()


@pytest.fixture
def stub() -> Iterator[OpenAIStub]:
    with OpenAIStub() as server:
        yield server


@pytest.fixture
def client(stub: OpenAIStub) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=stub.base_url, api_key="k", max_retries=0) as made:
        yield made


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def ask(client: openai.OpenAI, *messages: dict[str, Any], **options: Any) -> Any:
    return client.chat.completions.create(model="m", messages=list(messages), **options)


def run(stub: OpenAIStub, work: Callable[[openai.AsyncOpenAI], Any]) -> Any:
    async def main() -> Any:
        url = stub.base_url
        async with openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0) as client:
            return await work(client)

    return asyncio.run(main())


def until_one(spans: Spans, step: str = "answer") -> SpanDict:
    deadline = time.monotonic() + 5
    while not spans.of(step) and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.005)
    return spans.one(step)


def of_kind(references: list[str], kind: str) -> list[str]:
    return [ref for ref in references if ref.startswith(f"{kind}:")]


def ref(variable: memtrace.Variable) -> str:
    return variable.ref


def retrieve(question: str = QUESTION, text: str = MEMORY, graph: str = "user:ann") -> None:
    with memtrace.operation("retrieve", system="notes", graph_id=graph) as op:
        op.inputs(memtrace.query(question))
        op.delivered(memtrace.memory(text, 17, system="notes"), 0.9)


# Whole answers


def test_a_chat_completion_makes_an_answer(
    spans: Spans, stub: OpenAIStub, client: openai.OpenAI
) -> None:
    stub.reply("In Lisbon.")
    reply = ask(client, {"role": "system", "content": "Be brief."}, user(QUESTION))
    assert reply.choices[0].message.content == "In Lisbon."
    span = spans.one("answer")
    attributes = span["attributes"]
    assert span["name"] == "memtrace.answer"
    assert attributes["gen_ai.operation.name"] == "chat"
    assert attributes["gen_ai.request.model"] == "m"
    assert attributes["gen_ai.response.model"] == "stub-model"
    assert attributes["gen_ai.provider.name"] == "openai"
    assert attributes["gen_ai.response.id"] == response_id(Reply(("In Lisbon.",)))
    found = lineage(span)
    query, prompt = ref(memtrace.query(QUESTION)), ref(memtrace.prompt("Be brief."))
    assert found["inputs"] == [query, prompt]
    assert found["outputs"] == [ref(memtrace.answer("In Lisbon."))]
    assert found["roles"] == {query: "user", prompt: "system"}
    assert "inferred" not in found
    assert values(span)[query] == QUESTION


def test_a_visible_assembly_is_an_ancestor_of_the_answer(
    spans: Spans, stub: OpenAIStub, client: openai.OpenAI
) -> None:
    stub.reply("I do not know.")
    query = memtrace.query("Where does Ann live?")
    text = f"Know: nothing that fits the budget.\n\nQuestion: {query.content}"
    with memtrace.graph("user:ann"):
        with memtrace.operation("ingest", system="mine") as op:
            op.outputs(query)
        with memtrace.operation("assemble", system="mine") as op:
            op.inputs(query)
            op.outputs(memtrace.context(text))
    client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])
    found = lineage(spans.one("answer"))
    assert ref(memtrace.context(text)) in found["inputs"]
    assert "shown" not in found


@pytest.mark.fault("F35")
def test_content_stays_in_the_process_unless_asked_for(
    stub: OpenAIStub, client: openai.OpenAI
) -> None:
    with testing.capture(content=False) as spans:
        OpenAIInstrumentor().instrument()
        try:
            stub.reply("In Lisbon.", "Since May.")
            ask(client, user(QUESTION))
            ask(client, user(QUESTION), {"role": "assistant", "content": "In Lisbon."}, user("?"))
        finally:
            OpenAIInstrumentor().uninstrument()
        written = json.dumps(spans.all())
        again = lineage(spans.of("answer")[1])
    assert "Lisbon" not in written
    assert "Ann live" not in written
    # …while values are still recognised, in the process.
    assert ref(memtrace.answer("In Lisbon.")).partition(":")[0] == "ans"
    assert len(of_kind(again["inputs"], "ans")) == 1


def test_each_choice_is_an_answer(spans: Spans, stub: OpenAIStub, client: openai.OpenAI) -> None:
    stub.reply(Reply(("In Lisbon.", "Lisbon, I think.")))
    ask(client, user(QUESTION), n=2)
    assert lineage(spans.one("answer"))["outputs"] == [
        ref(memtrace.answer("In Lisbon.")),
        ref(memtrace.answer("Lisbon, I think.")),
    ]


def test_async_raw_and_parsed_responses_make_answers(spans: Spans, stub: OpenAIStub) -> None:
    async def work(client: openai.AsyncOpenAI) -> Any:
        options: Any = {"model": "m", "messages": [user(QUESTION)]}
        plain = await client.chat.completions.create(**options)
        raw = await client.chat.completions.with_raw_response.create(**options)
        assert raw.parse().choices[0].message.content == "two"
        async with client.chat.completions.with_streaming_response.create(**options) as unread:
            parsed = await unread.parse()
        assert parsed.choices[0].message.content == "three"
        return plain

    stub.reply("one", "two", "three")
    assert run(stub, work).choices[0].message.content == "one"
    assert [lineage(span)["outputs"] for span in spans.of("answer")] == [
        [ref(memtrace.answer(text))] for text in ("one", "two", "three")
    ]


def test_raw_and_streaming_responses_make_answers(
    spans: Spans, stub: OpenAIStub, client: openai.OpenAI
) -> None:
    stub.reply("one", "two")
    options: Any = {"model": "m", "messages": [user(QUESTION)]}
    raw = client.chat.completions.with_raw_response.create(**options)
    assert raw.headers["content-type"] == "application/json"
    with client.chat.completions.with_streaming_response.create(**options) as unread:
        assert json.loads(unread.read())["choices"][0]["message"]["content"] == "two"
    assert [lineage(span)["outputs"] for span in spans.of("answer")] == [
        [ref(memtrace.answer(text))] for text in ("one", "two")
    ]


def test_concurrent_calls_keep_apart(spans: Spans, stub: OpenAIStub) -> None:
    def echo(request: dict[str, Any]) -> str:
        return "echo of " + str(request["messages"][-1]["content"])

    async def one(client: openai.AsyncOpenAI, number: int) -> None:
        with memtrace.graph(f"user:{number}"):
            messages: Any = [user(f"question {number}")]
            await client.chat.completions.create(model="m", messages=messages)

    async def work(client: openai.AsyncOpenAI) -> None:
        await asyncio.gather(*(one(client, number) for number in range(8)))

    stub.reply(*[echo] * 8)
    run(stub, work)
    seen = {
        span["attributes"]["memtrace.graph.id"]: (
            lineage(span)["inputs"],
            lineage(span)["outputs"],
        )
        for span in spans.of("answer")
    }
    assert seen == {
        f"user:{n}": (
            [ref(memtrace.query(f"question {n}"))],
            [ref(memtrace.answer(f"echo of question {n}"))],
        )
        for n in range(8)
    }


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, openai.AuthenticationError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
    ],
)
def test_an_error_reaches_the_program_unchanged(
    spans: Spans, stub: OpenAIStub, client: openai.OpenAI, status: int, kind: type[Exception]
) -> None:
    stub.reply(Reply(("no",), status=status))
    with pytest.raises(kind) as caught:
        ask(client, user(QUESTION))
    assert caught.value.__cause__ is None
    span = spans.one("answer")
    assert span["attributes"]["error.type"] == f"openai.{kind.__name__}"
    assert span["status"] == "ERROR"
    assert lineage(span)["inputs"] == [ref(memtrace.query(QUESTION))]
    assert "outputs" not in lineage(span)


def test_a_connection_error_reaches_the_program_unchanged(spans: Spans, stub: OpenAIStub) -> None:
    async def work(client: openai.AsyncOpenAI) -> None:
        messages: Any = [user(QUESTION)]
        await client.chat.completions.create(model="m", messages=messages)

    async def main() -> None:
        await work(openai.AsyncOpenAI(base_url="http://127.0.0.1:1/v1", api_key="k", max_retries=0))

    with pytest.raises(openai.APIConnectionError):
        asyncio.run(main())
    assert spans.one("answer")["attributes"]["error.type"] == "openai.APIConnectionError"


# Streams


def test_a_stream_is_one_answer(spans: Spans, stub: OpenAIStub, client: openai.OpenAI) -> None:
    stub.reply("She lives in Lisbon.")
    stream = ask(client, user(QUESTION), stream=True)
    assert isinstance(stream, openai.Stream)
    assert stream.response.status_code == 200
    assert spans.of("answer") == []
    text = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
    assert text == "She lives in Lisbon."
    assert lineage(spans.one("answer"))["outputs"] == [ref(memtrace.answer(text))]
    assert "cut" not in lineage(spans.one("answer"))


def test_an_async_stream_is_one_answer(spans: Spans, stub: OpenAIStub) -> None:
    async def work(client: openai.AsyncOpenAI) -> None:
        messages: Any = [user(QUESTION)]
        stream = await client.chat.completions.create(model="m", messages=messages, stream=True)
        assert isinstance(stream, openai.AsyncStream)
        async with stream:
            assert len([chunk async for chunk in stream]) > 2

    stub.reply("She lives in Lisbon.")
    run(stub, work)
    outputs = lineage(spans.one("answer"))["outputs"]
    assert outputs == [ref(memtrace.answer("She lives in Lisbon."))]


def test_several_streamed_choices_are_several_answers(
    spans: Spans, stub: OpenAIStub, client: openai.OpenAI
) -> None:
    stub.reply(Reply(("In Lisbon.", "Lisbon, I think.")))
    list(ask(client, user(QUESTION), stream=True, n=2))
    assert len(lineage(spans.one("answer"))["outputs"]) == 2


def test_the_stream_helper_and_a_raw_stream_are_seen(
    spans: Spans, stub: OpenAIStub, client: openai.OpenAI
) -> None:
    stub.reply("one answer", "two answers")
    messages: Any = [user(QUESTION)]
    with client.chat.completions.stream(model="m", messages=messages) as helper:
        assert helper.get_final_completion().choices[0].message.content == "one answer"
    raw = client.chat.completions.with_raw_response.create(
        model="m", messages=messages, stream=True
    )
    list(raw.parse())
    assert [lineage(span)["outputs"] for span in spans.of("answer")] == [
        [ref(memtrace.answer("one answer"))],
        [ref(memtrace.answer("two answers"))],
    ]


@pytest.mark.parametrize("leave", ["close", "with", "forget"])
def test_an_abandoned_stream_records_what_was_read(
    spans: Spans, stub: OpenAIStub, client: openai.OpenAI, leave: str
) -> None:
    stub.reply("She lives in Lisbon, I believe.")
    stream = ask(client, user(QUESTION), stream=True)
    if leave == "with":
        with stream:
            next(stream), next(stream)
    else:
        next(stream), next(stream)
    if leave == "close":
        stream.close()
    if leave == "forget":
        del stream
    span = until_one(spans)
    assert lineage(span)["outputs"] == [ref(memtrace.answer("She "))]
    assert lineage(span)["cut"] == lineage(span)["outputs"]
    assert span["status"] == "UNSET"


def test_an_abandoned_async_stream_records_what_was_read(spans: Spans, stub: OpenAIStub) -> None:
    async def work(client: openai.AsyncOpenAI) -> None:
        messages: Any = [user(QUESTION)]
        stream = await client.chat.completions.create(model="m", messages=messages, stream=True)
        async with stream:
            await stream.__anext__()
            await stream.__anext__()

    stub.reply("She lives in Lisbon, I believe.")
    run(stub, work)
    assert lineage(until_one(spans))["outputs"] == [ref(memtrace.answer("She "))]


def test_a_stream_that_was_never_read_still_ends(
    spans: Spans, stub: OpenAIStub, client: openai.OpenAI
) -> None:
    stub.reply("She lives in Lisbon.")
    ask(client, user(QUESTION), stream=True).response.close()
    span = until_one(spans)
    assert lineage(span)["inputs"] == [ref(memtrace.query(QUESTION))]
    assert "outputs" not in lineage(span)


def test_leaving_a_stream_after_its_last_text_is_no_loss(
    spans: Spans, stub: OpenAIStub, client: openai.OpenAI
) -> None:
    stub.reply("Yes.")
    stream = ask(client, user(QUESTION), stream=True)
    for chunk in stream:
        if chunk.choices[0].finish_reason:
            break
    stream.close()
    assert lineage(until_one(spans))["outputs"] == [ref(memtrace.answer("Yes."))]
    assert "cut" not in lineage(spans.one("answer"))


def test_an_error_in_the_reader_of_a_stream_passes(
    spans: Spans, stub: OpenAIStub, client: openai.OpenAI
) -> None:
    stub.reply("She lives in Lisbon.")
    with (
        pytest.raises(ZeroDivisionError),
        ask(client, user(QUESTION), stream=True) as stream,
    ):
        next(stream)
        raise ZeroDivisionError
    until_one(spans)


# Tools


def test_a_tool_loop_makes_one_answer_at_its_end(
    spans: Spans, stub: OpenAIStub, client: openai.OpenAI
) -> None:
    search = ToolCall("search_memory", '{"query": "where Ann lives"}')
    stub.reply(Reply(("",), tool_calls=(search,)), "In Lisbon.")
    first = ask(client, user(QUESTION)).choices[0].message
    retrieve("where Ann lives")
    result = {"role": "tool", "tool_call_id": "call_1", "content": json.dumps([MEMORY])}
    ask(client, user(QUESTION), first.model_dump(exclude_none=True), result)
    asked, answered = map(lineage, spans.of("answer"))
    assert asked["outputs"] == [ref(memtrace.query("where Ann lives"))]
    assert answered["outputs"] == [ref(memtrace.answer("In Lisbon."))]
    delivered = lineage(spans.one("retrieve"))["delivered"]
    assert of_kind(answered["inputs"], "mem") == delivered
    assert answered["inferred"][0] == ref(memtrace.query(QUESTION))


def test_what_the_model_saves_by_a_tool_is_a_fact(
    spans: Spans, stub: OpenAIStub, client: openai.OpenAI
) -> None:
    calls = (
        ToolCall("archival_memory_insert", '{"content": "Ann likes tea"}'),
        ToolCall("get_weather", '{"city": "Lisbon"}', "call_2"),
    )
    stub.reply(Reply(("Noted.",), tool_calls=calls))
    list(ask(client, user("Remember that I like tea"), stream=True))
    assert lineage(spans.one("answer"))["outputs"] == [ref(memtrace.fact("Ann likes tea"))]


# What a call belongs to


@pytest.mark.parametrize("step", ["extract", "decide", "consolidate", "rerank", "judge", "add"])
def test_a_call_inside_a_memory_operation_belongs_to_it(
    spans: Spans, stub: OpenAIStub, client: openai.OpenAI, step: str
) -> None:
    stub.reply("fine")
    with memtrace.operation(step, system="notes"):
        ask(client, user(QUESTION))
    assert spans.steps() == [step]


def test_suppressed_instrumentation_records_nothing(
    spans: Spans, stub: OpenAIStub, client: openai.OpenAI
) -> None:
    stub.reply("fine")
    with suppress_instrumentation():
        ask(client, user(QUESTION))
    assert spans.all() == []


def test_other_requests_are_left_alone(
    spans: Spans, stub: OpenAIStub, client: openai.OpenAI
) -> None:
    client.embeddings.create(model="m", input=["text"])
    assert spans.all() == []


def test_an_answer_is_a_child_of_the_current_span_and_current_itself_while_it_runs(
    spans: Spans, stub: OpenAIStub, client: openai.OpenAI
) -> None:
    stub.reply("fine")
    tracer = spans.provider.get_tracer("app")
    with tracer.start_as_current_span("turn") as turn:
        ask(client, user(QUESTION))
        assert trace.get_current_span() is turn
    span = spans.one("answer")
    assert span["parent_span_id"] == trace.format_span_id(turn.get_span_context().span_id)


# Lineage of prompts


def test_a_hand_made_rag_agent_is_understood(
    spans: Spans, stub: OpenAIStub, client: openai.OpenAI
) -> None:
    chunks = ["Refunds are possible within 30 days of delivery.", "Shipping costs five euros flat."]
    with memtrace.operation("retrieve", system="faiss", graph_id="corpus:handbook") as op:
        op.inputs(memtrace.query("How long can I return it?"))
        for position, chunk in enumerate(chunks):
            op.delivered(memtrace.document(chunk, f"handbook/{position}"), 0.9 - position / 10)
    stub.reply("30 days.")
    framed = f"Context:\n* {chunks[0]}\n\nQuestion: How long can I return it?"
    ask(client, {"role": "system", "content": "Answer from the context."}, user(framed))
    span, reading = spans.one("answer"), spans.one("retrieve")
    found = lineage(span)
    query = ref(memtrace.query("How long can I return it?"))
    first, second = lineage(reading)["delivered"]
    assert found["inputs"][:2] == [query, first]
    assert second not in found["inputs"]
    assert found["inferred"] == [query, first]
    assert found["from"] == {first: f"{reading['trace_id']}-{reading['span_id']}"}
    assert found["shown"] == [ref(memtrace.context(framed))]
    assert span["attributes"]["memtrace.graph.id"] == "corpus:handbook"
    assert span["links"][0]["span_id"] == reading["span_id"]


def test_a_memory_goes_before_a_document_in_choosing_the_graph(
    spans: Spans, stub: OpenAIStub, client: openai.OpenAI
) -> None:
    with memtrace.operation("retrieve", system="faiss", graph_id="corpus:cities") as op:
        op.inputs(memtrace.query(QUESTION))
        op.delivered(memtrace.document("Lisbon is in Portugal.", "cities/1"))
    retrieve()
    stub.reply("In Lisbon.")
    ask(client, {"role": "system", "content": f"{MEMORY}\nLisbon is in Portugal."}, user(QUESTION))
    span = spans.one("answer")
    assert span["attributes"]["memtrace.graph.id"] == "user:ann"
    assert lineage(span)["reads"] == ["corpus:cities"]


def test_a_declared_graph_goes_before_what_was_matched(
    spans: Spans, stub: OpenAIStub, client: openai.OpenAI
) -> None:
    retrieve()
    stub.reply("In Lisbon.")
    with memtrace.graph("user:team"):
        ask(client, {"role": "system", "content": MEMORY}, user(QUESTION))
    span = spans.one("answer")
    assert span["attributes"]["memtrace.graph.id"] == "user:team"
    assert lineage(span)["reads"] == ["user:ann"]


def test_without_a_matched_delivery_the_graph_is_where_the_question_was_looked_up(
    spans: Spans, stub: OpenAIStub, client: openai.OpenAI
) -> None:
    retrieve()
    stub.reply("I do not know.")
    ask(client, user(QUESTION))
    assert spans.one("answer")["attributes"]["memtrace.graph.id"] == "user:ann"


def test_of_equal_texts_the_one_delivered_in_this_trace_is_meant(
    spans: Spans, stub: OpenAIStub, client: openai.OpenAI
) -> None:
    tracer = spans.provider.get_tracer("app")
    with tracer.start_as_current_span("turn"):
        retrieve(graph="user:ann")
        with tracer.start_as_current_span(
            "elsewhere", context=trace.set_span_in_context(trace.INVALID_SPAN)
        ):
            retrieve(graph="user:bob")
        stub.reply("In Lisbon.")
        ask(client, {"role": "system", "content": MEMORY}, user(QUESTION))
    span = spans.one("answer")
    assert span["attributes"]["memtrace.graph.id"] == "user:ann"
    assert "reads" not in lineage(span)


def test_a_long_context_agent_lists_its_conversation(
    spans: Spans, stub: OpenAIStub, client: openai.OpenAI
) -> None:
    with memtrace.operation("ingest", system="chat", graph_id="user:ann") as op:
        op.outputs(memtrace.message("I moved to Lisbon.", "conv-1/1"))
    talk: list[dict[str, Any]] = [user("I moved to Lisbon.")]
    stub.reply("Noted!", "Portugal.", "You moved to Lisbon.")
    for follow in ("Which country is that?", "What did I tell you?"):
        reply = ask(client, *talk).choices[0].message.content
        talk += [{"role": "assistant", "content": reply}, user(follow)]
    ask(client, *talk)
    found = lineage(spans.of("answer")[2])
    assert found["inputs"] == [
        ref(memtrace.query("What did I tell you?")),
        ref(memtrace.answer("Portugal.")),
        ref(memtrace.query("Which country is that?")),
        ref(memtrace.answer("Noted!")),
        ref(memtrace.message("I moved to Lisbon.", "conv-1/1")),
    ]
    assert found["inferred"] == found["inputs"][1:]


def test_a_transcript_in_one_message_is_taken_apart(
    spans: Spans, stub: OpenAIStub, client: openai.OpenAI
) -> None:
    said = ["I moved to Lisbon in May.", "My sister stayed in Porto though."]
    with memtrace.operation("ingest", system="chat", graph_id="user:ann") as op:
        op.outputs(*(memtrace.message(text, f"conv-1/{n}") for n, text in enumerate(said)))
    stub.reply("In Porto.")
    transcript = "Conversation:\n" + "\n".join(f"Ann: {text}" for text in said)
    ask(client, {"role": "system", "content": transcript}, user("Where is my sister?"))
    found = lineage(spans.one("answer"))
    assert of_kind(found["inputs"], "msg") == [
        ref(memtrace.message(said[1], "conv-1/1")),
        ref(memtrace.message(said[0], "conv-1/0")),
    ]
    assert found["shown"] == [ref(memtrace.context(transcript))]


def test_parts_of_a_message_are_read_and_others_left_out(
    spans: Spans, stub: OpenAIStub, client: openai.OpenAI
) -> None:
    stub.reply("A cat.")
    parts = [
        {"type": "text", "text": "What is on it?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]
    ask(client, {"role": "user", "content": parts})
    assert lineage(spans.one("answer"))["inputs"] == [ref(memtrace.query("What is on it?"))]


# Switching on and off


def test_uninstrumenting_restores_the_library() -> None:
    places: list[tuple[type, str]] = [
        (_base_client.SyncAPIClient, "request"),
        (_base_client.AsyncAPIClient, "request"),
        (_base_client.SyncAPIClient, "_process_response"),
        (_base_client.AsyncAPIClient, "_process_response"),
        (_streaming.Stream, "__init__"),
        (_streaming.AsyncStream, "__init__"),
    ]
    before = [owner.__dict__[name] for owner, name in places]
    OpenAIInstrumentor().instrument()
    during = [owner.__dict__[name] for owner, name in places]
    OpenAIInstrumentor().uninstrument()
    after = [owner.__dict__[name] for owner, name in places]
    assert all(new is not old for new, old in zip(during, before, strict=True))
    assert all(new is old for new, old in zip(after, before, strict=True))


def test_without_an_sdk_nothing_happens(
    stub: OpenAIStub, client: openai.OpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memtrace_otel import runtime
    from memtrace_otel.runtime import Runtime

    before = runtime.install(Runtime())
    OpenAIInstrumentor().instrument()
    try:
        stub.reply("fine", "fine")
        assert ask(client, user(QUESTION)).choices[0].message.content == "fine"
        assert len(list(ask(client, user(QUESTION), stream=True))) == 3
    finally:
        OpenAIInstrumentor().uninstrument()
        runtime.install(before)


def test_a_fault_of_ours_does_not_reach_the_program(
    spans: Spans, stub: OpenAIStub, client: openai.OpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memtrace_otel.instrumentors import openai_call

    def broken(*args: Any, **kwargs: Any) -> Any:
        raise ValueError("a fault of ours")

    monkeypatch.setenv("MEMTRACE_RAISE_INTERNAL", "0")
    for name in ("trace_prompt", "_tool_outputs"):
        with monkeypatch.context() as patch:
            patch.setattr(openai_call, name, broken)
            stub.reply("fine", "fine")
            assert ask(client, user(QUESTION)).choices[0].message.content == "fine"
            assert len(list(ask(client, user(QUESTION), stream=True))) == 3


def test_a_stream_that_is_open_when_the_process_exits_is_recorded(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(LEAVES_A_STREAM_OPEN)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment["MEMTRACE_DIGEST_KEY"] = "plain"
    done = subprocess.run(
        [sys.executable, str(program)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.split() == ["memtrace.answer", "memtrace.farewell"], done.stderr


LEAVES_A_STREAM_OPEN = """
import openai
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from memtrace_otel.instrumentors.openai import OpenAIInstrumentor
from tests.instrumentors.openai_stub import OpenAIStub

exporter = ConsoleSpanExporter(formatter=lambda span: span.name + chr(10))
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
OpenAIInstrumentor().instrument()
with OpenAIStub(lambda request: "She lives in Lisbon.") as stub:
    client = openai.OpenAI(base_url=stub.base_url, api_key="k")
    messages = [{"role": "user", "content": "Where does Ann live?"}]
    stream = client.chat.completions.create(model="m", messages=messages, stream=True)
    next(stream), next(stream)
"""
