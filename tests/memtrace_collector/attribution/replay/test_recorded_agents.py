"""Traces of a real mem0 and the real openai client, as an agent makes them, replayed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import openai
import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from memtrace_collector.attribution.attribute import attribute
from memtrace_collector.attribution.model.budget import Budget, Limits, Prices
from memtrace_collector.attribution.replay.answer import Endpoint
from memtrace_collector.attribution.replay.replay import Replayer, Settings
from memtrace_collector.attribution.verdict import Verdict
from memtrace_collector.dialects import registry
from memtrace_collector.graph.facts import (
    DEFAULT_TENANT,
    Flag,
    Operation,
    OperationKey,
    SpanFacts,
)
from memtrace_collector.graph.loader import load_case
from memtrace_collector.store.in_memory import InMemoryFactStore
from memtrace_otel.instrumentors.openai import OpenAIInstrumentor
from tests.instrumentors import mem0_kit as kit
from tests.instrumentors.openai_stub import OpenAIStub
from tests.memtrace_collector.attribution.replay.cases import reader

MODEL = "agent-model"
RULES = "You answer questions about the user. If you do not know, say: I do not know."
QUESTION = "Which city does the user live in?"


@dataclass
class Agent:
    """Remembers and answers; everything it does is recorded."""

    world: kit.World
    exporter: InMemorySpanExporter

    def remember(self, said: str, fact: str, event: str = "ADD", id: str = "0") -> None:
        action = {"id": id, "text": fact, "event": event}
        message = {"role": "user", "content": said}
        self.world.add([message], {"facts": [fact]}, {"memory": [action]})

    def answer(self, reply: str, *, limit: int, in_system: bool = False) -> None:
        found = self.world.search(QUESTION, limit=limit)
        listed = "Memories:\n" + "\n".join(f"* {item['memory']}" for item in found)
        messages = (
            [("system", f"{RULES}\n{listed}"), ("user", QUESTION)]
            if in_system
            else [("system", RULES), ("user", f"{listed}\n\nQuestion: {QUESTION}")]
        )
        self.world.stub.reply(reply)
        with openai.OpenAI(base_url=self.world.stub.base_url, api_key="k") as client:
            client.chat.completions.create(
                model=MODEL,
                messages=[{"role": role, "content": text} for role, text in messages],  # type: ignore[misc]  # one literal type per role
            )

    def replayed(self, expected: str, endpoint_url: str) -> Verdict:
        """The verdict on the answer, replayed through an endpoint."""
        request = encode_spans(self.exporter.get_finished_spans())
        facts = list(registry.read_request(DEFAULT_TENANT, request))
        operations = [each.operation for each in facts if each.operation]
        answer = next(op for op in operations if op.step == "answer")
        flag = Flag(trace_id=answer.trace_id, span_id=answer.span_id, expected=expected, origin="t")
        store = InMemoryFactStore.of([*facts, SpanFacts(flags=(flag,))])
        spans = {
            OperationKey(span.trace_id.hex(), span.span_id.hex()): span.attributes
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        }
        with closing(Endpoint(endpoint_url)) as endpoint:
            return _replayed(store, answer, flag, spans, endpoint)


def _replayed(
    store: InMemoryFactStore,
    answer: Operation,
    flag: Flag,
    spans: dict[OperationKey, list[KeyValue]],
    endpoint: Endpoint,
) -> Verdict:
    budget = Budget(Limits(calls=10, tokens=100_000), Prices())
    replayer = Replayer(spans.__getitem__, endpoint, budget, Settings(runs=1))
    return replayer.judge(attribute)(load_case(store, answer, flag))


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    if kit.MAJOR != 1:
        pytest.skip("decisions of mem0 1.x are replayed")
    OpenAIInstrumentor().instrument()
    try:
        with kit.world(tmp_path) as world:
            exporter = InMemorySpanExporter()
            world.spans.provider.add_span_processor(SimpleSpanProcessor(exporter))
            yield Agent(world, exporter)
    finally:
        OpenAIInstrumentor().uninstrument()


def test_an_overwritten_memory_put_back_answers_the_question(agent: Agent) -> None:
    agent.remember("I live in Lisbon since May.", "The user lives in the city of Lisbon")
    agent.remember("My sister moved to Porto.", "The user's sister moved to Porto", "UPDATE")
    agent.answer("I do not know.", limit=1)
    with OpenAIStub(reader()) as stub:
        verdict = agent.replayed("Lisbon", stub.base_url)
    assert verdict.error_type in ("overwritten", "merged_wrong")
    assert verdict.replay is not None
    assert verdict.replay["result"] == "confirmed"
    assert "replay" in verdict.basis
    repaired, control = (request["messages"] for request in stub.chat_requests)
    recorded = agent.world.stub.chat_requests[-1]["messages"]
    assert control == recorded
    assert repaired[0] == recorded[0]
    assert repaired[1]["content"] == recorded[1]["content"].replace(
        "The user's sister moved to Porto", "The user lives in the city of Lisbon"
    )


@pytest.mark.parametrize("in_system", [False, True])
def test_the_prompt_of_an_ordinary_agent_is_rebuilt_word_for_word(
    agent: Agent, in_system: bool
) -> None:
    agent.remember("I live in Lisbon since May.", "The user lives in the city of Lisbon")
    agent.answer("I do not know.", limit=1, in_system=in_system)
    with OpenAIStub(lambda _: "I do not know.") as stub:
        verdict = agent.replayed("Lisbon", stub.base_url)
    assert verdict.error_type == "wrong_abstention"
    assert verdict.replay is not None
    assert verdict.replay["result"] == "reproduced"
    (asked,) = stub.chat_requests
    assert asked["messages"] == agent.world.stub.chat_requests[-1]["messages"]
    assert asked["model"] == MODEL


def test_our_own_calls_are_never_recorded(agent: Agent) -> None:
    agent.remember("I live in Lisbon since May.", "The user lives in the city of Lisbon")
    agent.answer("I do not know.", limit=1)
    before = len(agent.exporter.get_finished_spans())
    with OpenAIStub(reader()) as stub:
        agent.replayed("Lisbon", stub.base_url)
    assert stub.chat_requests
    assert len(agent.exporter.get_finished_spans()) == before
