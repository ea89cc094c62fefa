from __future__ import annotations

import asyncio
import gc
import json
import threading
import time
from collections import deque
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import openai
import pytest

import memtrace_otel as memtrace
from memtrace_otel import testing
from memtrace_otel.instrumentors.openai import OpenAIInstrumentor
from memtrace_otel.testing import Spans, lineage

QUESTION = "Where does Ann live now?"
ANSWER = "She lives in Lisbon."

pytestmark = pytest.mark.skipif(
    not hasattr(openai.OpenAI, "responses"), reason="this openai has no responses"
)


def message(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": [part]}


def function_call(name: str, arguments: str) -> dict[str, Any]:
    item = {"type": "function_call", "id": "fc_1", "call_id": "call_1"}
    return {**item, "name": name, "arguments": arguments}


def response(*output: dict[str, Any], id: str = "resp_1", status: str = "completed") -> Any:
    return {
        "id": id,
        "object": "response",
        "created_at": 1_767_225_600,
        "status": status,
        "model": "stub-model",
        "output": list(output),
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
    }


def events(text: str) -> list[dict[str, Any]]:
    at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    part = {"type": "output_text", "text": "", "annotations": []}
    found: list[dict[str, Any]] = [
        {"type": "response.created", "response": response(status="in_progress")},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**message(""), "content": []},
        },
        {"type": "response.content_part.added", **at, "part": part},
    ]
    for start in range(0, len(text), 4):
        delta = text[start : start + 4]
        found.append({"type": "response.output_text.delta", **at, "delta": delta, "logprobs": []})
    found += [
        {"type": "response.output_text.done", **at, "text": text, "logprobs": []},
        {"type": "response.completed", "response": response(message(text))},
    ]
    return [{**event, "sequence_number": number} for number, event in enumerate(found)]


class Stub(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.replies: deque[Any] = deque()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Stub

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        reply = self.server.replies.popleft()
        if isinstance(reply, list):
            kind = "text/event-stream"
            lines = (f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in reply)
            body = "".join(lines).encode()
        else:
            kind, body = "application/json", json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def client(stub: Stub) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=stub.base_url, api_key="k", max_retries=0) as made:
        yield made


@pytest.fixture(autouse=True)
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Spans]:
    monkeypatch.setenv("MEMTRACE_RAISE_INTERNAL", "1")
    with testing.capture() as captured:
        OpenAIInstrumentor().instrument()
        try:
            yield captured
        finally:
            OpenAIInstrumentor().uninstrument()


def assert_answered(spans: Spans, text: str = ANSWER) -> None:
    span = spans.one("answer")
    assert span["attributes"]["gen_ai.response.id"] == "resp_1"
    assert span["attributes"]["gen_ai.response.model"] == "stub-model"
    assert lineage(span)["inputs"][0] == memtrace.query(QUESTION).ref
    assert lineage(span)["outputs"] == [memtrace.answer(text).ref]


def test_a_response_makes_an_answer(spans: Spans, stub: Stub, client: openai.OpenAI) -> None:
    stub.replies.append(response({"type": "reasoning", "id": "rs", "summary": []}, message(ANSWER)))
    made = client.responses.create(model="m", input=QUESTION, instructions="Be brief.")
    assert made.output_text == ANSWER
    assert_answered(spans)
    assert lineage(spans.one("answer"))["inputs"][1] == memtrace.prompt("Be brief.").ref


def test_an_async_response_makes_an_answer(spans: Spans, stub: Stub) -> None:
    async def main() -> None:
        async with openai.AsyncOpenAI(base_url=stub.base_url, api_key="k") as client:
            await client.responses.create(model="m", input=QUESTION)

    stub.replies.append(response(message(ANSWER)))
    asyncio.run(main())
    assert_answered(spans)


def test_a_streamed_response_is_one_answer(spans: Spans, stub: Stub, client: openai.OpenAI) -> None:
    stub.replies.append(events(ANSWER))
    stream = client.responses.create(model="m", input=QUESTION, stream=True)
    assert isinstance(stream, openai.Stream)
    assert [event.type for event in stream][-1] == "response.completed"
    assert_answered(spans)


