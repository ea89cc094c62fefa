"""The keys of ``memtrace.lineage``, read one by one: a wrong one is left out and named. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from memtrace_collector.graph.facts import Decision, Dropped, Edge, OperationKey, Sequence
from memtrace_otel import semconv

_reference = re.compile(
    rf"(?:{'|'.join(map(re.escape, semconv.KINDS))}):.+@[^@]+", re.DOTALL
).fullmatch
_SPAN_POINTER = re.compile(r"([0-9a-f]{32})[-:]([0-9a-f]{16})")
_LARGEST = 1e300
_MAX_DIGITS = 19
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
    return isinstance(value, str) and _reference(value) is not None


class _Lineage(msgspec.Struct):
    """The lineage as the contract has it, to be decoded in C. ``null`` stands nowhere but where
    the contract allows it."""

    inputs: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    delivered: tuple[str, ...] = ()
    scores: tuple[float | None, ...] = ()
    score_kind: str = ""
    dropped: tuple[Dropped, ...] = ()
    limits: dict[str, object] = {}
    supersedes: tuple[str, ...] = ()
    decisions: tuple[Decision, ...] = ()
    edges: tuple[Edge, ...] = ()
    reads: tuple[str, ...] = ()
    sources: dict[str, str] = msgspec.field(name=semconv.FROM, default_factory=dict)
    times: dict[str, str] = {}
    roles: dict[str, str] = {}
    inferred: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()
    truncated: dict[str, int] = {}
    composite: bool = False
    seq: str = ""
    key: str = ""


_decode = msgspec.json.Decoder(_Lineage).decode


def regular_fields(text: str) -> dict[str, Any] | None:
    """What :meth:`LineageReader.fields` gives, of a lineage without anything wrong or odd.

    None: it is to be read key by key.
    """
    try:
        found = _decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    sequence = sequence_of(found.seq)
    if not (_is_regular(found) and (sequence or not found.seq)):
        return None
    return {
        "inputs": found.inputs,
        "shown": found.shown,
        "outputs": found.outputs,
        "delivered": found.delivered,
        "scores": found.scores[: len(found.delivered)],
        "score_kind": found.score_kind,
        "dropped": found.dropped,
        "limits": found.limits,
        "supersedes": found.supersedes,
        "decisions": found.decisions,
        "edges": found.edges,
        "reads": found.reads[: semconv.MAX_READS],
        "sources": _pointers(found.sources) if found.sources else {},
        "times": found.times,
        "roles": found.roles,
        "inferred": found.inferred,
        "cut": found.cut,
        "truncated": found.truncated,
        "composite": found.composite,
        "sequence": sequence,
        "digest_key": found.key,
    }


def _pointers(sources: Mapping[str, str]) -> dict[str, OperationKey]:
    return {ref: OperationKey(at[:32], at[33:]) for ref, at in sources.items()}


def _is_regular(found: _Lineage) -> bool:
    """Are all references, numbers and pointers what the contract says?"""
    return (
        all(map(_reference, found.inputs))
        and all(map(_reference, found.outputs))
        and all(map(_reference, found.delivered))
        and all(map(_is_finite, found.scores))
        and (_has_only_common_keys(found) or _is_regular_elsewhere(found))
    )


def _has_only_common_keys(found: _Lineage) -> bool:
    """Is there nothing to check but what most lineages have?"""
    return not (
        found.edges
        or found.dropped
        or found.decisions
        or found.supersedes
        or found.shown
        or found.sources
        or found.inferred
        or found.cut
        or found.truncated
    )


def _is_regular_elsewhere(found: _Lineage) -> bool:
    return (
        all(map(_reference, (*found.shown, *found.supersedes, *found.inferred, *found.cut)))
        and all(map(_is_regular_drop, found.dropped))
        and all(map(_is_regular_decision, found.decisions))
        and all(_reference(edge.input) and _reference(edge.output) for edge in found.edges)
        and all(_reference(r) and _SPAN_POINTER.fullmatch(p) for r, p in found.sources.items())
        and all(0 <= count < 2**63 for count in found.truncated.values())
    )


def _is_finite(score: float | None) -> bool:
    return score is None or -_LARGEST < score < _LARGEST


def _is_regular_drop(row: Dropped) -> bool:
    fits = row.rank is None or abs(row.rank) < 2**63
    return fits and _is_finite(row.score) and _reference(row.ref) is not None


def _is_regular_decision(row: Decision) -> bool:
    named = (ref for ref in (row.fact, row.target) if ref is not None)
    return row.action == row.action.upper() and all(map(_reference, named))


def sequence_of(text: str) -> Sequence | None:
    """``<process>:<n>``; None when the text is something else."""
    process, _, number = text.rpartition(":")
    if process and number.isascii() and number.isdigit() and len(number) < _MAX_DIGITS:
        return Sequence(process, int(number))
    return None


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
        found = sequence_of(value)
        if value and found is None:
            self.problems.append(semconv.SEQ)
        return found

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
