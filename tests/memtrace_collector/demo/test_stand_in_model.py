"""The stand-in model does its job, and goes wrong only where its table says so."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest
import uvicorn
from mem0.configs.prompts import USER_MEMORY_EXTRACTION_PROMPT, get_update_memory_messages
from openai import OpenAI

from memtrace_collector.demo.answering import DONT_KNOW, answer
from memtrace_collector.demo.cases import EXCERPT, questions
from memtrace_collector.demo.decision import Memory, decide
from memtrace_collector.demo.embeddings import embed
from memtrace_collector.demo.extraction import extract_facts
from memtrace_collector.demo.faults import FaultTable
from memtrace_collector.demo.model import StandIn, application, planted_faults

STUDY = "User has decided on study sessions on Tuesdays and Thursdays from 8:00 PM to 9:30 PM."


def test_facts_are_the_users_own_statements_in_the_third_person():
    facts = extract_facts(
        "user: Hi! I'm flying out of **Shenzhen**. What's next?\n"
        "assistant: Great! I noted 12 days.\nuser: Thanks! My height is 165cm.\n"
    )
    assert facts == ["User is flying out of Shenzhen.", "User's height is 165cm."]


def test_relative_days_are_resolved_against_the_date_line():
    facts = extract_facts(
        "system: The current date is 2026-01-13 (Tuesday).\n"
        "user: I'll be working late tonight and tomorrow, probably past 10 PM.\n"
    )
    assert facts == [
        "User will be working late tonight (2026-01-13) and tomorrow (2026-01-14), "
        "probably past 10 PM."
    ]


def test_a_repeated_fact_changes_nothing_and_a_new_one_is_added():
    actions = decide([Memory("0", STUDY)], [STUDY, "User has the Britz Voyager booked."])
    assert [(a.id, a.event) for a in actions] == [("0", "NONE"), ("1", "ADD")]


def test_a_newer_number_updates_and_a_retraction_deletes():
    newer = STUDY.replace("8:00 PM", "7:00 PM")
    retracted = STUDY.replace("has decided on", "no longer has")
    assert decide([Memory("3", STUDY)], [newer])[0].event == "UPDATE"
    assert decide([Memory("3", STUDY)], [retracted])[0].event == "DELETE"


def test_a_question_is_answered_from_the_sections_it_asks_about():
    prompt = (
        "Memories of the user:\n- [2026-02-19] User wants the 'peace of mind' option.\n"
        "Handbook:\n- The claims desk has extension 4471.\n\n"
        "Question: Which option does the user want, and which claims desk extension "
        "does the handbook give?"
    )
    assert answer(prompt) == (
        "User wants the 'peace of mind' option. The claims desk has extension 4471."
    )


def test_what_the_context_does_not_hold_is_not_answered():
    assert answer("Memories of the user:\n- User loves hot pot.\n\nQuestion: Which airline?") == (
        DONT_KNOW
    )


def test_texts_that_share_words_are_nearer_than_others_and_vectors_are_stable():
    query, near, far = map(embed, ("the trip's budget", "budget for trips", "hiking boots"))
    assert _dot(query, near) > 0.6 > _dot(query, far)
    assert _dot(near, near) == pytest.approx(1.0)
    assert embed("budget for trips") == near


@pytest.mark.parametrize("question", [q for q in questions() if q.planted], ids=lambda q: q.id)
def test_a_planted_fault_changes_what_the_model_returns(question):
    fault = question.planted.fault
    table = FaultTable([fault])
    if fault["call"] == "extract":
        conversation = _session_with(question.planted.message)
        right = extract_facts(conversation)
        wrong = table.facts(conversation, right)
        assert wrong != right
        assert not any(_tokens(question.expected) <= _tokens(fact) for fact in wrong)
    elif fault["call"] == "decide":
        facts = extract_facts(_session_with(question.planted.message))
        old = Memory("0", f"The user said {fault['memory']}, once.")
        assert table.actions([old], facts, decide([old], facts))[0].event == fault["event"]
    elif fault["call"] == "answer":
        assert table.reply(question.question, question.expected) == fault["reply"]
    else:
        assert table.embedded_text(question.question) == fault["as_if"]


def test_evidence_stands_in_the_excerpt_and_carries_the_expected_answer():
    told = json.loads(EXCERPT.read_text("utf-8"))
    texts = {m["id"]: m["content"] for s in told["sessions"] for m in s["messages"]}
    for question in questions():
        evidence = [i for i in question.evidence if not i.startswith("handbook/")]
        assert all(message in texts for message in evidence), question.id
        if len(evidence) == len(question.evidence):
            said = _tokens(" ".join(texts[i] for i in evidence))
            assert _tokens(question.expected) - {"and"} <= said, question.id


def test_mem0s_own_prompts_are_recognised():
    model = StandIn()
    facts = model.complete(f"{USER_MEMORY_EXTRACTION_PROMPT}\nInput:\nuser: My height is 165cm.\n")
    assert json.loads(facts) == {"facts": ["User's height is 165cm."]}
    prompt = get_update_memory_messages([{"id": "0", "text": STUDY}], ["User loves hot pot."])
    assert [a["event"] for a in json.loads(model.complete(prompt))["memory"]] == ["NONE", "ADD"]
    first = get_update_memory_messages([], ["User loves hot pot."])
    assert [a["event"] for a in json.loads(model.complete(first))["memory"]] == ["ADD"]


@pytest.fixture
def client() -> Iterator[OpenAI]:
    config = uvicorn.Config(
        application(StandIn(planted_faults())), port=0, log_level="error", lifespan="off", ws="none"
    )
    server = uvicorn.Server(config)
    socket = config.bind_socket()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]})
    thread.start()
    url = f"http://127.0.0.1:{socket.getsockname()[1]}/v1"
    try:
        with closing(OpenAI(api_key="none", base_url=url)) as made:
            yield made
    finally:
        server.should_exit = True
        thread.join(10)


def test_the_openai_client_reads_completions_streams_and_embeddings(client):
    messages = [{"role": "user", "content": "- User loves hot pot.\nQuestion: loves hot pot?"}]
    whole = client.chat.completions.create(model="any", messages=messages)
    assert whole.choices[0].message.content == "User loves hot pot."
    chunks = list(client.chat.completions.create(model="any", messages=messages, stream=True))
    text = "".join(c.choices[0].delta.content or "" for c in chunks)
    assert text == "User loves hot pot."
    assert len({c.id for c in chunks}) == 1
    assert chunks[0].id != whole.id
    vectors = client.embeddings.create(model="any", input=["a", "b"], dimensions=16)
    assert [len(item.embedding) for item in vectors.data] == [16, 16]


def _session_with(message_id: str) -> str:
    sessions = json.loads(EXCERPT.read_text("utf-8"))["sessions"]
    session = next(s for s in sessions if any(m["id"] == message_id for m in s["messages"]))
    turns = "".join(f"{m['role']}: {m['content']}\n" for m in session["messages"])
    return f"system: The current date is {session['date']}.\n{turns}"


def _tokens(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9:]+", text.lower()))


def _dot(left: list[float], right: list[float]) -> float:
    return sum(a * b for a, b in zip(left, right))
