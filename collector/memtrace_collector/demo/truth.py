"""Which operation was made to go wrong: found among the recorded operations, without verdicts.

A planted fault names a step, and the message from whose ``add`` the operation comes or else the
question itself. The operation is found by what it read and made, never by what attribution says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memtrace_collector.demo.cases import Planted
from memtrace_collector.errors import DamagedError
from memtrace_otel import semconv


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One recorded operation, as far as the demo looks at it."""

    graph_id: str
    trace_id: str
    span_id: str
    step: str
    name: str
    service: str
    start_ns: int
    composite: bool
    response_id: str
    inputs: tuple[str, ...]

    @property
    def span(self) -> dict[str, str]:
        return {"traceId": self.trace_id, "spanId": self.span_id}

    def reads_message(self, message_id: str) -> bool:
        """Some version of that message is among the inputs."""
        return any(ref.startswith(f"msg:{message_id}@") for ref in self.inputs)


@dataclass(frozen=True, slots=True)
class Records:
    """All recorded operations and the captured texts by reference."""

    operations: Sequence[Recorded]
    values: Mapping[str, str]

    def answer(self, response_id: str) -> Recorded:
        """The answer with that response id.

        Raises:
            DamagedError: it was not recorded.
        """
        return self._one(
            (
                item
                for item in self.operations
                if item.response_id == response_id and item.step == semconv.STEP_ANSWER
            ),
            f"the answer {response_id}",
        )

    def operation(self, span: Mapping[str, str]) -> Recorded:
        """The operation of ``{"traceId", "spanId"}``.

        Raises:
            DamagedError: it was not recorded.
        """
        key = (span["traceId"], span["spanId"])
        found = (item for item in self.operations if (item.trace_id, item.span_id) == key)
        return self._one(found, f"the operation {key[0]}:{key[1]}")

    def planted(self, planted: Planted, question: str, answer: Recorded) -> Recorded:
        """The operation at which ``planted`` went wrong, for the answer to ``question``.

        Raises:
            DamagedError: it was not recorded.
        """
        if planted.step == semconv.STEP_ANSWER:
            return answer
        what = f"the {planted.step} operation of {planted.message or question!r}"
        if planted.step == semconv.STEP_RETRIEVE:
            return self._one(self._retrievals(question, answer), what)
        extraction = self._one(
            (
                item
                for item in self._visible(semconv.STEP_EXTRACT)
                if item.reads_message(planted.message)
            ),
            what,
        )
        if planted.step == semconv.STEP_EXTRACT:
            return extraction
        return self._one(
            (i for i in self._visible(planted.step) if i.trace_id == extraction.trace_id), what
        )

    def _retrievals(self, question: str, answer: Recorded) -> Iterable[Recorded]:
        """Searches for ``question`` over the memory that the answer is about, before it."""
        asked = [
            item
            for item in self._visible(semconv.STEP_RETRIEVE)
            if item.start_ns <= answer.start_ns
            and item.graph_id == answer.graph_id
            and any(self.values.get(ref) == question for ref in item.inputs)
        ]
        return reversed(asked)

    def _visible(self, step: str) -> Iterable[Recorded]:
        """Operations of ``step`` that are no composite, in the order in which they began."""
        found = (item for item in self.operations if item.step == step and not item.composite)
        return sorted(found, key=lambda item: item.start_ns)

    def _one(self, found: Iterable[Recorded], what: str) -> Recorded:
        first = next(iter(found), None)
        if first is None:
            raise DamagedError(f"{what} was not recorded")
        return first


def recorded(documents: Iterable[Mapping[str, Any]]) -> Records:
    """The operations and values of graphs in the form of ``graph --format json``."""
    operations: dict[tuple[str, str], Recorded] = {}
    values: dict[str, str] = {}
    for document in documents:
        for item in document["operations"]:
            operations[item["traceId"], item["spanId"]] = _recorded(item)
        values.update(document.get("values", {}))
    return Records(tuple(operations.values()), values)


def _recorded(item: Mapping[str, Any]) -> Recorded:
    return Recorded(
        graph_id=item["graph_id"],
        trace_id=item["traceId"],
        span_id=item["spanId"],
        step=item["step"],
        name=item["name"],
        service=item["service"],
        start_ns=item["start_ns"],
        composite=item["composite"],
        response_id=item["response_id"],
        inputs=tuple(item["used"]),
    )
