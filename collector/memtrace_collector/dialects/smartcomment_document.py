"""A smartcomment (or MemTraceBench) export as typed values. Pure.

Of the exporter's fields everything is optional but ``data.nodes``,
``data.edges`` and ``data.operations``. Sentinels (``NONE``) stand for absent ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

_NONE = "NONE"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class NotSmartcommentError(ValueError):
    """The document has not the form of a smartcomment export."""


@dataclass(frozen=True, slots=True)
class Node:
    """One version of one value."""

    id: str
    name: str
    class_name: str
    value: str
    category: str
    created_ns: int

    @property
    def identity(self) -> str:
        return f"{self.class_name}:{self.name}" if self.class_name else self.name


@dataclass(frozen=True, slots=True)
class EdgeRow:
    """``source`` and ``target`` are ids of nodes; None is a sentinel."""

    operation_id: str
    source: str | None
    target: str | None
    comment: str


@dataclass(frozen=True, slots=True)
class OperationRow:
    """An operation and the edges made in it, in order."""

    id: str
    name: str
    category: str
    created_ns: int
    edges: tuple[EdgeRow, ...] = ()


@dataclass(frozen=True, slots=True)
class Annotation:
    """A failed question of MemTraceBench, with its gold label."""

    query_id: str
    golden_answers: str
    evidence_ids: tuple[str, ...]
    error_type: str
    operation_id: str


@dataclass(frozen=True, slots=True)
class Document:
    """The export. ``aliases`` leads every spelling of a node's id to the node."""

    graph_id: str
    nodes: Mapping[str, Node]
    operations: tuple[OperationRow, ...]
    annotations: tuple[Annotation, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)

    def node(self, name: str) -> Node | None:
        return self.nodes.get(self.aliases.get(name, ""))


def parse(document: object) -> Document:
    """Read an export.

    Raises:
        NotSmartcommentError: it is none.
    """
    data = document.get("data") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(data, dict):
        raise NotSmartcommentError("it has no object 'data'")
    missing = [name for name in ("nodes", "edges", "operations") if name not in data]
    if missing:
        raise NotSmartcommentError(f"its data has no {', '.join(missing)}")
    nodes = {node.id: node for node in map(_node, _rows(data["nodes"])) if node is not None}
    edges: dict[str, list[EdgeRow]] = {}
    for edge in map(_edge, _rows(data["edges"])):
        edges.setdefault(edge.operation_id, []).append(edge)
    operations = tuple(
        _operation(row, tuple(edges.get(_text(row, "op_id"), ())))
        for row in _rows(data["operations"])
        if not _is_none(_text(row, "op_id"))
    )
    return Document(
        graph_id=_text(document, "graph_id") or "unnamed",
        nodes=nodes,
        operations=operations,
        annotations=tuple(map(_annotation, _rows(data.get("annotations", [])))),
        aliases=_aliases(nodes.values()),
    )


def _rows(value: object) -> list[dict[str, Any]]:
    items = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(items, list):
        raise NotSmartcommentError("nodes, edges, operations and annotations are lists")
    return [item for item in items if isinstance(item, dict)]


def _text(row: Mapping[str, Any], *names: str) -> str:
    for name in names:
        value = row.get(name)
        if isinstance(value, (str, int)) and not isinstance(value, bool):
            return str(value)
    return ""


def _is_none(identifier: str) -> bool:
    return identifier.rpartition(":")[2].partition("@")[0].upper() == _NONE


def _node(row: dict[str, Any]) -> Node | None:
    name, class_name = _text(row, "name"), _text(row, "class_name")
    if class_name == "variable":
        class_name = ""
    identifier = _text(row, "full_node_id", "id", "node_id")
    if not identifier:
        prefix = f"{class_name}:" if class_name else ""
        identifier = f"{prefix}{name}@{_text(row, 'version') or '1'}"
    if not name or _is_none(name):
        return None
    return Node(
        id=identifier,
        name=name,
        class_name=class_name,
        value=_text(row, "value"),
        category=_text(row, "category").lower(),
        created_ns=_nanoseconds(_text(row, "created_at")),
    )


def _edge(row: dict[str, Any]) -> EdgeRow:
    source = _text(row, "source_full_node_id", "source")
    target = _text(row, "target_full_node_id", "target")
    return EdgeRow(
        operation_id=_text(row, "op_id"),
        source=None if not source or _is_none(source) else source,
        target=None if not target or _is_none(target) else target,
        comment=_text(row, "comment"),
    )


def _operation(row: dict[str, Any], edges: tuple[EdgeRow, ...]) -> OperationRow:
    return OperationRow(
        id=_text(row, "op_id"),
        name=_text(row, "op_name", "name"),
        category=_text(row, "category").lower(),
        created_ns=_nanoseconds(_text(row, "created_at")),
        edges=edges,
    )


def _annotation(row: dict[str, Any]) -> Annotation:
    golden = row.get("golden_answers", row.get("golden_answer"))
    answers = golden if isinstance(golden, list) else [golden]
    evidence = row.get("source_evidence_ids", row.get("source_evidence_full_node_ids"))
    return Annotation(
        query_id=_text(row, "query_id", "query_full_node_id"),
        golden_answers="; ".join(str(item) for item in answers if item is not None),
        evidence_ids=tuple(str(item) for item in evidence) if isinstance(evidence, list) else (),
        error_type=_text(row, "final_error_type"),
        operation_id=_text(row, "final_op_id"),
    )


def _aliases(nodes: Iterable[Node]) -> dict[str, str]:
    aliases: dict[str, str] = {}
    for node in nodes:
        for spelling in (node.name, node.identity, node.id.rpartition(":")[2]):
            aliases.setdefault(spelling, node.id)
    aliases.update({node.id: node.id for node in nodes})
    return aliases


def _nanoseconds(text: str) -> int:
    """Wall-clock strings without a zone, taken as UTC; 0 when unreadable."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return 0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1_000
