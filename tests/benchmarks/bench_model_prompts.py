"""Prompt tokens per asked case, by the size of its graph.

    python -m tests.benchmarks.bench_model_prompts 1000 10000

Every case has doubtful records on its subject, more with each size: what is asked must not grow.
Tokens are estimated from above without a tokenizer (one per three ASCII characters, two per other
character). A model that says "none" to everything costs most: every sentence is asked.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from memtrace_collector.attribution.model.budget import Limits, estimate
from memtrace_collector.settings.model import ModelConfig
from tests.contract.held_out.story import Story
from tests.instrumentors.openai_stub import OpenAIStub, Reply
from tests.memtrace_collector.attribution.model.cases import (
    DIET,
    EXPECTED,
    QUESTION,
    SOURCE,
    asking,
    case_of,
)
from tests.memtrace_collector.attribution.model.prompts import HonestModel

MOST_TOKENS = 2_000
_OPERATIONS_PER_RECORD = 5
MODELS = {"yes": HonestModel({"mother and father": EXPECTED}), "no": HonestModel({})}


class Size(NamedTuple):
    """What one case took: operations, calls, prompt tokens, verdict, seconds."""

    operations: int
    calls: int
    tokens: int
    verdict: str
    seconds: float


def story_of(operations: int) -> Story:
    """The doubtful record among others on the same subject, each of which is doubtful as well."""
    story = Story("ada").day(1)
    learned = story.learn(SOURCE, DIET)
    for number in range(operations // _OPERATIONS_PER_RECORD):
        story.day(1 + number / 1000)
        story.learn(f"Vera moved to Graz, close to stop {number}. She likes line {number}.")
    other = story.learn("The dentist is on Tuesday.")
    story.ask(QUESTION, 40)
    story.retrieve(other.record, dropped=[[learned.record, 0.4, "limit", 2]])
    story.answer("I don't know.", story.assemble(other.record))
    story.flag(EXPECTED, learned.message)
    return story


def counted(model: HonestModel) -> Callable[[dict[str, Any]], Reply]:
    """The model with its tokens counted as we estimate them."""

    def reply(request: dict[str, Any]) -> Reply:
        said = model(request)
        prompt = sum(estimate(message["content"]) for message in request["messages"])
        return Reply((said,), prompt_tokens=prompt, completion_tokens=estimate(said))

    return reply


def measure(operations: int, model: HonestModel) -> Size:
    case = case_of(story_of(operations))
    default = ModelConfig()
    limits = Limits(calls=default.case_calls, tokens=default.case_tokens)
    with OpenAIStub(counted(model)) as stub, asking(stub.base_url, seed=3, case=limits) as judge:
        begin = time.perf_counter()
        verdict = judge(case)
        seconds = time.perf_counter() - begin
        prompts = [m["content"] for request in stub.chat_requests for m in request["messages"]]
    tokens = sum(map(estimate, prompts))
    return Size(len(case.operations), len(prompts) // 2, tokens, verdict.error_type, seconds)


def main(sizes: list[int]) -> None:
    print("operations  model says  calls  prompt tokens  verdict  seconds")
    for size in sizes:
        for says, model in MODELS.items():
            found = measure(size, model)
            print(
                f"{size:10}  {says:10}  {found.calls:5}  {found.tokens:13}  {found.verdict}  "
                f"{found.seconds:.2f} ({found.operations} operations in the case)"
            )


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:]] or [1_000, 10_000])
