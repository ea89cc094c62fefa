"""Test a verdict: put the right value back, re-run what is recorded downstream, ask again."""

from __future__ import annotations

import dataclasses
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from threading import Lock

from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from memtrace_collector.attribution.carrying.needs import Need, answered, classify, states
from memtrace_collector.attribution.carrying.view import View
from memtrace_collector.attribution.judge import Judge
from memtrace_collector.attribution.model.budget import Budget, Usage, estimate
from memtrace_collector.attribution.replay import outcome
from memtrace_collector.attribution.replay.answer import Answering
from memtrace_collector.attribution.replay.assembly import (
    ASSEMBLY,
    Prompt,
    rebuild,
    recorded_prompt,
)
from memtrace_collector.attribution.replay.delivery import STILL_CUT, Delivery, deliver
from memtrace_collector.attribution.replay.messages import joined
from memtrace_collector.attribution.replay.outcome import Arm, Replay, Step
from memtrace_collector.attribution.replay.recorded import RecordedCall, read_call
from memtrace_collector.attribution.replay.repair import AGAIN, Refusal, Repair, plan
from memtrace_collector.attribution.verdict import Verdict
from memtrace_collector.errors import UnreachableError, WrongUseError
from memtrace_collector.graph.case import Case
from memtrace_collector.graph.facts import OperationKey

PAUSE_SECONDS = 60.0
"""After an endpoint did not answer, nothing is sent for so long."""
_REMEMBERED = 1_000
_REPLY_TOKENS = 256
"""Of an expected reply, for the budget."""

_NO_ENDPOINT = Refusal("no endpoint is set to ask the model again", outcome.NO_ENDPOINT)

