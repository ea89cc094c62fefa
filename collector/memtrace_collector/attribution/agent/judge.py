"""`--method agent`: a model explores the case with the graph questions.

The successor of MemTrace's GraphTraceAgent, for comparison. It ends only by naming an operation
of this case, checked against the case and the decision table, or by abstaining.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from memtrace_collector.attribution.agent import concluded
from memtrace_collector.attribution.agent.conversation import Call, Conversation, Turn, turn_of
from memtrace_collector.attribution.agent.ending import Abstain, NameOperation, objections
from memtrace_collector.attribution.agent.exploration import ABSTAIN, NAME, Exploration
from memtrace_collector.attribution.agent.transcript import Transcript
from memtrace_collector.attribution.model import spending
from memtrace_collector.attribution.model.budget import Budget, Limits, Prices, Usage, estimate
from memtrace_collector.attribution.model.endpoint import Endpoint, EndpointError
from memtrace_collector.attribution.verdict import Verdict
from memtrace_collector.graph.case import Case
from memtrace_collector.telemetry.metrics import NULL_METRICS, Metrics

AGENT = concluded.AGENT
MAX_COMPLETION_TOKENS = 1_000
MAX_CALLS_PER_TURN = 6
_GO_ON = f"Call a function: ask a question, or end with {NAME} or {ABSTAIN}."


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLimits:
    """What one exploration may take: replies of the model, tokens, seconds; ``cost`` in the
    currency of the prices, 0: not limited."""

    steps: int = 24
    tokens: int = 200_000
    seconds: float = 300.0
    cost: float = 0.0


class _StoppedError(Exception):
    """The exploration ends unconcluded; says why, ``reason`` in a word or two."""

    def __init__(self, says: str, reason: str) -> None:
        super().__init__(says)
        self.reason = reason


class AgentJudge:
    """Lets a model explore each case; safe for threads.

    Args:
        endpoint: the model.
        run: the budget of the run.
        prices: of its tokens.
        limits: of one case.
        metrics: told of calls, tokens and what came to nothing.
        rng: source of the marks around recorded texts; an attacker must not foresee them.
        clock: seconds.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        run: Budget,
        prices: Prices,
        limits: AgentLimits,
        metrics: Metrics = NULL_METRICS,
        rng: random.Random | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._endpoint, self._run, self._prices = endpoint, run, prices
        self._limits, self._metrics = limits, metrics
        self._rng = rng or secrets.SystemRandom()
        self._clock = clock

    def __call__(self, case: Case) -> Verdict:
        """The verdict on a case; where the model cannot be asked, that of the rules, which
        says so."""
        transcript = Transcript(self._endpoint.model)
        ending: NameOperation | Abstain | None
        try:
            ending = self._explored(case, transcript)
        except _StoppedError as error:
            transcript.stopped = str(error)
            self._metrics.add("memtrace.model.stopped", 1, reason=error.reason)
            ending = Abstain(reason=f"the exploration was stopped: {error}")
        except EndpointError as error:
            transcript.stopped = f"unreachable: {error}"
            self._metrics.add("memtrace.model.stopped", 1, reason="unreachable")
            ending = None
        cost = self._prices.of(transcript.prompt_tokens, transcript.completion_tokens)
        told = transcript.to_json(cost)
        if ending is None:
            return concluded.by_rules(case, told)
        if isinstance(ending, NameOperation):
            return concluded.named(case, ending, told)
        return concluded.abstained(case, ending, told)

    def _explored(self, case: Case, transcript: Transcript) -> NameOperation | Abstain:
        exploration = Exploration(case, self._rng)
        conversation = Conversation(exploration.instructions(), exploration.task())
        limits = self._limits
        budget = Budget(
            Limits(calls=limits.steps, tokens=limits.tokens, cost=limits.cost), self._prices
        )
        ends_at = self._clock() + limits.seconds
        tools = exploration.tools()
        size_of_tools = estimate(str(tools))
        while True:
            if self._clock() >= ends_at:
                raise _StoppedError(f"after {limits.seconds:g} seconds", "time")
            expected = Usage(
                prompt=conversation.size() + size_of_tools, completion=MAX_COMPLETION_TOKENS // 4
            )
            turn = self._turn(conversation, tools, expected, budget, transcript)
            ending = _taken(case, exploration, conversation, turn)
            if ending is not None:
                return ending

    def _turn(
        self,
        conversation: Conversation,
        tools: list[dict[str, object]],
        expected: Usage,
        budget: Budget,
        transcript: Transcript,
    ) -> Turn:
        if not budget.reserve(expected):
            raise _StoppedError(
                f"the budget of the case is spent after {transcript.count} steps", "case budget"
            )
        if not self._run.reserve(expected):
            raise _StoppedError("the budget of the run is spent", "run budget")
        used = None
        try:
            completion, used = self._endpoint.converse(
                conversation.messages(), tools, MAX_COMPLETION_TOKENS
            )
        finally:
            budget.settle(expected, used)
            self._run.settle(expected, used)
        spending.tell(self._metrics, used, self._prices.of(used.prompt, used.completion))
        turn = turn_of(completion)
        transcript.add(conversation.take_new(), turn.as_text(), used)
        return turn


def _taken(
    case: Case, exploration: Exploration, conversation: Conversation, turn: Turn
) -> NameOperation | Abstain | None:
    """Answer what the model called; its ending, when it is one that can stand."""
    conversation.said(turn)
    if not turn.calls:
        conversation.tell(_GO_ON)
    for number, call in enumerate(turn.calls):
        if number >= MAX_CALLS_PER_TURN:
            conversation.answer(call, f"not asked: more than {MAX_CALLS_PER_TURN} calls at once")
        elif call.arguments is None:
            conversation.answer(call, "the arguments are no JSON object")
        elif call.name in (NAME, ABSTAIN):
            ending = _ending(case, call)
            if not isinstance(ending, str):
                return ending
            conversation.answer(call, ending)
        else:
            conversation.answer(call, exploration.ask(call.name, call.arguments))
    return None


def _ending(case: Case, call: Call) -> NameOperation | Abstain | str:
    """The ending, or why it cannot stand."""
    try:
        if call.name == ABSTAIN:
            return msgspec.convert(call.arguments, Abstain)
        ending = msgspec.convert(call.arguments, NameOperation)
    except msgspec.ValidationError as error:
        return f"refused: {error}"
    against = list(objections(case, ending))
    return f"refused: {'; '.join(against)}" if against else ending
