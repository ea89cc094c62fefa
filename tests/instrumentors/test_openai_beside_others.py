"""Whichever instrumentation came first: one span per request, with our lineage on it."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Iterator
from typing import Any

import openai
import pytest
import wrapt
from opentelemetry import trace
from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor as OpenAIV2Instrumentor
from opentelemetry.instrumentation.utils import suppress_instrumentation
from opentelemetry.trace import Span

import memtrace_otel as memtrace
from memtrace_otel import semconv, testing
from memtrace_otel.instrumentors import openai_spans
from memtrace_otel.instrumentors.openai import OpenAIInstrumentor
from memtrace_otel.testing import Spans, lineage
from tests.instrumentors.openai_stub import OpenAIStub, Reply

QUESTION = "Where does Ann live now?"
ANSWER = "She lives in Lisbon."

Install = Callable[[Spans], Callable[[], None]]


@pytest.fixture(autouse=True)
def _raise_internal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMTRACE_RAISE_INTERNAL", "1")


@pytest.fixture
def stub() -> Iterator[OpenAIStub]:
    with OpenAIStub() as server:
        yield server


def openai_v2(spans: Spans) -> Callable[[], None]:
    """The instrumentation of OpenTelemetry's contributors: wraps ``Completions.create``."""
    instrumentor = OpenAIV2Instrumentor()
    instrumentor.instrument(tracer_provider=spans.provider)
    return instrumentor.uninstrument


def request_wrapper(spans: Spans) -> Callable[[], None]:
    """As OpenInference and Logfire do it: ``request`` of the clients, overridden by name."""
    tracer = spans.provider.get_tracer("wrapper")
    attributes = {"openinference.span.kind": "LLM"}

    def request(wrapped: Any, client: Any, args: Any, kwargs: Any) -> Any:
        with tracer.start_as_current_span("ChatCompletion", attributes=attributes):
            return wrapped(*args, **kwargs)

    async def request_async(wrapped: Any, client: Any, args: Any, kwargs: Any) -> Any:
        with tracer.start_as_current_span("AsyncChatCompletion", attributes=attributes):
            return await wrapped(*args, **kwargs)

    wrapt.wrap_function_wrapper("openai", "OpenAI.request", request)
    wrapt.wrap_function_wrapper("openai", "AsyncOpenAI.request", request_async)

    def restore() -> None:
        del openai.OpenAI.request
        del openai.AsyncOpenAI.request

    return restore


def ours(spans: Spans) -> Callable[[], None]:
    OpenAIInstrumentor().instrument()
    return OpenAIInstrumentor().uninstrument


@pytest.fixture(params=[openai_v2, request_wrapper], ids=lambda other: str(other.__name__))
def other(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=["ours first", "ours second"])
def spans(request: pytest.FixtureRequest, other: Install) -> Iterator[Spans]:
    first, second = (ours, other) if request.param == "ours first" else (other, ours)
    with testing.capture() as captured:
        installed = [first(captured), second(captured)]
        try:
            yield captured
        finally:
            for remove in reversed(installed):
                remove()


def options(**more: Any) -> Any:
    return {"model": "m", "messages": [{"role": "user", "content": QUESTION}], **more}


def connect(stub: OpenAIStub) -> openai.OpenAI:
    return openai.OpenAI(base_url=stub.base_url, api_key="k", max_retries=0)


def llm_span(spans: Spans) -> dict[str, Any]:
    [span] = spans.all()
    assert span["attributes"][semconv.MEMTRACE_STEP] == "answer"
    assert span["name"] in ("chat m", "ChatCompletion", "AsyncChatCompletion")
    return span


def assert_answered(span: dict[str, Any], text: str = ANSWER) -> None:
    assert lineage(span)["inputs"] == [memtrace.query(QUESTION).ref]
    assert lineage(span)["outputs"] == [memtrace.answer(text).ref]


def test_a_completion_has_one_span(spans: Spans, stub: OpenAIStub) -> None:
    stub.reply(ANSWER)
    with connect(stub) as client:
        client.chat.completions.create(**options())
    assert_answered(llm_span(spans))


def test_an_async_completion_has_one_span(spans: Spans, stub: OpenAIStub) -> None:
    async def main() -> None:
        async with openai.AsyncOpenAI(base_url=stub.base_url, api_key="k") as client:
            await client.chat.completions.create(**options())

    stub.reply(ANSWER)
    asyncio.run(main())
    assert_answered(llm_span(spans))


def test_a_raw_response_has_one_span(spans: Spans, stub: OpenAIStub) -> None:
    stub.reply(ANSWER)
    with connect(stub) as client:
        client.chat.completions.with_raw_response.create(**options()).parse()
    assert_answered(llm_span(spans))


def test_an_error_is_on_the_one_span(
    request: pytest.FixtureRequest, spans: Spans, stub: OpenAIStub
) -> None:
    stub.reply(Reply(("no",), status=401))
    with connect(stub) as client, pytest.raises(openai.AuthenticationError):
        client.chat.completions.create(**options())
    [span] = spans.all()
    assert span["status"] == "ERROR"
    if "ours second-request_wrapper" not in request.node.name:  # see the instrumentor's docstring
        assert lineage(span)["inputs"] == [memtrace.query(QUESTION).ref]


