"""``add`` of mem0 1.x: extract facts, look for related memories, let the model decide.

The model decides per memory and never says which fact made it do so: decisions carry ``null``
there. A text that it writes and that is no extracted fact, it authored: a new ``fact:``.
"""

from __future__ import annotations

from typing import NamedTuple

from memtrace_otel import references, semconv
from memtrace_otel.instrumentors.mem0_add import (
    AddStage,
    Candidates,
    ExistingSearch,
    ExtractStage,
    ModelStage,
)
from memtrace_otel.instrumentors.mem0_replies import Action, ReplyReader
from memtrace_otel.instrumentors.mem0_shells import Arguments, Observation
from memtrace_otel.instrumentors.mem0_stages import Library
from memtrace_otel.variables import Variable

_STEPS = {
    "ADD": semconv.STEP_CREATE,
    "UPDATE": semconv.STEP_UPDATE,
    "DELETE": semconv.STEP_DELETE,
}


class NeverAttemptedError(RuntimeError):
    """mem0 decided on a write, swallowed an error on the way and never began the write."""


class Plan(NamedTuple):
    """A write that was decided. ``record_id`` is ``None`` for a new record."""

    step: str
    record_id: str | None
    text: str


class AddV1(AddStage):
    """The two-call pipeline.

    Attributes:
        planned: decided writes that have not begun.
    """

    def __init__(
        self, memory: object, library: Library, reader: ReplyReader, arguments: Arguments
    ) -> None:
        super().__init__(memory, library, reader, arguments)
        self.planned: list[Plan] = []
        self._searches: dict[str, ExistingSearch] = {}
        self._asked = False

    def on_pipeline_model(self) -> Observation | None:
        if self._asked:
            return DecideStage(self, self._candidates())
        self._asked = True
        return ExtractV1(self)

    def on_search(self, arguments: Arguments, /) -> Observation | None:
        query = arguments["query"]
        self._searches[query] = search = ExistingSearch(self, arguments, [references.fact(query)])
        return search

    def on_create(self, arguments: Arguments, /) -> Observation | None:
        self._begun(semconv.STEP_CREATE, None, arguments["data"])
        return super().on_create(arguments)

    def on_change(self, arguments: Arguments, /) -> Observation | None:
        record_id, text = str(arguments["memory_id"]), arguments["data"]
        self._begun(semconv.STEP_UPDATE, record_id, text)
        return self.write(semconv.STEP_UPDATE, record_id, self.sources(text))

    def on_remove(self, arguments: Arguments, /) -> Observation | None:
        record_id = str(arguments["memory_id"])
        self._begun(semconv.STEP_DELETE, record_id)
        return self.write(semconv.STEP_DELETE, record_id)

    def _candidates(self) -> Candidates:
        """What the searches found, in the order of the facts: the order that the model sees."""
        found = Candidates()
        for fact in self.facts:
            search = self._searches.get(str(fact.content))
            if search is not None:
                found.update((row.id, search.record(row.id, row.payload)) for row in search.rows)
        return found

    def _begun(self, step: str, record_id: str | None, text: str | None = None) -> None:
        for plan in self.planned:
            if plan[:2] == (step, record_id) and text in (None, plan.text):
                self.planned.remove(plan)
                return

    def _finish(self, result: object, /) -> None:
        super()._finish(result)
        for plan in self.planned:
            operation = self.start(plan.step, plan.record_id)
            if plan.step != semconv.STEP_DELETE:
                operation.inputs(*self.sources(plan.text))
            operation.fail(NeverAttemptedError(plan.step))


class ExtractV1(ExtractStage[AddV1]):
    """The first call of the model."""

    def _read(self, reply: object) -> None:
        self.extracted(self.add.reader.facts(reply))


class DecideStage(ModelStage[AddV1]):
    """The second call of the model: what to do with each memory."""

    def __init__(self, add: AddV1, candidates: Candidates) -> None:
        super().__init__(add, semconv.STEP_DECIDE)
        self._candidates = candidates

    def begin(self) -> None:
        self.operation.inputs(*self.add.facts)
        if self._candidates:
            self.operation.shown(*self._candidates.values())

    def _read(self, reply: object) -> None:
        known = {fact.ref for fact in self.add.facts}
        for action in self.add.reader.actions(reply):
            place = None if action.action == "ADD" else self._candidates.shown_as(action.shown_id)
            record_id, target = place or (None, None)
            status = _status(action, target)
            self.operation.decision(None, action.action, target, status)
            if status is not None:
                continue
            self.add.planned.append(Plan(_STEPS[action.action], record_id, action.text))
            text = references.fact(action.text)
            if action.action != "DELETE" and text.ref not in known:
                known.add(text.ref)
                self._authored(text, target)

    def _authored(self, text: Variable, target: Variable | None) -> None:
        """The model wrote ``text`` itself; what it merged into was read for that."""
        self.operation.outputs(text)
        if target is not None:
            self.operation.inputs(target)
        if len(self.add.facts) == 1:
            for source in (*self.add.facts, *([target] if target else [])):
                self.operation.edge(source, text, semconv.RELATION_DERIVED_FROM)


def _status(action: Action, target: Variable | None) -> str | None:
    """What is sure already; ``None``: the write itself will show."""
    if action.action == "NOOP":
        return "done"
    if not action.text:
        return "skipped"
    return "failed" if action.action != "ADD" and target is None else None
