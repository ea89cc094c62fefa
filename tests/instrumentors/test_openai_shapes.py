"""Reading requests, replies and tool calls of every shape, without a network."""

from __future__ import annotations

from typing import Any

import pytest

from memtrace_otel.instrumentors import openai_prompt, openai_reply, openai_tools
from memtrace_otel.instrumentors.openai_prompt import Message
from memtrace_otel.instrumentors.openai_reply import Reply, ToolCall
from memtrace_otel.instrumentors.openai_tools import Purpose


@pytest.mark.parametrize(
    ("path", "answerable"),
    [
        ("/chat/completions", True),
        ("/openai/deployments/m/chat/completions", True),
        ("/responses", True),
        ("/responses/resp_1/cancel", False),
        ("/embeddings", False),
        ("/completions", False),
    ],
)
def test_which_requests_ask_for_an_answer(path: str, answerable: bool) -> None:
    assert openai_prompt.is_answerable(path) is answerable


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        "text",
        {},
        {"messages": None, "model": 7},
        {"messages": [None, "x", {}, {"role": 3, "content": "x"}, {"role": "user"}]},
        {"messages": [{"role": "user", "content": [None, 3, {"type": "text"}]}]},
        {"messages": [{"role": "alien", "content": "x"}]},
    ],
)
def test_a_request_of_unknown_shape_has_no_messages(body: Any) -> None:
    prompt = openai_prompt.read("/chat/completions", body)
    assert prompt.messages == ()
    assert prompt.question is None


def test_every_role_of_a_chat_is_read() -> None:
    roles = ["developer", "user", "assistant", "tool", "user", "function"]
    messages = [{"role": role, "content": role} for role in roles]
    prompt = openai_prompt.read("/chat/completions", {"messages": messages})
    assert [message.role for message in prompt.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "user",
        "tool",
    ]
    assert prompt.question == 4


def test_every_item_of_a_responses_input_is_read() -> None:
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No"}]},
        {"type": "function_call", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "output": [{"type": "input_text", "text": "done"}]},
        {"type": "item_reference", "id": "x"},
    ]
    prompt = openai_prompt.read("/responses", {"input": items, "instructions": "Be kind."})
    assert prompt.messages == (
        Message("system", "Be kind."),
        Message("user", "Hi"),
        Message("assistant", "No"),
        Message("tool", "done"),
    )


@pytest.mark.parametrize("body", [None, 3, "text", [], {}, {"choices": [None, 3]}, {"output": 3}])
def test_a_reply_of_unknown_shape_has_no_answer(body: Any) -> None:
    reply = Reply()
    reply.read(body)
    reply.read_chunk(body)
    assert all(not choice.text and not choice.calls for choice in reply.choices.values())


def test_a_refusal_is_an_answer() -> None:
    reply = Reply()
    reply.read({"choices": [{"message": {"content": None, "refusal": "I cannot."}}]})
    assert reply.choices[0].text == "I cannot."


def test_streamed_tool_calls_are_put_together() -> None:
    reply = Reply()
    deltas: list[dict[str, Any]] = [
        {"tool_calls": [{"index": 0, "function": {"name": "save_memory", "arguments": '{"a"'}}]},
        {"tool_calls": [{"index": 1, "function": {"name": "other", "arguments": "{}"}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]},
    ]
    for delta in deltas:
        reply.read_chunk({"id": "r", "choices": [{"index": 0, "delta": delta}]})
    assert reply.choices[0].tool_calls == (
        ToolCall("save_memory", '{"a":1}'),
        ToolCall("other", "{}"),
    )
    assert not reply.choices[0].finished


def test_a_streamed_response_without_its_end_has_what_was_seen() -> None:
    reply = Reply()
    reply.read_chunk({"type": "response.created", "response": {"id": "r", "model": "m"}})
    item = {"type": "function_call", "name": "search_docs"}
    reply.read_chunk({"type": "response.output_item.added", "output_index": 1, "item": item})
    reply.read_chunk(
        {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": "{}"}
    )
    reply.read_chunk({"type": "response.output_text.delta", "delta": "Hi"})
    assert (reply.id, reply.model, reply.choices[0].text) == ("r", "m", "Hi")
    assert reply.choices[0].tool_calls == (ToolCall("search_docs", "{}"),)
    assert not reply.choices[0].finished


def test_an_endless_choice_is_bounded() -> None:
    reply = Reply()
    piece = "x" * 600_000
    for _ in range(3):
        reply.read_chunk({"choices": [{"index": 0, "delta": {"content": piece}}]})
    assert len(reply.choices[0].text) <= openai_reply.MAX_CHOICE_CHARS
    assert reply.choices[0].clipped


def test_the_number_of_choices_and_calls_is_bounded() -> None:
    reply = Reply()
    calls = [{"index": n, "function": {"name": "f"}} for n in range(10_000)]
    for index in range(1_000):
        reply.read_chunk({"choices": [{"index": index, "delta": {"content": "x"}}]})
    reply.read_chunk({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]})
    assert len(reply.choices) == openai_reply.MAX_PARTS
    assert len(reply.choices[0].calls) == openai_reply.MAX_PARTS


@pytest.mark.parametrize(
    ("name", "purpose"),
    [
        ("search_memory", Purpose.READ),
        ("archival_memory_search", Purpose.READ),
        ("conversation_search", Purpose.READ),
        ("searchKnowledgeBase", Purpose.READ),
        ("retrieve_docs", Purpose.READ),
        ("recall", Purpose.READ),
        ("file_search", Purpose.READ),
        ("add_memory", Purpose.WRITE),
        ("core_memory_append", Purpose.WRITE),
        ("core_memory_replace", Purpose.WRITE),
        ("manage_memory", Purpose.WRITE),
        ("saveNote", Purpose.WRITE),
        ("add_observations", Purpose.WRITE),
        ("remember", Purpose.WRITE),
        ("delete_memory", None),
        ("get_weather", None),
        ("web_search", None),
        ("send_email", None),
        ("create_order", None),
        ("", None),
    ],
)
def test_memory_tools_are_known_by_name(name: str, purpose: Purpose | None) -> None:
    assert openai_tools.purpose(name) is purpose


@pytest.mark.parametrize(
    ("arguments", "purpose", "expected"),
    [
        ('{"query": "tea", "limit": 3}', Purpose.READ, ["tea"]),
        ('{"queries": ["tea", "milk"]}', Purpose.READ, ["tea", "milk"]),
        ('{"about": "tea", "k": 3}', Purpose.READ, ["tea"]),
        ('{"content": "Ann likes tea"}', Purpose.WRITE, ["Ann likes tea"]),
        ('{"label": "human", "new_content": "likes tea"}', Purpose.WRITE, ["likes tea"]),
        (
            '{"subject": "Ann", "object": "tea"}',
            Purpose.WRITE,
            [{"subject": "Ann", "object": "tea"}],
        ),
        ("{}", Purpose.READ, []),
        ("", Purpose.READ, []),
        ("Ann likes tea", Purpose.WRITE, ["Ann likes tea"]),
        ("[1, 2]", Purpose.READ, []),
    ],
)
def test_what_a_memory_tool_is_given(
    arguments: str, purpose: Purpose, expected: list[object]
) -> None:
    assert openai_tools.texts(ToolCall("tool", arguments), purpose) == expected