@pytest.mark.parametrize("other", [openai_v2], ids=["openai_v2"], indirect=True)
class TestStreams:
    """The span stays open while the program reads."""

    def test_a_stream_has_one_span(self, spans: Spans, stub: OpenAIStub) -> None:
        stub.reply(ANSWER)
        with connect(stub) as client:
            for _ in client.chat.completions.create(**options(stream=True)):
                assert spans.all() == []
        assert_answered(llm_span(spans))

    def test_an_async_stream_has_one_span(self, spans: Spans, stub: OpenAIStub) -> None:
        async def main() -> None:
            async with openai.AsyncOpenAI(base_url=stub.base_url, api_key="k") as client:
                stream = await client.chat.completions.create(**options(stream=True))
                assert len([chunk async for chunk in stream]) > 2

        stub.reply(ANSWER)
        asyncio.run(main())
        assert_answered(llm_span(spans))

    @pytest.mark.parametrize("leave", ["close", "with"])
    def test_a_stream_that_is_left_early_has_one_span(
        self, spans: Spans, stub: OpenAIStub, leave: str
    ) -> None:
        stub.reply(ANSWER)
        with connect(stub) as client:
            stream = client.chat.completions.create(**options(stream=True))
            if leave == "close":
                next(stream), next(stream)
                stream.close()
            else:
                with stream:
                    next(stream), next(stream)
            assert_answered(llm_span(spans), "She ")
            stream.stream.close()
        assert len(spans.all()) == 1

    def test_a_stream_whose_span_never_ends_has_a_span_of_ours(
        self, spans: Spans, stub: OpenAIStub
    ) -> None:
        stub.reply(ANSWER)
        with connect(stub) as client:
            stream = client.chat.completions.create(**options(stream=True))
            next(stream), next(stream)
            del stream
            deadline = time.monotonic() + 5
            while not spans.all() and time.monotonic() < deadline:
                gc.collect()
                time.sleep(0.005)
        [span] = spans.all()
        assert span["name"] == "memtrace.answer"
        assert span["parent_span_id"]
        assert_answered(span, "She ")


@pytest.mark.parametrize("other", [request_wrapper], ids=["request_wrapper"], indirect=True)
def test_a_stream_whose_span_ends_before_it_is_read_has_a_span_below(
    spans: Spans, stub: OpenAIStub
) -> None:
    stub.reply(ANSWER)
    with connect(stub) as client:
        list(client.chat.completions.create(**options(stream=True)))
    ended, answer = spans.all()
    assert ended["name"] == "ChatCompletion"
    assert semconv.MEMTRACE_STEP not in ended["attributes"]
    assert answer["parent_span_id"] == ended["span_id"]
    assert_answered(answer)


def test_a_span_whose_owner_suppresses_others_still_has_the_lineage(stub: OpenAIStub) -> None:
    with testing.capture() as spans:
        remove = ours(spans)
        try:
            stub.reply(ANSWER)
            tracer = spans.provider.get_tracer("logfire")
            attributes = {"gen_ai.operation.name": "chat"}
            with (
                connect(stub) as client,
                tracer.start_as_current_span("Chat Completion", attributes=attributes),
                suppress_instrumentation(),
            ):
                client.chat.completions.create(**options())
        finally:
            remove()
        [span] = spans.all()
        assert_answered(span)


def test_two_requests_under_one_span_are_two_answers(stub: OpenAIStub) -> None:
    with testing.capture() as spans:
        remove = ours(spans)
        try:
            stub.reply("one", "two")
            tracer = spans.provider.get_tracer("framework")
            with connect(stub) as client, tracer.start_as_current_span("chat m"):
                client.chat.completions.create(**options())
                client.chat.completions.create(**options())
        finally:
            remove()
        first, second = spans.of("answer")
    assert {first["name"], second["name"]} == {"chat m", "memtrace.answer"}
    assert first["span_id"] != second["span_id"]


@pytest.mark.parametrize(
    ("name", "attributes", "adopted"),
    [
        ("chat gpt", {}, True),
        ("chat/completions", {}, True),
        ("chatbot turn", {}, False),
        ("x", {"gen_ai.operation.name": "chat"}, True),
        ("chat", {"gen_ai.operation.name": "embeddings"}, False),
        ("chat agent", {"gen_ai.operation.name": "invoke_agent"}, False),
        ("x", {"openinference.span.kind": "LLM"}, True),
        ("chat", {"openinference.span.kind": "CHAIN"}, False),
        ("openai.chat", {"llm.request.type": "chat"}, True),
        ("openai.embeddings", {"llm.request.type": "embedding"}, False),
        ("GET /", {}, False),
    ],
)
def test_which_spans_are_adopted(name: str, attributes: dict[str, str], adopted: bool) -> None:
    with testing.capture() as spans:
        span: Span = spans.provider.get_tracer("t").start_span(name, attributes=attributes)
        with trace.use_span(span, end_on_exit=True):
            assert (openai_spans.adoptable() is span) is adopted
        with trace.use_span(span):
            assert openai_spans.adoptable() is None, "it has ended"
