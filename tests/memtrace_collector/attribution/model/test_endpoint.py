"""One call over real HTTP: retries, time-outs, concurrency, JSON mode, keys."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import Any

import pytest

from memtrace_collector.attribution.model.budget import estimate
from memtrace_collector.attribution.model.embeddings import EndpointEmbedder
from memtrace_collector.attribution.model.endpoint import (
    FAILURES_UNTIL_PAUSE,
    PAUSE_SECONDS,
    Endpoint,
    EndpointError,
)
from memtrace_collector.attribution.model.questions import Message
from memtrace_collector.attribution.model.similarity import EmbeddingError
from memtrace_collector.attribution.replay import answer as replay
from memtrace_collector.errors import MemtraceError
from memtrace_collector.settings.model import ModelConfig, key_for
from tests.instrumentors.openai_stub import OpenAIStub, Reply
from tests.sinks import sink

PROMPT = (Message("system", "Say something."), Message("user", "Please."))


@pytest.mark.fault("F23")
@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_passing_failure_is_tried_again(status: int) -> None:
    with OpenAIStub() as stub, closing(Endpoint("m", base_url=stub.base_url, retries=2)) as asked:
        stub.reply(Reply(("busy",), status=status), "{}")
        assert asked.complete(PROMPT, 50).content == "{}"
        assert len(stub.chat_requests) == 2


@pytest.mark.fault("F23")
def test_a_refusal_is_not_tried_again() -> None:
    with OpenAIStub() as stub, closing(Endpoint("m", base_url=stub.base_url, retries=2)) as asked:
        stub.reply(Reply(("no such key",), status=401))
        with pytest.raises(EndpointError, match="no such key"):
            asked.complete(PROMPT, 50)
        assert len(stub.chat_requests) == 1


@pytest.mark.fault("F36")
@pytest.mark.parametrize("status", [302, 307, 308])
def test_no_redirect_of_an_endpoint_is_followed(status: int) -> None:
    with sink() as elsewhere, sink(status, elsewhere.url) as redirecting:
        url = f"{redirecting.url}/v1"
        with (
            closing(Endpoint("m", base_url=url, retries=1)) as asked,
            pytest.raises(EndpointError, match=str(status)),
        ):
            asked.complete(PROMPT, 50)
        with closing(replay.Endpoint(url, "key")) as replaying, pytest.raises(MemtraceError):
            replaying.complete("m", (), {})
        embedder = EndpointEmbedder("m", base_url=url, key="", timeout_seconds=5, retries=0)
        with closing(embedder), pytest.raises(EmbeddingError, match=str(status)):
            embedder.embed(["text"])
        assert len(redirecting.bodies) == 3 and elsewhere.bodies == []


@pytest.mark.fault("F23")
def test_a_slow_endpoint_is_given_up() -> None:
    release = threading.Event()

    def slow(_: dict[str, Any]) -> str:
        release.wait(10)
        return "{}"

    with (
        OpenAIStub(slow) as stub,
        closing(Endpoint("m", base_url=stub.base_url, timeout_seconds=0.2, retries=0)) as asked,
    ):
        try:
            with pytest.raises(EndpointError, match="Timeout"):
                asked.complete(PROMPT, 50)
        finally:
            release.set()


def test_no_more_calls_at_a_time_than_allowed() -> None:
    lock, full = threading.Lock(), threading.Event()
    running = most = 0

    def counted(_: dict[str, Any]) -> str:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            if running == 2:
                full.set()
        full.wait(5)
        with lock:
            running -= 1
        return "{}"

    with (
        OpenAIStub(counted) as stub,
        closing(Endpoint("m", base_url=stub.base_url, concurrency=2)) as asked,
    ):
        threads = [threading.Thread(target=asked.complete, args=(PROMPT, 50)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(stub.chat_requests) == 6
    assert most == 2


def test_json_mode_is_left_out_where_it_is_refused() -> None:
    def plain(request: dict[str, Any]) -> Reply:
        refused = "response_format" in request
        return (
            Reply(("response_format is not supported",), status=400) if refused else Reply(("{}",))
        )

    with OpenAIStub(plain) as stub, closing(Endpoint("m", base_url=stub.base_url)) as asked:
        assert [asked.complete(PROMPT, 50).content for _ in range(2)] == ["{}", "{}"]
        assert ["response_format" in each for each in stub.chat_requests] == [True, False, False]


def test_a_reasoning_model_gets_the_parameters_it_knows() -> None:
    def reasoning(request: dict[str, Any]) -> Reply:
        for name in ("temperature", "max_tokens"):
            if name in request:
                return Reply((f"Unsupported parameter: '{name}'",), status=400)
        return Reply(("{}",))

    with OpenAIStub(reasoning) as stub, closing(Endpoint("m", base_url=stub.base_url)) as asked:
        assert asked.complete(PROMPT, 50).content == "{}"
        assert stub.chat_requests[-1]["max_completion_tokens"] == 50
        assert stub.chat_requests[-1]["response_format"] == {"type": "json_object"}
        asked.complete(PROMPT, 50)
        assert len(stub.chat_requests) == 4


@pytest.mark.fault("F23")
def test_after_several_failures_nothing_is_sent_for_a_while() -> None:
    now = [0.0]
    with (
        OpenAIStub() as stub,
        closing(Endpoint("m", base_url=stub.base_url, retries=0, clock=lambda: now[0])) as asked,
    ):
        stub.reply(*[Reply(("down",), status=500)] * FAILURES_UNTIL_PAUSE, "{}")
        for _ in range(FAILURES_UNTIL_PAUSE + 2):
            with pytest.raises(EndpointError):
                asked.complete(PROMPT, 50)
        assert len(stub.chat_requests) == FAILURES_UNTIL_PAUSE
        now[0] = PAUSE_SECONDS
        assert asked.complete(PROMPT, 50).content == "{}"


def test_a_key_for_one_service_is_not_sent_to_another() -> None:
    environment = {"OPENAI_API_KEY": "theirs"}
    assert key_for(ModelConfig(), environment) == "theirs"
    elsewhere = ModelConfig(base_url="http://localhost:8000/v1")
    assert key_for(elsewhere, environment) == ""
    assert key_for(elsewhere, {**environment, "MEMTRACE_MODEL_API_KEY": "ours"}) == "ours"


@pytest.mark.parametrize(
    "text", ["The quick brown fox jumps over it.", "她住在慕尼黑。", "", "a" * 7]
)
def test_the_estimate_has_a_token_per_three_letters_or_half_a_sign(text: str) -> None:
    assert len(text) / 3 <= estimate(text) <= 2 * len(text)
