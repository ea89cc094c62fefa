"""The staged system's store: memory units, and the index that searches see.

The index is a copy, refreshed after each write unless it lags behind.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from datetime import datetime

import memtrace_otel as memtrace
from memtrace_collector.bench.pipelines.ranking import embedded
from memtrace_collector.bench.stand_in.model import StandIn
from memtrace_collector.bench.stand_in.writing import day
from memtrace_otel import Variable

SYSTEM = "staged"
_NAMESPACE = uuid.UUID("5f0f3a52-6b0a-4c59-9d5e-3c1f0f6a9b10")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One memory unit in one version.

    Attributes:
        valid_from: when it was said, which its prompt line is led by.
        expires_at: from then on no search returns it; ``None``: never.
        version: counts the writes of this id.
    """

    id: str
    text: str
    valid_from: datetime
    expires_at: datetime | None = None
    version: int = 1

    @property
    def line(self) -> str:
        """As a prompt shows it."""
        return f"[{day(self.valid_from)}] {self.text}"

    @property
    def variable(self) -> Variable:
        """Its reference: what else than the text changes its meaning is its state."""
        state: dict[str, object] = {"valid_from": self.valid_from.isoformat()}
        if self.expires_at is not None:
            state["expires_at"] = self.expires_at.isoformat()
        return memtrace.memory(self.text, self.id, system=SYSTEM, state=state)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What the index knows of a unit. ``indexed``: the text that was indexed, its own as a rule."""

    unit: Unit
    indexed: str
    vector: tuple[float, ...]


class Units:
    """The units of one owner.

    Attributes:
        lagging: ids whose index entries are not refreshed by writes for the time being.
    """

    def __init__(self, model: StandIn, owner: str) -> None:
        self.lagging: set[str] = set()
        self._model = model
        self._owner = owner
        self._units: dict[str, Unit] = {}
        self._entries: dict[str, Entry] = {}
        self._indexed_as: dict[str, str] = {}
        self._made = 0

    def all(self) -> tuple[Unit, ...]:
        """Every unit as it is now, oldest first."""
        return tuple(self._units.values())

    def get(self, identifier: str) -> Unit:
        """The unit as it is now.

        Raises:
            KeyError: there is none of this id.
        """
        return self._units[identifier]

    def new_id(self) -> str:
        """An id for a unit to come."""
        self._made += 1
        return str(uuid.uuid5(_NAMESPACE, f"{self._owner} {self._made}"))

    def put(self, unit: Unit) -> Unit:
        """Write a unit; one that is there already gets a new version."""
        known = self._units.get(unit.id)
        written = replace(unit, version=known.version + 1) if known else unit
        self._units[unit.id] = written
        self._index(written)
        return written

    def remove(self, identifier: str) -> None:
        """Delete a unit, from the index too."""
        del self._units[identifier]
        self._entries.pop(identifier, None)

    def refresh(self) -> None:
        """The index catches up."""
        self.lagging.clear()
        for unit in self._units.values():
            self._index(unit)

    def index_as(self, identifier: str, text: str) -> None:
        """From now on the index holds ``text`` in place of this unit's own."""
        self._indexed_as[identifier] = text
        self._index(self._units[identifier])

    def entries(self) -> tuple[Entry, ...]:
        """The index, oldest unit first."""
        return tuple(self._entries.values())

    def _index(self, unit: Unit) -> None:
        if unit.id in self.lagging and unit.id in self._entries:
            return
        indexed = self._indexed_as.get(unit.id, unit.text)
        line = unit.line if indexed == unit.text else indexed
        vector = tuple(embedded(self._model, indexed, line))
        self._entries[unit.id] = Entry(unit=unit, indexed=indexed, vector=vector)
