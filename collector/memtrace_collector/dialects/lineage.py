"""The keys of ``memtrace.lineage``, read one by one: a wrong one is left out and named. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from memtrace_collector.graph.facts import Decision, Dropped, Edge, OperationKey, Sequence
from memtrace_otel import semconv

_KINDS = frozenset(semconv.KINDS)
_SPAN_POINTER = re.compile(r"([0-9a-f]{32})[-:]([0-9a-f]{16})")
_LARGEST = 1e300
_REFERENCE_LISTS = (
    semconv.INPUTS,
    semconv.SHOWN,
    semconv.OUTPUTS,
    semconv.DELIVERED,
    semconv.SUPERSEDES,
    semconv.INFERRED,
    semconv.CUT,
)


def is_reference(value: object) -> bool:
    """Has the form ``<kind>:<id>@<version>`` with a known kind."""
    if not isinstance(value, str):
        return False
    kind, _, rest = value.partition(":")
    identifier, _, version = rest.rpartition("@")
    return kind in _KINDS and bool(identifier) and bool(version)


class LineageReader:
    """Turns the lineage object into fields of an operation, collecting what was wrong."""

    def __init__(self, data: Mapping[str, object]) -> None:
        self._data = data
        self.problems: list[str] = []

    def fields(self) -> dict[str, Any]:
        """Keyword arguments for :class:`Operation`."""
        fields: dict[str, Any] = {name: self._references(name) for name in _REFERENCE_LISTS}
        fields["scores"] = self._scores(len(fields["delivered"]))
        fields["score_kind"] = self._text(semconv.SCORE_KIND)
        fields["dropped"] = self._rows(semconv.DROPPED, _dropped)
        fields["decisions"] = self._rows(semconv.DECISIONS, _decision)
        fields["edges"] = self._rows(semconv.EDGES, _edge)
        fields["limits"] = self._mapping(semconv.LIMITS)
        fields["reads"] = self._strings(semconv.READS)[: semconv.MAX_READS]
        fields["sources"] = self._sources()
        fields["times"] = self._text_mapping(semconv.TIMES)
        fields["roles"] = self._text_mapping(semconv.ROLES)
        fields["truncated"] = self._counts()
        fields["composite"] = self._data.get(semconv.COMPOSITE) is True
        fields["sequence"] = self.sequence()
        fields["digest_key"] = self._text(semconv.KEY)
        return fields

    def sequence(self) -> Sequence | None:
        value = self._text(semconv.SEQ)
        process, _, number = value.rpartition(":")
        if process and number.isascii() and number.isdigit() and 0 < len(number) < 19:
            return Sequence(process, int(number))
        if value:
            self.problems.append("seq")
        return None

    def _text(self, name: str) -> str:
        value = self._data.get(name)
        if value is not None and not isinstance(value, str):
            self.problems.append(name)
        return value if isinstance(value, str) else ""

    def _list(self, name: str) -> list[object]:
        value = self._data.get(name, [])
        if isinstance(value, list):
            return value
        self.problems.append(name)
        return []

    def _mapping(self, name: str) -> dict[str, object]:
        value = self._data.get(name, {})
        if isinstance(value, dict):
            return value
        self.problems.append(name)
        return {}

    def _strings(self, name: str) -> tuple[str, ...]:
        items = self._list(name)
        kept = tuple(item for item in items if isinstance(item, str))
        if len(kept) != len(items):
            self.problems.append(name)
        return kept

    def _references(self, name: str) -> tuple[str, ...]:
        items = self._list(name)
        kept = tuple(str(item) for item in items if is_reference(item))
        if len(kept) != len(items):
            self.problems.append(name)
        return kept

    def _rows(self, name: str, convert: Any) -> tuple[Any, ...]:
        items = self._list(name)
        rows = [convert(item) if isinstance(item, list) else None for item in items]
        kept = tuple(row for row in rows if row is not None)
        if len(kept) != len(items):
            self.problems.append(name)
        return kept

    def _scores(self, count: int) -> tuple[float | None, ...]:
        return tuple(number(item) for item in self._list(semconv.SCORES)[:count])

    def _sources(self) -> dict[str, OperationKey]:
        sources = {}
        for reference, pointer in self._mapping(semconv.FROM).items():
            match = _SPAN_POINTER.fullmatch(pointer) if isinstance(pointer, str) else None
            if match and is_reference(reference):
                sources[reference] = OperationKey(match[1], match[2])
            else:
                self.problems.append(semconv.FROM)
        return sources

    def _text_mapping(self, name: str) -> dict[str, str]:
        items = self._mapping(name)
        kept = {key: value for key, value in items.items() if isinstance(value, str)}
        if len(kept) != len(items):
            self.problems.append(name)
        return kept

    def _counts(self) -> dict[str, int]:
        return {
            key: value if isinstance(value, int) and 0 <= value < 2**63 else 1
            for key, value in self._mapping(semconv.TRUNCATED).items()
        }


def number(value: object) -> float | None:
    """A finite JSON number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    finite = abs(value) < _LARGEST and math.isfinite(value)
    return float(value) if finite else None


def _item(row: list[object], index: int) -> object:
    return row[index] if index < len(row) else None


def _dropped(row: list[object]) -> Dropped | None:
    reference, reason, rank = _item(row, 0), _item(row, 2), _item(row, 3)
    if not is_reference(reference):
        return None
    return Dropped(
        str(reference),
        number(_item(row, 1)),
        reason if isinstance(reason, str) else "other",
        rank if isinstance(rank, int) and abs(rank) < 2**63 else None,
    )


def _decision(row: list[object]) -> Decision | None:
    fact, action, target, status = (_item(row, index) for index in range(4))
    if not isinstance(action, str):
        return None
    return Decision(
        str(fact) if is_reference(fact) else None,
        action.upper(),
        str(target) if is_reference(target) else None,
        status if isinstance(status, str) else None,
    )


def _edge(row: list[object]) -> Edge | None:
    source, target, relation = (_item(row, index) for index in range(3))
    if not (is_reference(source) and is_reference(target)):
        return None
    known = relation if isinstance(relation, str) else semconv.RELATION_DERIVED_FROM
    return Edge(str(source), str(target), known)
