"""Cases to replay, and a model over real HTTP that reads its prompt."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import closing
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from memtrace_collector.attribution.attribute import attribute
from memtrace_collector.attribution.model.budget import Budget, Limits, Prices
from memtrace_collector.attribution.replay.answer import Endpoint
from memtrace_collector.attribution.replay.outcome import Replay
from memtrace_collector.attribution.replay.replay import Replayer, Settings
from memtrace_collector.attribution.verdict import Verdict
from memtrace_collector.graph import flags
from memtrace_collector.graph.case import Case
from memtrace_collector.graph.facts import OperationKey, SpanFacts
from memtrace_collector.graph.loader import load_case
from memtrace_collector.otlp.attributes import encode
from memtrace_collector.store.in_memory import InMemoryFactStore
from tests.contract import scenarios
from tests.memtrace_collector.attribution.scripts import Script

MODEL = "recorded-model"


def reader(cities: Iterable[str] = ("Lisbon",), unknown: str = "I do not know.") -> Any:
    """A model that says the first of the words that its prompt has."""

    def respond(request: dict[str, Any]) -> str:
        prompt = "\n".join(message["content"] for message in request["messages"])
        found = [city for city in cities if re.search(rf"\b{city}\b", prompt)]
        return f"It is {found[0]}." if found else unknown

    return respond


def attributes(model: str = MODEL, **more: str | int | float) -> list[KeyValue]:
    """What the answer's span says of its request."""
    return encode({"gen_ai.request.model": model, "gen_ai.request.temperature": 0.5, **more})


def vector(name: str, *, values: bool = True) -> Case:
    """The case of a contract vector."""
    facts = scenarios.facts(name)
    if not values:
        facts = [SpanFacts(operation=f.operation, flags=f.flags) for f in facts]
    return _case(InMemoryFactStore.of(facts))


def scripted(script: Script) -> Case:
    """The case of a script's last flag."""
    return _case(script.store(), script)


def _case(store: InMemoryFactStore, script: Script | None = None) -> Case:
    flag = script.flags[-1] if script else next(iter(store.flags()))
    answer = flags.resolve(store, flag)
    assert answer is not None
    return load_case(store, answer, flag)


def replay(
    case: Case,
    url: str,
    verdict: Verdict | None = None,
    *,
    runs: int = 3,
    calls: int = 100,
    span: Iterable[KeyValue] | None = None,
) -> Replay:
    """One replay of a case's verdict (by the rules) through an endpoint; no URL: without."""
    recorded = attributes() if span is None else span

    def attributes_of(_: OperationKey) -> Iterable[KeyValue]:
        return recorded

    budget = Budget(Limits(calls=calls, tokens=1_000_000), Prices())
    settings = Settings(runs=runs)
    if not url:
        return Replayer(attributes_of, None, budget, settings).replay(
            case, verdict or attribute(case)
        )
    with closing(Endpoint(url)) as endpoint:
        replayer = Replayer(attributes_of, endpoint, budget, settings)
        return replayer.replay(case, verdict or attribute(case))
