"""The stand-in is right unless a fault is planted, and knows what it said."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from openai import InternalServerError, OpenAI
from openai.types.chat import ChatCompletionMessageFunctionToolCall

from memtrace_collector.bench.planned import PlannedCase, Planting
from memtrace_collector.bench.plantings import Plantings
from memtrace_collector.bench.stand_in.model import StandIn
from memtrace_collector.bench.stand_in.replies import DECLINES
from memtrace_collector.bench.stand_in.server import served
from memtrace_collector.bench.stand_in.writing import stamped
from memtrace_collector.demo.decision import Memory
from tests.memtrace_collector.bench import bench_kit as kit

SYSTEM = "mem0-1"
CHANGED = Planting(
    kind="value_changed",
    message=kit.PRICE,
    detail={"old": "240", "new": "310", "reply": "310 euros"},
)


def model_of(case: PlannedCase, *, clean: bool = False) -> StandIn:
    model = StandIn()
    model.begin(case, Plantings(() if clean else case.plantings))
    return model


def extracted(model: StandIn) -> list[str]:
    return model.extract(model.case.messages)


def answered(model: StandIn, *lines: str) -> tuple[str, bool]:
    reply = model.answer("\n".join(f"- {line}" for line in lines))
    return reply, model.judge(reply)


def test_what_it_extracts_carries_the_answer_with_the_day_it_was_said() -> None:
    model = model_of(kit.case(SYSTEM))
    (fact,) = (text for text in extracted(model) if "bicycle" in text)
    assert fact == "Ana has a red bicycle now, Ana paid 240 euros for it yesterday (7 May 2023)."
    reply, right = answered(model, *extracted(model))
    assert right
    assert "240 euros" in reply


def test_the_message_itself_carries_the_answer_too() -> None:
    model = model_of(kit.case(SYSTEM))
    assert answered(model, *map(stamped, kit.messages()))[1]


def test_without_the_evidence_it_is_wrong_or_declines() -> None:
    model = model_of(kit.case(SYSTEM))
    others = [text for text in extracted(model) if "bicycle" not in text]
    reply, right = answered(model, *others)
    assert not right
    assert "240" not in reply


def test_a_relative_date_without_its_day_carries_nothing() -> None:
    when = kit.question(
        text="When did Ana buy the bicycle?", expected="7 May 2023", category="temporal"
    )
    model = model_of(kit.case(SYSTEM, question=when))
    bought = next(message for message in kit.messages() if message.id == kit.PRICE)
    assert answered(model, stamped(bought))[1]
    assert not answered(model, bought.text)[1]


def test_a_changed_value_leads_to_its_own_reply_and_only_when_planted() -> None:
    case = kit.case(SYSTEM, CHANGED)
    model = model_of(case)
    facts = extracted(model)
    assert any("310 euros" in fact for fact in facts)
    assert answered(model, *facts) == ("310 euros", False)
    clean = model_of(case, clean=True)
    assert answered(clean, *extracted(clean))[1]


def test_an_unanswerable_question_is_rightly_declined() -> None:
    unknown = kit.question(text="What did Ana's car cost?", expected="", evidence=())
    model = model_of(kit.case(SYSTEM, question=unknown))
    reply, right = answered(model, *extracted(model))
    assert right
    assert reply in DECLINES


@pytest.mark.parametrize("kind", ["declined", "took_another", "misread", "ignored"])
def test_an_answer_s_fault_makes_a_reply_that_is_known_to_be_wrong(kind: str) -> None:
    detail = {"reply": "950 crowns"} if kind in ("misread", "ignored") else {}
    question = kit.question(text="How much did Ana pay for the bicycle in the park?")
    model = model_of(kit.case(SYSTEM, Planting(kind=kind, detail=detail), question=question))
    reply, right = answered(model, *extracted(model))
    assert not right
    assert "240" not in reply


def test_an_older_value_is_replaced_and_stays_beside_only_when_planted() -> None:
    older = "Ana wants to pay 150 euros for a red bicycle."
    detail = {"earlier": "m1", "text": older, "reply": "150 euros", "old": "240", "new": "150"}
    case = kit.case(SYSTEM, Planting(kind="left_beside", message=kit.PRICE, detail=detail))
    for clean, event in ((True, "UPDATE"), (False, "ADD")):
        model = model_of(case, clean=clean)
        facts = [fact for fact in extracted(model) if "240" in fact]
        (action,) = model.decide(facts, [Memory("0", older)])
        assert action.event == event


def test_a_merge_never_touches_the_evidence_unless_planted() -> None:
    for kind, lost in (("", False), ("written_over", True), ("deleted", True)):
        plantings = (Planting(kind=kind, message=kit.PRICE),) if kind else ()
        model = model_of(kit.case(SYSTEM, *plantings))
        facts = extracted(model)
        record = Memory("0", next(fact for fact in facts if "bicycle" in fact))
        others = [fact for fact in facts if "bicycle" not in fact]
        actions = model.decide(others, [record])
        assert any(action.id == "0" for action in actions) == lost


def test_the_same_case_gives_the_same_words() -> None:
    runs = []
    for _ in range(2):
        model = model_of(kit.case(SYSTEM))
        runs.append([extracted(model), answered(model, *extracted(model)), model.embed("tea")])
    assert runs[0] == runs[1]


@pytest.fixture
def client_of() -> Iterator[tuple[StandIn, OpenAI]]:
    model = model_of(kit.case("langgraph"))
    with served(model) as url, OpenAI(base_url=url, api_key="none", max_retries=0) as client:
        yield model, client


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {
                "type": "object",
                "properties": {argument: {"type": "string"}},
                "required": [argument],
            },
        },
    }
    for name, argument in (("save_memory", "content"), ("search_memory", "query"))
]


def called(client: OpenAI, text: str) -> list[tuple[str, dict[str, str]]]:
    completion = client.chat.completions.create(
        model="any",
        messages=[{"role": "user", "content": text}],
        tools=TOOLS,  # type: ignore[arg-type]  # plain dicts are what the endpoint gets anyway
    )
    found = []
    for call in completion.choices[0].message.tool_calls or ():
        assert isinstance(call, ChatCompletionMessageFunctionToolCall)
        found.append((call.function.name, json.loads(call.function.arguments)))
    return found


def test_over_http_it_saves_what_it_hears_and_searches_what_it_is_asked(
    client_of: tuple[StandIn, OpenAI],
) -> None:
    model, client = client_of
    heard = next(message for message in kit.messages() if message.id == kit.PRICE)
    ((name, arguments),) = called(client, heard.text)
    assert name == "save_memory"
    assert "240 euros" in arguments["content"]
    asked = model.case.question.text
    assert called(client, asked) == [("search_memory", {"query": asked})]


def test_over_http_it_fails_once_when_told_to(client_of: tuple[StandIn, OpenAI]) -> None:
    model, client = client_of
    prompt = f"- {kit.LINES[4][1]}\n\nQuestion: {model.case.question.text}"
    model.fail_next_call()
    with pytest.raises(InternalServerError):
        client.chat.completions.create(model="any", messages=[{"role": "user", "content": prompt}])
    completion = client.chat.completions.create(
        model="any", messages=[{"role": "user", "content": prompt}]
    )
    assert model.judge(completion.choices[0].message.content or "")
