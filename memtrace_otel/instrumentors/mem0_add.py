"""``add``: what both generations share, and the paths without a pipeline (raw, procedural)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from memtrace_otel import references, runtime, semconv
from memtrace_otel.instrumentors import mem0_identity as identity
from memtrace_otel.instrumentors.mem0_replies import ReplyReader
from memtrace_otel.instrumentors.mem0_shells import Arguments, Observation
from memtrace_otel.instrumentors.mem0_stages import (
    Library,
    Row,
    Stage,
    WriteStage,
    rows_of,
    score_kind,
)
from memtrace_otel.variables import Variable, version_of

PROCEDURAL = "procedural_memory"

Add = TypeVar("Add", bound="AddStage")


class AddStage(Stage):
    """The public ``add``: a composite over the stages that the call goes through.

    Attributes:
        messages: what was given, as variables, in order.
        facts: what extraction made of it, in order; empty until then.
    """

    def __init__(
        self, memory: object, library: Library, reader: ReplyReader, arguments: Arguments
    ) -> None:
        graphs = identity.graph_ids(identity.scope_of(arguments))
        self._given = identity.messages_of(arguments["messages"], arguments.get("metadata"))
        super().__init__(
            memory,
            library,
            semconv.STEP_ADD,
            graph_id=graphs[0] if graphs else None,
            composite=True,
        )
        self.reader = reader
        self.messages = [message.variable for message in self._given]
        self.facts: list[Variable] = []
        self._infer = bool(arguments.get("infer", True))
        self._procedural = arguments.get("memory_type") == PROCEDURAL and bool(
            arguments.get("agent_id")
        )
        self._in_pipeline = False
        self._raw = list(self.messages)

    def begin(self) -> None:
        self.operation.inputs(*self.messages)

    def on_pipeline(self, _arguments: Arguments, /) -> Observation | None:
        self._in_pipeline = True
        self._ingest_all()
        return None

    def on_model(self, _arguments: Arguments, /) -> Observation | None:
        if self._procedural:
            self._ingest_all()
            return SummaryStage(self)
        return self.on_pipeline_model() if self._in_pipeline else None

    def on_pipeline_model(self) -> Observation | None:
        """A call of the model inside the pipeline."""
        raise NotImplementedError

    def on_create(self, arguments: Arguments, /) -> Observation | None:
        return self.write(semconv.STEP_CREATE, None, self.sources(arguments["data"]))

    def write(
        self, step: str, record_id: str | None, sources: Sequence[Variable] = ()
    ) -> Observation:
        """An inner method that writes one record."""
        return WriteStage(self.memory, self.library, step, record_id=record_id, sources=sources)

    def sources(self, text: str) -> list[Variable]:
        """What a record with this text was made from."""
        fact = references.fact(text)
        if self._infer or self._procedural:
            return [fact]
        version = version_of(fact.ref)
        for position, message in enumerate(self._raw):
            if version_of(message.ref) == version:
                return [self._raw.pop(position)]
        return self.messages if len(self.messages) == 1 else []

    def _finish(self, result: object, /) -> None:
        results = result.get("results") if isinstance(result, dict) else result
        if isinstance(results, list):
            self.operation.attribute(semconv.GEN_AI_MEMORY_RECORD_COUNT, len(results))

    def _ingest_all(self) -> None:
        """The messages enter: mem0 has found nothing wrong with the call."""
        given, self._given = self._given, []
        for message in given:
            self._ingest(message)

    def _ingest(self, message: identity.Message) -> None:
        operation = self.start(semconv.STEP_INGEST)
        operation.outputs(message.variable)
        answer = references.answer(message.variable.content)
        if message.role == "assistant" and runtime.get().lineage.producer(answer.ref):
            operation.inputs(answer)
        if message.time is not None:
            operation.time(message.variable, message.time)
        if message.role is not None:
            operation.role(message.variable, message.role)
        operation.stop()


class ChildStage(Stage, Generic[Add]):
    """A stage of an ``add``."""

    def __init__(self, add: Add, step: str) -> None:
        super().__init__(add.memory, add.library, step, graph_id=add.library_graph)
        self.add = add


class ModelStage(ChildStage[Add]):
    """A call of the model; a reply that mem0 swallows because it cannot read it is a failure."""

    def _finish(self, result: object, /) -> None:
        try:
            self._read(result)
        except ValueError as error:
            self.error = error

    def _read(self, reply: object) -> None:
        raise NotImplementedError


class SummaryStage(ModelStage[AddStage]):
    """The model sums a conversation up as one procedural memory."""

    def __init__(self, add: AddStage) -> None:
        super().__init__(add, semconv.STEP_CONSOLIDATE)

    def begin(self) -> None:
        self.operation.inputs(*self.add.messages)

    def _read(self, reply: object) -> None:
        text = self.add.reader.text(reply)
        if text:
            self.operation.outputs(references.fact(text))


class ExtractStage(ModelStage[Add]):
    """The model extracts facts from the messages."""

    def __init__(self, add: Add, shown: Sequence[Variable] = ()) -> None:
        super().__init__(add, semconv.STEP_EXTRACT)
        self._shown = shown

    def begin(self) -> None:
        self.operation.inputs(*self.add.messages)
        if self._shown:
            self.operation.shown(*self._shown)

    def extracted(self, texts: Sequence[str]) -> None:
        """Take down the facts. Which message made which is known only when there is one."""
        facts = [references.fact(text) for text in texts]
        self.add.facts = facts
        self.operation.outputs(*facts)
        if len(self.add.messages) == 1:
            for fact in facts:
                self.operation.edge(self.add.messages[0], fact, semconv.RELATION_EXTRACTED_FROM)


class Candidates(dict[str, Variable]):
    """Records by id, in the order in which the model sees them under 0, 1, 2 …"""

    def shown_as(self, number: str | None) -> tuple[str, Variable] | None:
        """Id and version of the record that the model calls ``number``."""
        items = list(self.items())
        position = int(number) if number is not None and number.isdecimal() else len(items)
        return items[position] if position < len(items) and str(position) == number else None


class ExistingSearch(ChildStage[AddStage]):
    """The search for memories that are already there, before the model is asked."""

    def __init__(self, add: AddStage, arguments: Arguments, inputs: Sequence[Variable]) -> None:
        super().__init__(add, semconv.STEP_RETRIEVE)
        self._inputs = inputs
        self._limit = arguments.get("limit", arguments.get("top_k"))
        self.rows: list[Row] = []

    def begin(self) -> None:
        self.operation.inputs(*self._inputs)
        self.operation.limits(k=self._limit)

    def _finish(self, result: object, /) -> None:
        self.rows = rows_of(result)
        for row in self.rows:
            self.deliver(row.id, row.payload, row.score)
        self.operation.score_kind(score_kind(self.memory))
        self.operation.attribute(semconv.GEN_AI_MEMORY_RECORD_COUNT, len(self.rows))
