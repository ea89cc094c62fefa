"""One round of the canary: plant a failure over OTLP, ask the API until it is found as it must."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

from memtrace_collector.api.questions import Questions
from memtrace_collector.commands.canary_trace import ERROR_TYPE, STAGE, Planted, planted
from memtrace_collector.errors import NotFoundError, UnreachableError
from memtrace_collector.exporter.delivery import Delivery

POLL_SECONDS = 0.05
CHECKS = ("accepted", "found", "linked", "attributed")


class Destination(Protocol):
    """See :class:`~memtrace_collector.exporter.otlp.OtlpDestination`."""

    def send(self, signal: Any, payload: bytes) -> Delivery: ...


class Check(NamedTuple):
    """``seconds``: since the round began, until it held or was given up."""

    name: str
    ok: bool
    seconds: float
    says: str


class Round:
    """The checks of one round, in order; after one that fails the others are not tried.

    Args:
        destination: takes the spans.
        questions: the API of who projects them.
        deadline_seconds: for all checks together.
    """

    def __init__(
        self, destination: Destination, questions: Questions, deadline_seconds: float
    ) -> None:
        self._destination = destination
        self._questions = questions
        self._seconds = deadline_seconds
        self._began = time.monotonic()
        self.is_unreachable = False
        """Somebody did not answer at all."""

    def checks(self, graph_id: str, chance: random.Random) -> Iterator[Check]:
        """Each as soon as it is known."""
        self._began = time.monotonic()
        trace = planted(graph_id, time.time_ns(), chance)
        for name, look in zip(CHECKS, (self._accepted, self._found, self._linked, self._judged)):
            says = self._until(look, trace)
            yield Check(name, not says, time.monotonic() - self._began, says)
            if says:
                return

    def _until(self, look: Callable[[Planted], str], trace: Planted) -> str:
        """Empty once ``look`` finds nothing wrong; what it last found when time is over."""
        while True:
            self.is_unreachable = False
            try:
                says = look(trace)
            except NotFoundError as error:
                says = str(error)
            except UnreachableError as error:
                self.is_unreachable, says = True, str(error)
            if not says or time.monotonic() - self._began >= self._seconds:
                return says
            time.sleep(POLL_SECONDS)

    def _accepted(self, trace: Planted) -> str:
        for request in trace.requests:
            delivery = self._destination.send("traces", request)
            if delivery.outcome == "refused":
                return f"refused: {delivery.message}"
            if delivery.outcome == "retry":
                raise UnreachableError(delivery.message)
        return ""

    def _found(self, trace: Planted) -> str:
        found = self._questions.ancestry(trace.answer)
        wrong = found["graph_id"] != trace.graph_id
        return f"the answer is in graph {found['graph_id']}" if wrong else ""

    def _linked(self, trace: Planted) -> str:
        found = self._questions.ancestry(trace.answer)
        if found["lineage"] != "complete":
            return f"the lineage of the answer is {found['lineage']}"
        spans = [{key: each[key] for key in trace.author} for each in found["operations"]]
        return "" if trace.author in spans else "the ancestry does not reach the other trace"

    def _judged(self, trace: Planted) -> str:
        trace_id, _, span_id = trace.answer.partition(":")
        answer = {"traceId": trace_id, "spanId": span_id}
        verdicts = self._questions.verdicts(trace.graph_id, "", "")
        verdict = next((each for each in verdicts if each["answer"] == answer), None)
        if verdict is None:
            return "there is no verdict"
        found = f"{verdict['stage']}/{verdict['error_type']}"
        if found != f"{STAGE}/{ERROR_TYPE}":
            return f"the verdict is {found}, not {STAGE}/{ERROR_TYPE}"
        decisive = [{key: each[key] for key in trace.author} for each in verdict["decisive"]]
        return "" if decisive == [trace.author] else "the verdict names another span"