def test_an_async_streamed_response_is_one_answer(spans: Spans, stub: Stub) -> None:
    async def main() -> None:
        async with openai.AsyncOpenAI(base_url=stub.base_url, api_key="k") as client:
            stream = await client.responses.create(model="m", input=QUESTION, stream=True)
            async for _ in stream:
                pass

    stub.replies.append(events(ANSWER))
    asyncio.run(main())
    assert_answered(spans)


def test_the_stream_helper_is_seen(spans: Spans, stub: Stub, client: openai.OpenAI) -> None:
    stub.replies.append(events(ANSWER))
    with client.responses.stream(model="m", input=QUESTION) as stream:
        assert stream.get_final_response().output_text == ANSWER
    assert_answered(spans)


def test_a_parsed_response_is_seen(spans: Spans, stub: Stub, client: openai.OpenAI) -> None:
    stub.replies.append(response(message(ANSWER)))
    client.responses.parse(model="m", input=QUESTION)
    assert_answered(spans)


def test_an_abandoned_response_records_what_was_read(
    spans: Spans, stub: Stub, client: openai.OpenAI
) -> None:
    stub.replies.append(events(ANSWER))
    for event in client.responses.create(model="m", input=QUESTION, stream=True):
        if event.type == "response.output_text.delta":
            break
    deadline = time.monotonic() + 5
    while not spans.of("answer") and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.005)
    assert_answered(spans, "She ")


def test_a_tool_loop_makes_one_answer_at_its_end(
    spans: Spans, stub: Stub, client: openai.OpenAI
) -> None:
    call = function_call("search_memory", '{"query": "where Ann lives"}')
    stub.replies += [response(call), response(message(ANSWER))]
    client.responses.create(model="m", input=QUESTION)
    result: Any = {
        "type": "function_call_output",
        "call_id": "call_1",
        "output": "Lisbon, since May",
    }
    history: Any = [{"role": "user", "content": QUESTION}, call, result]
    client.responses.create(model="m", input=history)
    asked, answered = map(lineage, spans.of("answer"))
    assert asked["outputs"] == [memtrace.query("where Ann lives").ref]
    assert answered["outputs"] == [memtrace.answer(ANSWER).ref]
    told = memtrace.message("Lisbon, since May").ref
    assert told in answered["inputs"]
    assert answered["roles"] == {told: "tool"}


def test_a_conversation_kept_by_the_api_has_its_last_answer_as_input(
    spans: Spans, stub: Stub, client: openai.OpenAI
) -> None:
    stub.replies += [response(message(ANSWER)), response(message("Yes."), id="resp_2")]
    client.responses.create(model="m", input=QUESTION)
    client.responses.create(model="m", input="Are you sure?", previous_response_id="resp_1")
    second = lineage(spans.of("answer")[1])
    assert second["inputs"] == [memtrace.query("Are you sure?").ref, memtrace.answer(ANSWER).ref]


def test_a_conversation_id_of_the_request_is_the_conversation(
    spans: Spans, stub: Stub, client: openai.OpenAI
) -> None:
    stub.replies += [response(message(ANSWER))] * 2
    client.responses.create(model="m", input=QUESTION, conversation={"id": "conv_9"})
    with memtrace.graph("user:ann", conversation_id="mine"):
        client.responses.create(model="m", input=QUESTION, conversation="conv_9")
    theirs, mine = (span["attributes"] for span in spans.of("answer"))
    assert theirs["gen_ai.conversation.id"] == "conv_9"
    assert mine["gen_ai.conversation.id"] == "mine"


def test_queries_of_the_built_in_file_search_are_outputs(
    spans: Spans, stub: Stub, client: openai.OpenAI
) -> None:
    search = {
        "type": "file_search_call",
        "id": "fs_1",
        "status": "completed",
        "queries": ["Ann home"],
    }
    stub.replies.append(response(search, message(ANSWER)))
    client.responses.create(model="m", input=QUESTION)
    assert lineage(spans.one("answer"))["outputs"] == [
        memtrace.query("Ann home").ref,
        memtrace.answer(ANSWER).ref,
    ]


def test_a_response_in_the_background_has_no_answer_yet(
    spans: Spans, stub: Stub, client: openai.OpenAI
) -> None:
    stub.replies.append(response(status="queued"))
    client.responses.create(model="m", input=QUESTION, background=True)
    assert "outputs" not in lineage(spans.one("answer"))
