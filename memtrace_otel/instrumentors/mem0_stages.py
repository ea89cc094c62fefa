"""Operations around calls of mem0: what all of them share, and those that write one record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from memtrace_otel import references, scope, semconv
from memtrace_otel.instrumentors import mem0_identity as identity
from memtrace_otel.instrumentors.mem0_shells import Arguments, Observation, Peek
from memtrace_otel.operations import MemoryOperation
from memtrace_otel.tracer import operation, start_operation
from memtrace_otel.variables import Variable


class Library(NamedTuple):
    """The installed mem0: its version, and the first number of that."""

    version: str
    major: int


class Stage(Observation):
    """An operation that is current while a call of the library runs."""

    def __init__(
        self,
        memory: object,
        library: Library,
        step: str,
        *,
        graph_id: str | None = None,
        composite: bool = False,
        record_id: object = None,
    ) -> None:
        self.library = library
        self.library_graph = graph_id
        self._scope = operation(
            step,
            system=identity.SYSTEM,
            system_version=library.version,
            library_graph_id=graph_id,
            capture=semconv.CAPTURE_OBSERVED,
            composite=composite,
            attributes=attributes(memory, record_id),
        )
        self.operation = self._scope.__enter__()
        self.error: BaseException | None = None
        super().__init__(memory)

    def _leave(self, error: BaseException | None, /) -> None:
        super()._leave(error)
        error = error or self.error
        self._scope.__exit__(type(error) if error else None, error, None)

    def deliver(self, record_id: object, payload: Mapping[str, Any], score: float | None) -> None:
        """A record that this operation returned; it may belong to another graph."""
        self.operation.delivered(self.record(record_id, payload), score)
        owners = identity.graph_ids(payload)
        own = self.library_graph
        if own and owners and owners[0] != own and not scope.current().declared:
            self.operation.reads(owners[0])

    def start(self, step: str, record_id: object = None) -> MemoryOperation:
        """A child operation that runs beside others and is never current."""
        return start_operation(
            step,
            system=identity.SYSTEM,
            system_version=self.library.version,
            capture=semconv.CAPTURE_OBSERVED,
            attributes=attributes(self.memory, record_id),
        )

    def record(self, record_id: object, payload: Mapping[str, Any]) -> Variable:
        """The version of a record that ``payload`` is."""
        return identity.record(record_id, payload, self.library.major)


def attributes(memory: object, record_id: object = None) -> dict[str, str]:
    """Standard attributes of an operation on this memory."""
    found = {}
    store = getattr(memory, "collection_name", None)
    if isinstance(store, str) and store:
        found[semconv.GEN_AI_MEMORY_STORE_ID] = store
    if record_id is not None:
        found[semconv.GEN_AI_MEMORY_RECORD_ID] = str(record_id)
    return found


class Row(NamedTuple):
    """One row of a vector store: what every store's result objects have in common."""

    id: str
    payload: Mapping[str, Any]
    score: float | None


def rows_of(result: object) -> list[Row]:
    """The rows that a vector store returned; what is no row is left out."""
    if not isinstance(result, (list, tuple)):
        result = [result]
    return [row for item in result if (row := _row(item)) is not None]


def _row(item: object) -> Row | None:
    identifier, payload = getattr(item, "id", None), getattr(item, "payload", None)
    if identifier is None or not isinstance(payload, Mapping):
        return None
    return Row(str(identifier), payload, number_of(getattr(item, "score", None)))


def number_of(value: object) -> float | None:
    """A score as a number; ``None`` for what is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value)


def score_kind(memory: object) -> str:
    """What the scores of this memory's vector store are; FAISS may give distances."""
    config = getattr(getattr(memory, "config", None), "vector_store", None)
    strategy = getattr(getattr(config, "config", None), "distance_strategy", None)
    return "distance" if strategy == "euclidean" else "similarity"


class WriteStage(Stage):
    """One record is created, updated or deleted: by a method of its own, inside add or public.

    What the operation produced is taken from the vector store's own methods: only a call that
    came back wrote something, whatever happens to the library's history afterwards.
    """

    def __init__(
        self,
        memory: object,
        library: Library,
        step: str,
        *,
        record_id: object = None,
        sources: Sequence[Variable] = (),
    ) -> None:
        super().__init__(memory, library, step, record_id=record_id)
        self._old: Variable | None = None
        self._sources = sources

    def begin(self) -> None:
        if self._sources:
            self.operation.inputs(*self._sources)

    def on_get(self, _arguments: Arguments, /) -> Observation | None:
        return Peek(self.memory, self._saw)

    def on_insert(self, arguments: Arguments, /) -> Observation | None:
        return Peek(self.memory, lambda _: self._inserted(arguments))

    def on_update(self, arguments: Arguments, /) -> Observation | None:
        return Peek(self.memory, lambda _: self._updated(arguments))

    def on_delete(self, arguments: Arguments, /) -> Observation | None:
        return Peek(self.memory, lambda _: self._deleted(arguments))

    def _saw(self, result: object) -> None:
        for row in rows_of(result):
            self._old = self.record(row.id, row.payload)

    def _inserted(self, arguments: Arguments) -> None:
        for record_id, payload in zip(arguments["ids"], arguments["payloads"]):
            self.operation.outputs(self.record(record_id, payload))
            self.operation.attribute(semconv.GEN_AI_MEMORY_RECORD_ID, str(record_id))

    def _updated(self, arguments: Arguments) -> None:
        record_id, payload = arguments["vector_id"], arguments["payload"]
        self.operation.supersedes(self._before(record_id))
        self.operation.outputs(self.record(record_id, payload))

    def _deleted(self, arguments: Arguments) -> None:
        record_id = arguments["vector_id"]
        self.operation.supersedes(self._before(record_id))
        self.operation.outputs(references.deleted_memory(str(record_id), system=identity.SYSTEM))

    def _before(self, record_id: object) -> Variable:
        if self._old is not None:
            return self._old
        return references.unknown_memory(str(record_id), system=identity.SYSTEM)


class PublicWriteStage(WriteStage):
    """``update`` or ``delete``: they name no scope; the record that they meet tells the graph."""

    def _saw(self, result: object) -> None:
        super()._saw(result)
        for row in rows_of(result):
            owners = identity.graph_ids(row.payload)
            if owners and not scope.current().declared:
                self.operation.graph(owners[0])


class DeleteAllStage(Stage):
    """``delete_all``: a composite, with one delete per record below it."""

    def __init__(self, memory: object, library: Library, arguments: Arguments) -> None:
        graphs = identity.graph_ids(identity.scope_of(arguments))
        super().__init__(
            memory,
            library,
            semconv.STEP_DELETE,
            graph_id=graphs[0] if graphs else None,
            composite=True,
        )

    def on_remove(self, arguments: Arguments, /) -> Observation | None:
        record_id = arguments["memory_id"]
        return WriteStage(self.memory, self.library, semconv.STEP_DELETE, record_id=record_id)


def update(memory: object, library: Library, arguments: Arguments) -> Observation | None:
    """The public ``update``."""
    record_id = arguments["memory_id"]
    return PublicWriteStage(memory, library, semconv.STEP_UPDATE, record_id=record_id)


def delete(memory: object, library: Library, arguments: Arguments) -> Observation | None:
    """The public ``delete``."""
    record_id = arguments["memory_id"]
    return PublicWriteStage(memory, library, semconv.STEP_DELETE, record_id=record_id)
