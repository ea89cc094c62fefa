"""Cases whose texts leave something open, and the judge under test over real HTTP."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from memtrace_collector.attribution.model.ask import Asker
from memtrace_collector.attribution.model.budget import Budget, Limits, Prices, Usage
from memtrace_collector.attribution.model.cache import Cache
from memtrace_collector.attribution.model.endpoint import Endpoint
from memtrace_collector.attribution.model.judge import AUTO, ModelJudge
from memtrace_collector.graph import flags
from memtrace_collector.graph.case import Case
from memtrace_collector.graph.facts import SpanFacts
from memtrace_collector.graph.loader import load_case
from memtrace_collector.store.in_memory import InMemoryFactStore
from memtrace_collector.telemetry.metrics import NULL_METRICS, Metrics
from tests.contract import scenarios
from tests.contract.held_out.story import Story

NO_LIMIT = Limits(calls=1_000, tokens=10_000_000)
PRICES = Prices(prompt=1.0, completion=2.0)
QUESTION = "Why did my sister Vera move to Graz?"
EXPECTED = "to be closer to her parents"
REPLY = "She moved nearer to her mother and father."
"""Says it in words of which the rules cannot tell whether they say it."""
SOURCE = "Vera moved to Graz to be closer to her parents."


def case_of(story: Story, *, evidence_given: bool = True) -> Case:
    return case_from(scenarios.facts_of(story.otlp()), evidence_given=evidence_given)


def case_from(facts: Iterable[SpanFacts], *, evidence_given: bool = True) -> Case:
    store = InMemoryFactStore.of(facts)
    (flag,) = store.flags()
    answer = flags.resolve(store, flag)
    assert answer is not None
    return load_case(store, answer, flag, evidence_given=evidence_given)


@contextmanager
def endpoint_at(base_url: str, **options: Any) -> Iterator[Endpoint]:
    options = {"timeout_seconds": 5.0, "retries": 0, **options}
    with closing(Endpoint("stub-model", base_url=base_url, **options)) as endpoint:
        yield endpoint


@contextmanager
def judge_with(
    endpoint: Endpoint,
    *,
    method: str = AUTO,
    cut: float = 0.8,
    case: Limits = NO_LIMIT,
    run: Limits = NO_LIMIT,
    cache: Path | None = None,
    metrics: Metrics = NULL_METRICS,
    seed: int = 7,
) -> Iterator[ModelJudge]:
    with closing(Cache(cache)) as kept:
        asker = Asker(endpoint, kept, Budget(run, PRICES), _price, metrics, random.Random(seed))
        yield ModelJudge(asker, _budget(case), method, cut)


@contextmanager
def asking(base_url: str, **options: Any) -> Iterator[ModelJudge]:
    with endpoint_at(base_url) as endpoint, judge_with(endpoint, **options) as judge:
        yield judge


def _price(usage: Usage) -> float:
    return PRICES.of(usage.prompt, usage.completion)


def _budget(limits: Limits) -> Callable[[], Budget]:
    return lambda: Budget(limits, PRICES)


DIET = "Vera wants to live close to her mother and father in Graz"
"""A record that says it in other words: the texts leave it open."""
JOB = "Vera moved to Graz close to a big hospital where she works"
"""A record on the same subject that does not say it."""


def ranked_out_paraphrase(record: str = DIET, reply: str = "I don't know.") -> Story:
    """The record was stored, was a candidate and was dropped: ranked_out if it carries it."""
    story = Story("ada")
    story.day(1)
    learned = story.learn(SOURCE, record)
    other = story.learn("The dentist is on Tuesday.")
    story.ask(QUESTION, 20)
    found = story.retrieve(other.record, dropped=[[learned.record, 0.4, "limit", 2]])
    context = story.assemble(other.record)
    story.answer(reply, context)
    story.flag(EXPECTED, learned.message)
    assert found
    return story


def open_reply(reply: str = "Her parents are nearby there.") -> Story:
    """Whether the reply is right is open."""
    story = Story("ada")
    story.day(1)
    learned = story.learn(SOURCE)
    story.turn(QUESTION, reply, learned.record)
    story.flag(EXPECTED, learned.message)
    return story