AttributesOf = Callable[[OperationKey], Iterable[KeyValue]]
"""The attributes of a recorded span; none when it is not kept any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """``runs``: how often each prompt is asked, at least 1. ``model``: instead of the
    recorded one; empty: the recorded one."""

    runs: int = 3
    model: str = ""


@dataclass(frozen=True, slots=True)
class _Test:
    """What is to be asked: the prompt as it was, and repaired (``None``: nothing to repair)."""

    call: RecordedCall
    control: Prompt
    repaired: Prompt | None
    steps: tuple[Step, ...] = ()
    assumed: tuple[str, ...] = ()

    @property
    def is_worth_asking(self) -> bool:
        """A repair that does not change the prompt changes no reply."""
        return self.repaired is None or _texts(self.repaired) != _texts(self.control)


class Replayer:
    """Replays verdicts. Safe to use from several threads.

    Args:
        attributes_of: the recorded span of an answer: its model, parameters and messages.
        answering: the endpoint; None: what needs no model is replayed.
        budget: what may be spent on calls.
        clock: seconds.
    """

    def __init__(
        self,
        attributes_of: AttributesOf,
        answering: Answering | None,
        budget: Budget,
        settings: Settings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._attributes_of = attributes_of
        self._answering = answering
        self._budget = budget
        self._settings = settings
        self._clock = clock
        self._silence = ""
        self._silent_until = 0.0
        self._known: OrderedDict[str, Replay] = OrderedDict()
        self._lock = Lock()

    @property
    def silence(self) -> str:
        """Why the endpoint did not answer, the last time that it did not; empty: it did."""
        return self._silence

    def judge(self, judge: Judge) -> Judge:
        """What judges like ``judge`` and replays each verdict. A verdict that comes out the same
        again is not replayed again; where the endpoint does not answer, it stands unreplayed."""

        def judged_and_replayed(case: Case) -> Verdict:
            verdict = judge(case)
            key = json.dumps(verdict.to_json(), sort_keys=True)
            with self._lock:
                known = self._known.get(key)
            try:
                replay = known or self.replay(case, verdict)
            except UnreachableError as error:
                self._silence = str(error)
                self._silent_until = self._clock() + PAUSE_SECONDS
                return verdict
            self._remember(key, replay)
            return replayed(verdict, replay)

        return judged_and_replayed

    def _remember(self, key: str, replay: Replay) -> None:
        with self._lock:
            self._known[key] = replay
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)

    def replay(self, case: Case, verdict: Verdict) -> Replay:
        """Test one verdict of a case.

        Raises:
            UnreachableError: the endpoint does not answer, or did not a moment ago.
        """
        view = View(case)
        repairs = plan(view, verdict.to_json())
        if isinstance(repairs, Refusal):
            return _refused(repairs)
        need = classify(view.question or "", case.flag.expected, view.asked_on)
        needed = _needed(view, need).union(repair.ref for repair in repairs)
        deliveries = deliver(view, repairs, needed)
        call = read_call(self._attributes_of(case.answer.key))
        test = _test(view, repairs, deliveries, call)
        if isinstance(test, Refusal):
            return _refused(test, _steps(deliveries), _assumed(deliveries))
        missing = self._why_not_asked(test, need)
        if missing is not None or self._answering is None:
            return _partly(test, missing or _NO_ENDPOINT)
        if not test.is_worth_asking:
            return _nothing_changed(test)
        return self._asked(self._answering, view, need, test)

    def _why_not_asked(self, test: _Test, need: Need) -> Refusal | None:
        if need.kind == "unknown":
            return Refusal("nobody said what would have been right", "no_expected")
        if self._answering is None:
            return _NO_ENDPOINT
        if not self._model(test):
            return Refusal("the answer's span does not name its model", "no_model")
        if test.is_worth_asking and not self._reserve(test):
            return Refusal("the budget of calls is spent", "budget")
        return None

    def _reserve(self, test: _Test) -> bool:
        """Take all calls of a test from the budget, or none."""
        prompts = [each for each in (test.control, test.repaired) if each is not None]
        calls = [_expected(each) for each in prompts] * self._settings.runs
        taken: list[Usage] = []
        for call in calls:
            if not self._budget.reserve(call):
                for each in taken:
                    self._budget.settle(each, None)
                return False
            taken.append(call)
        return True

    def _model(self, test: _Test) -> str:
        return self._settings.model or test.call.model

    def _asked(self, answering: Answering, view: View, need: Need, test: _Test) -> Replay:
        def run(prompt: Prompt, arm: Arm) -> Arm:
            reply = answering.complete(self._model(test), prompt.messages, test.call.parameters)
            right = answered(need, reply, view.asked_on) if reply.strip() else None
            return arm.with_run(right, reply)

        if self._clock() < self._silent_until:
            raise UnreachableError(self._silence)
        repaired, control = Arm(), Arm()
        try:
            for _ in range(self._settings.runs):
                repaired = run(test.repaired, repaired) if test.repaired else repaired
                control = run(test.control, control)
        except WrongUseError as error:
            return self._result(test, outcome.NOT_REPLAYABLE, str(error), repaired, control)
        result, reason = (
            outcome.read_arms(repaired, control, place_assumed=ASSEMBLY in test.assumed)
            if test.repaired
            else outcome.read_again(control)
        )
        return self._result(test, result, reason, repaired, control)

    def _result(self, test: _Test, result: str, reason: str, repaired: Arm, control: Arm) -> Replay:
        refused = result == outcome.NOT_REPLAYABLE
        return Replay(
            result=result,
            reason=reason,
            missing="refused" if refused else None,
            steps=test.steps,
            assumed=test.assumed,
            repaired=repaired,
            control=control,
            model=self._model(test),
        )


def replayed(verdict: Verdict, replay: Replay) -> Verdict:
    """The verdict with its replay: score, basis and explanation follow the result."""
    told = outcome.with_replay(verdict.to_json(), replay)
    return dataclasses.replace(
        verdict,
        score=told["score"],
        basis=tuple(told["basis"]),
        explanation=told["explanation"],
        replay=told["replay"],
    )


def _test(
    view: View, repairs: Sequence[Repair], deliveries: Sequence[Delivery], call: RecordedCall
) -> _Test | Refusal:
    control = recorded_prompt(view, call)
    if isinstance(control, Refusal):
        return control
    if all(repair.kind == AGAIN for repair in repairs):
        return _Test(call, control, None)
    rebuilt = rebuild(view, control, [edit for each in deliveries for edit in each.edits])
    return _Test(
        call,
        control,
        rebuilt.prompt,
        (*_steps(deliveries), *rebuilt.steps),
        tuple(dict.fromkeys((*_assumed(deliveries), *rebuilt.assumed))),
    )


def _needed(view: View, need: Need) -> frozenset[str]:
    """The delivered values that give one of the things that were needed."""
    said = {ref: view.text(ref) or "" for op in view.reads for ref in op.delivered}
    return frozenset(
        ref
        for ref, content in said.items()
        if any(states(item, content) is True for item in need.items)
    )


def _steps(deliveries: Iterable[Delivery]) -> tuple[Step, ...]:
    return tuple(step for each in deliveries for step in each.steps)


def _assumed(deliveries: Iterable[Delivery]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(step for each in deliveries for step in each.assumed))


def _expected(prompt: Prompt) -> Usage:
    return Usage(prompt=estimate(_texts(prompt)), completion=_REPLY_TOKENS)


def _texts(prompt: Prompt) -> str:
    return joined(prompt.messages)


def _refused(
    refusal: Refusal, steps: tuple[Step, ...] = (), assumed: tuple[str, ...] = ()
) -> Replay:
    """Nothing to ask; what the reads would have done is still told."""
    return Replay(
        result=outcome.PARTLY if steps else outcome.NOT_REPLAYABLE,
        reason=refusal.reason,
        missing=refusal.missing,
        steps=steps,
        assumed=assumed,
    )


def _partly(test: _Test, missing: Refusal) -> Replay:
    if test.steps:
        return _refused(missing, test.steps, test.assumed)
    return _refused(missing)


def _nothing_changed(test: _Test) -> Replay:
    """The repair does not reach the prompt: by what was recorded, the reply would be the same."""
    cut = any(step.outcome == STILL_CUT and not step.assumed for step in test.steps)
    return Replay(
        result=outcome.REFUTED if cut else outcome.INCONCLUSIVE,
        reason="the right value would have been cut all the same"
        if cut
        else "the repair changes nothing that the prompt shows",
        steps=test.steps,
        assumed=test.assumed,
    )
