"""A LangGraph store with every write and search recorded, as an application would wrap it."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from langgraph.store.memory import InMemoryStore

import memtrace_otel as memtrace
from memtrace_collector.bench.pipelines.turn import Item
from memtrace_collector.bench.pipelines.vectors import StandInEmbeddings
from memtrace_collector.bench.planned import Planting
from memtrace_collector.bench.stand_in.model import DIMENSIONS, StandIn
from memtrace_otel import Variable

SYSTEM = "langgraph"
_NAMESPACE = uuid.UUID("b9b3a1c4-0f0f-4f4e-8f0e-6f0f5a7e0c11")


class PutFailedError(Exception):
    """The store did not take a write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One item of the store in one version; ``expires_at``: searches leave it out from then on."""

    key: str
    text: str
    said_at: datetime
    expires_at: datetime | None = None

    @property
    def variable(self) -> Variable:
        expiry = self.expires_at.isoformat() if self.expires_at else None
        state: dict[str, object] | None = {"expires_at": expiry} if expiry else None
        return memtrace.memory(self.text, self.key, system=SYSTEM, state=state)

    @property
    def item(self) -> Item:
        """As a prompt shows it."""
        return Item(variable=self.variable, text=self.text, said_at=self.said_at)

    def to_value(self) -> dict[str, object]:
        expiry = self.expires_at.isoformat() if self.expires_at else None
        return {"text": self.text, "said_at": self.said_at.isoformat(), "expires_at": expiry}


@dataclass(frozen=True, slots=True)
class Hit:
    """A record that a search found."""

    record: Record
    score: float


class Records:
    """The memories of one owner in a store that several share.

    A write that is given a planting is where that fault happens.

    Attributes:
        owner: whose.
        lagging: searches go to a copy of the store that is not brought up to date for now.
    """

    def __init__(self, model: StandIn, embeddings: StandInEmbeddings, owner: str) -> None:
        self.owner = owner
        self.lagging = False
        self._model = model
        self._embeddings = embeddings
        self._namespace = ("memories", owner)
        self._store = _store(embeddings)
        self._copy = self._store
        self._made = 0

    def new_key(self, topic: str = "") -> str:
        """A key of its own, or the one of a topic."""
        self._made += 1
        return str(uuid.uuid5(_NAMESPACE, f"{self.owner} {topic or self._made}"))

    def all(self) -> list[Record]:
        """Everything as it is now."""
        return [
            _record(item.key, item.value)
            for item in self._store.search(self._namespace, limit=10_000)
        ]

    def get(self, key: str) -> Record | None:
        """The record of a key as it is now."""
        item = self._store.get(self._namespace, key)
        return None if item is None else _record(item.key, item.value)

    def search(self, query: str, limit: int) -> list[Hit]:
        """The nearest records, nearest first, expired ones included."""
        found = self._copy.search(self._namespace, query=query, limit=limit)
        return [Hit(_record(item.key, item.value), float(item.score or 0.0)) for item in found]

    def lag(self) -> None:
        """From now on searches see the store as it is at this moment."""
        self._copy = _store(self._embeddings)
        for record in self.all():
            self._copy.put(self._namespace, record.key, record.to_value())
        self.lagging = True

    def catch_up(self) -> None:
        """Searches see the store itself again."""
        self._copy = self._store
        self.lagging = False

    def create(self, record: Record, source: Variable, planted: Planting | None = None) -> None:
        """A new record, its key being known to be new."""
        with memtrace.operation("create", system=SYSTEM) as op:
            op.inputs(source)
            self._note(planted)
            self._put(record)
            op.outputs(record.variable)
            op.edge(source, record.variable)
            op.time(record.variable, record.said_at)

    def fail_to_create(self, source: Variable, planted: Planting | None = None) -> None:
        """The store refuses the write, and the agent goes on as if nothing had happened."""
        with memtrace.operation("create", system=SYSTEM) as op:
            op.inputs(source)
            self._note(planted)
            op.fail(PutFailedError("the store is read-only at the moment"))

    def put(self, record: Record, source: Variable, planted: Planting | None = None) -> None:
        """A blind write: whatever the key held is gone."""
        with memtrace.operation("update", system=SYSTEM) as op:
            op.inputs(source)
            self._note(planted)
            op.supersedes(memtrace.unknown_memory(record.key, system=SYSTEM))
            self._put(record)
            op.outputs(record.variable)
            op.edge(source, record.variable)
            op.time(record.variable, record.said_at)

    def update(
        self, base: Record, record: Record, *sources: Variable, planted: Planting | None = None
    ) -> None:
        """The record after ``base``, which the writer has read."""
        with memtrace.operation("update", system=SYSTEM) as op:
            op.inputs(*sources)
            self._note(planted)
            op.supersedes(base.variable)
            self._put(record)
            op.outputs(record.variable)
            for source in sources:
                op.edge(source, record.variable)
            op.time(record.variable, record.said_at)

    def delete(self, record: Record, planted: Planting | None = None) -> None:
        """The record is gone."""
        with memtrace.operation("delete", system=SYSTEM) as op:
            op.supersedes(record.variable)
            self._note(planted)
            self._store.delete(self._namespace, record.key)
            op.outputs(memtrace.deleted_memory(record.key, system=SYSTEM))

    def index_as(self, records: Sequence[Record], text: str) -> None:
        """Index these anew, with the vector of another text."""
        for record in records:
            self._embeddings.as_if[record.text] = text
            self._put(record)

    def _note(self, planted: Planting | None) -> None:
        if planted:
            self._model.effect(planted)

    def _put(self, record: Record) -> None:
        self._embeddings.lines[record.text] = record.item.line()
        self._store.put(self._namespace, record.key, record.to_value())


def _store(embeddings: StandInEmbeddings) -> InMemoryStore:
    return InMemoryStore(index={"dims": DIMENSIONS, "embed": embeddings, "fields": ["text"]})


def _record(key: str, value: dict[str, object]) -> Record:
    expiry = value["expires_at"]
    return Record(
        key=key,
        text=str(value["text"]),
        said_at=datetime.fromisoformat(str(value["said_at"])),
        expires_at=datetime.fromisoformat(str(expiry)) if expiry else None,
    )
