"""``add`` of mem0 2.x: one extraction, then every fact that is no duplicate is a new record.

The model is shown the last messages and similar memories. It also says to which of those a
fact is related; mem0 throws that away, and it is kept here as ``related_to`` edges.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from memtrace_otel import references, semconv
from memtrace_otel.instrumentors import mem0_identity as identity
from memtrace_otel.instrumentors.mem0_add import (
    AddStage,
    Candidates,
    ExistingSearch,
    ExtractStage,
)
from memtrace_otel.instrumentors.mem0_replies import Extracted, ReplyReader
from memtrace_otel.instrumentors.mem0_shells import Arguments, Observation, Peek
from memtrace_otel.instrumentors.mem0_stages import Library
from memtrace_otel.operations import MemoryOperation
from memtrace_otel.variables import Variable


class AddV2(AddStage):
    """The additive pipeline.

    Attributes:
        extracted: what the model said, in order.
        candidates: the similar memories that it was shown.
    """

    def __init__(
        self, memory: object, library: Library, reader: ReplyReader, arguments: Arguments
    ) -> None:
        super().__init__(memory, library, reader, arguments)
        self.extracted: list[Extracted] = []
        self.last_messages: list[Variable] = []
        self._search: ExistingSearch | None = None
        self._open: dict[str, tuple[MemoryOperation, BaseException | None]] = {}
        self._settled: set[str] = set()

    @property
    def candidates(self) -> Candidates:
        search = self._search
        rows = search.rows if search is not None else []
        return Candidates((row.id, self.record(row.id, row.payload)) for row in rows)

    def on_last_messages(self, _arguments: Arguments, /) -> Observation | None:
        return Peek(self.memory, self._remember)

    def on_search(self, arguments: Arguments, /) -> Observation | None:
        self._search = ExistingSearch(self, arguments, self.messages)
        return self._search

    def on_pipeline_model(self) -> Observation | None:
        return ExtractV2(self, [*self.last_messages, *self.candidates.values()])

    def on_insert(self, arguments: Arguments, /) -> Observation | None:
        return BatchInsert(self, dict(zip(map(str, arguments["ids"]), arguments["payloads"])))

    def create(self, record_id: str, payload: Mapping[str, Any]) -> MemoryOperation:
        """The operation that creates this record: begun now, or by an attempt that failed."""
        known = self._open.get(record_id)
        if known is not None:
            return known[0]
        text = str(payload.get("data"))
        operation = self.start(semconv.STEP_CREATE, record_id)
        operation.inputs(*self.sources(text))
        self._open[record_id] = (operation, None)
        self._settled.add(references.fact(text).ref)
        return operation

    def created(self, record_id: str, payload: Mapping[str, Any]) -> None:
        """The store took the record."""
        operation = self.create(record_id, payload)
        record = self.record(record_id, payload)
        operation.outputs(record)
        related = self._related(str(payload.get("data")))
        for source in self.sources(str(payload.get("data"))) if related else ():
            operation.edge(source, record, semconv.RELATION_DERIVED_FROM)
        for other in related:
            operation.edge(record, other, semconv.RELATION_RELATED_TO)
        operation.stop()
        del self._open[record_id]

    def refused(self, record_id: str, error: BaseException) -> None:
        """The store did not take the record; mem0 may try again."""
        self._open[record_id] = (self._open[record_id][0], error)

    def _remember(self, rows: object) -> None:
        found = map(identity.shown_message, rows if isinstance(rows, (list, tuple)) else ())
        self.last_messages = [message for message in found if message is not None]

    def _related(self, text: str) -> list[Variable]:
        entry = next((entry for entry in self.extracted if entry.text == text), None)
        places = map(self.candidates.shown_as, entry.linked if entry else ())
        return [place[1] for place in places if place is not None]

    def _finish(self, result: object, /) -> None:
        super()._finish(result)
        self._close()

    def _abandon(self, _error: BaseException, /) -> None:
        self._close()

    def _close(self) -> None:
        for operation, error in self._open.values():
            operation.fail(error or RuntimeError("the record was never stored"))
        stored = self._search.rows if self._search is not None else []
        known = {row.payload.get("hash") for row in stored}
        for fact in {fact.ref: fact for fact in self.facts}.values():
            if fact.ref not in self._settled:
                duplicate = _hash(str(fact.content)) in known
                self.operation.dropped(fact, reason="dedup" if duplicate else "other")


class ExtractV2(ExtractStage[AddV2]):
    """The only call of the model."""

    def _read(self, reply: object) -> None:
        self.add.extracted = self.add.reader.extracted(reply)
        self.extracted([entry.text for entry in self.add.extracted])


class BatchInsert(Observation):
    """``vector_store.insert`` of several records: one create operation each."""

    def __init__(self, add: AddV2, payloads: Mapping[str, Mapping[str, Any]]) -> None:
        self._add = add
        self._payloads = payloads
        super().__init__(add.memory)

    def begin(self) -> None:
        for record_id, payload in self._payloads.items():
            self._add.create(record_id, payload)

    def _finish(self, _result: object, /) -> None:
        for record_id, payload in self._payloads.items():
            self._add.created(record_id, payload)

    def _abandon(self, error: BaseException, /) -> None:
        for record_id in self._payloads:
            self._add.refused(record_id, error)


def _hash(text: str) -> str:
    """The hash by which mem0 recognises a duplicate."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
