"""What standard attributes say of a request; hostile shapes are left out."""

from __future__ import annotations

import json

import pytest

from memtrace_collector.attribution.replay.recorded import read_call
from memtrace_collector.otlp.attributes import encode


def _text(role: str, content: str) -> dict[str, object]:
    return {"role": role, "parts": [{"type": "text", "content": content}]}


def test_model_parameters_and_messages_are_read() -> None:
    messages = [_text("user", "Hi"), _text("assistant", "Hello"), _text("user", "Where?")]
    call = read_call(
        encode(
            {
                "gen_ai.request.model": "m",
                "gen_ai.request.temperature": 0.5,
                "gen_ai.request.max_tokens": 64,
                "gen_ai.request.seed": 7,
                "gen_ai.request.stop_sequences": ["END"],
                "gen_ai.input.messages": json.dumps(messages),
                "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "Be brief"}]),
            }
        )
    )
    assert call.model == "m"
    assert call.parameters == {"temperature": 0.5, "max_tokens": 64, "seed": 7, "stop": ["END"]}
    assert call.messages == (
        ("system", "Be brief"),
        ("user", "Hi"),
        ("assistant", "Hello"),
        ("user", "Where?"),
    )


@pytest.mark.parametrize(
    "messages",
    [
        "not json",
        "[" * 100_000,
        "{}",
        "[]",
        json.dumps(["text"]),
        json.dumps([_text("user", "Hi"), {"role": "user", "parts": [{"type": "image"}]}]),
        json.dumps([{"role": "tool", "parts": [{"type": "text", "content": "x"}]}]),
        json.dumps([{"role": "user", "parts": "text"}]),
        json.dumps([{"role": "user", "parts": [{"type": "text", "content": 5}]}]),
    ],
)
def test_messages_that_are_not_all_text_are_not_replayed_from_the_span(messages: str) -> None:
    assert read_call(encode({"gen_ai.input.messages": messages})).messages is None


def test_instructions_that_cannot_be_read_leave_the_prompt_incomplete() -> None:
    said = json.dumps([_text("user", "Hi")])
    told = {"gen_ai.input.messages": said, "gen_ai.system_instructions": "cut off ["}
    assert read_call(encode(told)).messages is None


def test_a_span_that_says_nothing_names_no_model() -> None:
    call = read_call(encode({"gen_ai.request.model": 5, "gen_ai.request.temperature": "hot"}))
    assert (call.model, call.parameters, call.messages) == ("", {}, None)
