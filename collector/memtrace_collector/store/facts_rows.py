"""The rows of operations in SQLite: made, written and taken out again."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable
from typing import NamedTuple

from memtrace_collector.graph.facts import Operation
from memtrace_collector.log.position import LogPosition
from memtrace_collector.store import encoding, keys

RESPONSE, CONVERSATION = "response", "conversation"


class Stored(NamedTuple):
    """An operation, where it stands in the store and where in the log."""

    graph: int
    number: int
    span: int
    """Its :func:`span_key`."""
    operation: Operation
    position: LogPosition

    @property
    def id(self) -> int:
        return keys.row_id(self.graph, self.number)


def insert(connection: sqlite3.Connection, stored: Collection[Stored]) -> None:
    """Write the rows of new operations; ids ascend."""
    execute = connection.executemany
    execute("INSERT INTO operation VALUES (?,?,?,?,?,?)", map(_operation, stored))
    execute("INSERT INTO uses VALUES (?,?,?)", map(_uses, stored))
    execute("INSERT INTO span VALUES (?,?,?,?)", sorted(map(_span, stored)))
    execute(
        "INSERT OR IGNORE INTO produced VALUES (?,?,?)",
        sorted(row for item in stored for row in _produced(item)),
    )
    execute(
        "INSERT OR IGNORE INTO named VALUES (?,?)",
        sorted(row for item in stored for row in _named(item)),
    )


def remove(connection: sqlite3.Connection, stored: Iterable[Stored]) -> None:
    """Take out all rows of these operations."""
    execute = connection.executemany
    for item in stored:
        execute("DELETE FROM operation WHERE id = ?", [(item.id,)])
        execute("DELETE FROM uses WHERE id = ?", [(item.id,)])
        execute("DELETE FROM span WHERE key = ? AND operation = ?", [_span(item)[:2]])
        execute("DELETE FROM produced WHERE graph = ? AND ref = ? AND number = ?", _produced(item))
        execute(
            "DELETE FROM user WHERE graph = ? AND record = ? AND number = ?",
            user_rows(item.graph, item.number, keys.use_keys(item.operation)),
        )
        execute("DELETE FROM named WHERE name = ? AND operation = ?", _named(item))


def user_rows(graph: int, number: int, use_keys: bytes) -> list[tuple[int, int, int]]:
    """The index rows of what one operation uses."""
    return [(graph, key, number) for key in keys.unpacked(use_keys)]


def span_key(operation: Operation) -> int:
    return keys.span_key(operation.tenant, operation.trace_id, operation.span_id)


def _operation(item: Stored) -> tuple[int, bytes, bytes, int, int, bytes]:
    operation = item.operation
    return (
        item.id,
        bytes.fromhex(operation.trace_id),
        bytes.fromhex(operation.span_id),
        operation.start_ns,
        operation.end_ns,
        encoding.operation_body(operation),
    )


def _uses(item: Stored) -> tuple[int, int, bytes]:
    return item.id, item.operation.start_ns, keys.use_keys(item.operation)


def _span(item: Stored) -> tuple[int, int, int, int]:
    return item.span, item.id, *item.position


def _produced(item: Stored) -> list[tuple[int, int, int]]:
    return [(item.graph, keys.ref_key(ref), item.number) for ref in item.operation.outputs]


def _named(item: Stored) -> list[tuple[int, int]]:
    operation = item.operation
    names = ((RESPONSE, operation.response_id), (CONVERSATION, operation.conversation_id))
    return [(keys.name_key(operation.tenant, kind, name), item.id) for kind, name in names if name]
