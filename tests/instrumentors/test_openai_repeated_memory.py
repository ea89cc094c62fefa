"""An answer that repeated a memory word for word is no source of later prompts that hold it."""

from __future__ import annotations

from memtrace_otel.containment import RecentValues
from memtrace_otel.instrumentors.openai_lineage import trace_prompt
from memtrace_otel.instrumentors.openai_prompt import USER, Message, Prompt

MEMORY = "The user's flight leaves from Shenzhen in March."
EARLIER, NOW = ("1" * 32, "1" * 16), ("2" * 32, "2" * 16)


def _inputs(*messages: Message) -> list[str]:
    recent = RecentValues(max_items=100, max_chars=10_000)
    recent.add("mem:mem0:1@abc", MEMORY, EARLIER, "user:u", "delivered")
    recent.add("ans:abc@abc", MEMORY, EARLIER, "user:u", "answer")
    recent.add("mem:mem0:1@abc", MEMORY, NOW, "user:u", "delivered")
    matches = recent.find([message.text for message in messages])
    return [str(item) for item in trace_prompt(Prompt(messages=messages), matches).inputs]


def test_the_memory_alone_is_the_source_where_both_would_match():
    assert "ans:abc@abc" not in _inputs(Message(USER, f"Memories:\n- {MEMORY}\nWhere from?"))


def test_the_answer_is_a_source_where_it_is_a_message_of_its_own():
    turns = (Message("assistant", MEMORY), Message(USER, "And when?"))
    assert "ans:abc@abc" in _inputs(*turns)
