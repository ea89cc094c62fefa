"""What prompts are made of, from messages and recently seen values alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import memtrace_otel as memtrace
from memtrace_otel import testing
from memtrace_otel.containment import Kind, RecentValues
from memtrace_otel.instrumentors.openai_lineage import PromptLineage, trace_prompt
from memtrace_otel.instrumentors.openai_prompt import Message, Prompt
from memtrace_otel.variables import Variable

HERE, ELSEWHERE = "1" * 32, "2" * 32


@pytest.fixture(autouse=True)
def _plain_digests() -> Iterator[None]:
    with testing.capture():
        yield


class Recent:
    """Values seen before the prompt."""

    def __init__(self) -> None:
        self._values = RecentValues()
        self._spans = 0

    def see(
        self, ref: str, text: str, kind: Kind, *, graph: str = "user:ann", trace_id: str = HERE
    ) -> None:
        self._spans += 1
        self._values.add(ref, text, (trace_id, f"{self._spans:016x}"), graph, kind)

    def trace(self, *messages: tuple[str, str], graph_id: str = "") -> PromptLineage:
        prompt = Prompt(messages=tuple(Message(role, text) for role, text in messages))
        matches = self._values.find([message.text for message in prompt.messages])
        return trace_prompt(prompt, matches, trace_id=HERE, graph_id=graph_id)


def refs(lineage: PromptLineage) -> list[str]:
    return [item.ref if isinstance(item, Variable) else item for item in lineage.inputs]


def test_a_memory_and_not_the_answer_that_repeated_it_is_the_source() -> None:
    recent = Recent()
    recent.see("mem:m:1@a", "Ann moved to Lisbon in May", "delivered")
    recent.see("ans:1@a", "Ann moved to Lisbon in May", "answer")
    lineage = recent.trace(("system", "Know: Ann moved to Lisbon in May."), ("user", "Where?"))
    assert refs(lineage) == [memtrace.query("Where?").ref, "mem:m:1@a"]


def test_an_earlier_answer_is_recognised_as_a_whole_message() -> None:
    recent = Recent()
    recent.see("ans:1@a", "Lisbon.", "answer")
    lineage = recent.trace(("user", "Where?"), ("assistant", "Lisbon."), ("user", "Sure?"))
    assert refs(lineage) == [
        memtrace.query("Sure?").ref,
        "ans:1@a",
        memtrace.message("Where?").ref,
    ]
    assert list(lineage.inferred) == ["ans:1@a"]


def test_an_answer_that_stands_in_an_instruction_is_no_source() -> None:
    recent = Recent()
    recent.see("ans:1@a", "I do not know that.", "answer")
    told = ("system", "If nothing fits, say: I do not know that.")
    assert "ans:1@a" not in refs(recent.trace(told, ("user", "Where?")))
    recent.see("msg:1@a", "Do you know when Ann moved?", "message")
    pasted = ("system", "So far: Do you know when Ann moved? I do not know that.")
    assert "ans:1@a" in refs(recent.trace(pasted, ("user", "Where?")))


def test_an_assistant_message_that_is_no_known_answer_is_a_message() -> None:
    recent = Recent()
    recent.see("mem:m:1@a", "Ann moved to Lisbon in May", "delivered")
    said = "You said: Ann moved to Lisbon in May"
    lineage = recent.trace(("assistant", said), ("user", "Sure?"))
    assert refs(lineage) == [
        memtrace.query("Sure?").ref,
        "mem:m:1@a",
        memtrace.message(said).ref,
    ]
    assert lineage.shown == []


def test_a_user_message_that_says_more_than_a_memory_stays_a_message() -> None:
    recent = Recent()
    recent.see("mem:m:1@a", "Ann likes green tea", "delivered")
    said = "Somebody claimed that Ann likes green tea, yet I saw her drink coffee all week long."
    lineage = recent.trace(("user", said), ("assistant", "Oh."), ("user", "So what is it?"))
    assert memtrace.message(said).ref in refs(lineage)
    assert "mem:m:1@a" in refs(lineage)


def test_a_framed_question_of_an_earlier_turn_is_that_question() -> None:
    recent = Recent()
    recent.see("mem:m:1@a", "Ann moved to Lisbon in May", "delivered")
    recent.see("query:1@a", "Where does Ann live?", "query")
    framed = "Context: Ann moved to Lisbon in May\nQuestion: Where does Ann live?"
    lineage = recent.trace(("user", framed), ("assistant", "There."), ("user", "Sure?"))
    assert refs(lineage) == [
        memtrace.query("Sure?").ref,
        "mem:m:1@a",
        memtrace.message("There.").ref,
        "query:1@a",
    ]
    assert [variable.content for variable in lineage.shown] == [framed]


def test_a_tool_result_made_of_deliveries_is_no_message_of_its_own() -> None:
    recent = Recent()
    recent.see("mem:m:1@a", "Ann moved to Lisbon in May", "delivered")
    dump = '{"results": ["Ann moved to Lisbon in May"]}'
    lineage = recent.trace(("user", "Where?"), ("tool", dump))
    assert refs(lineage) == [memtrace.query("Where?").ref, "mem:m:1@a"]
    assert [variable.content for variable in lineage.shown] == [dump]


def test_a_question_that_was_ingested_as_a_message_is_both() -> None:
    recent = Recent()
    recent.see("msg:c/1@a", "Where?", "message")
    recent.see("query:1@a", "Where?", "query", graph="user:bob")
    lineage = recent.trace(("user", "Where?"))
    assert refs(lineage) == ["query:1@a", "msg:c/1@a"]
    assert lineage.query_graph == "user:bob"


def test_of_equal_texts_the_declared_graph_goes_before_the_latest() -> None:
    recent = Recent()
    recent.see("mem:m:1@a", "Ann likes green tea", "delivered", trace_id=ELSEWHERE)
    recent.see("mem:m:2@a", "Ann likes green tea", "delivered", graph="g2", trace_id=ELSEWHERE)
    text = ("system", "Ann likes green tea!")
    assert refs(recent.trace(text)) == ["mem:m:2@a"]
    assert refs(recent.trace(text, graph_id="user:ann")) == ["mem:m:1@a"]


def test_only_a_delivery_names_its_origin() -> None:
    recent = Recent()
    recent.see("mem:m:1@a", "Ann likes green tea", "delivered")
    recent.see("msg:c/1@a", "I went to the sea", "message")
    lineage = recent.trace(("user", "I went to the sea"), ("user", "Ann likes green tea?"))
    assert lineage.inferred == {"mem:m:1@a": (HERE, "0" * 15 + "1"), "msg:c/1@a": None}


def test_a_prompt_without_a_user_message_has_no_question() -> None:
    lineage = Recent().trace(("system", "Say something."))
    assert refs(lineage) == [memtrace.prompt("Say something.").ref]
    assert lineage.graphs == ()


def test_of_a_very_long_conversation_the_oldest_messages_are_cut() -> None:
    talk = [("user" if n % 2 else "assistant", f"turn {n}") for n in range(1_501)]
    lineage = Recent().trace(*talk, ("user", "And?"))
    with testing.capture() as spans:
        operation = memtrace.start_operation("answer")
        operation.inputs(*lineage.inputs)
        operation.stop()
        written = testing.lineage(spans.one("answer"))
    assert len(written["inputs"]) == 1_000
    assert written["inputs"][:2] == [
        memtrace.query("And?").ref,
        memtrace.message("turn 1500").ref,
    ]
    assert written["truncated"] == {"inputs": 502}


def test_a_prompt_that_an_operation_assembled_is_its_context() -> None:
    text = "Know:\n- Ann moved to Lisbon in May\n\nQuestion: Where does Ann live?"
    assembled = memtrace.context(text)
    prompt = Prompt(messages=(Message("system", text), Message("user", "Where?")))
    lineage = trace_prompt(prompt, [], is_produced=lambda ref: ref == assembled.ref)
    assert refs(lineage) == [memtrace.query("Where?").ref, assembled.ref]
    assert lineage.shown == []
    unseen = trace_prompt(prompt, [])
    assert assembled.ref not in refs(unseen)
