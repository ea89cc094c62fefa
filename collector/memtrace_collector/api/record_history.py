"""The life of one record as an answer: who wrote each version, from what, and who read it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from memtrace_collector.api.questions import Json
from memtrace_collector.api.shapes import span_json, time_json
from memtrace_collector.graph import content
from memtrace_collector.graph.case import Write
from memtrace_collector.graph.facts import Operation
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.references import ancestry_inputs


def record_history(lookups: Lookups, graph_id: str, record: str) -> Json:
    """Every write of ``record`` (``kind:id``) in order, numbered from 1."""
    writes = lookups.history(graph_id, record)
    users = lookups.record_users(graph_id, [record]).get(record, [])
    values = lookups.reader.values(graph_id, {write.version for write in writes})
    texts = [
        content.expand(values[write.version], values) if write.version in values else None
        for write in writes
    ]
    versions = [
        _version_json(number, write, texts[number - 1], _diff(texts, number - 1), writes, users)
        for number, write in enumerate(writes, 1)
    ]
    return {"graph_id": graph_id, "record": record, "versions": versions}


def _version_json(
    number: int,
    write: Write,
    text: str | None,
    diff: list[str],
    writes: Sequence[Write],
    users: Iterable[Operation],
) -> Json:
    operation = write.operation
    readers = _readers(number - 1, writes, users)
    return {
        "number": number,
        "ref": write.version,
        "name": operation.name,
        "step": operation.step,
        "service": operation.service,
        "operation": str(operation.key),
        "span": span_json(operation.key),
        "time": time_json(operation.start_ns),
        "sources": list(ancestry_inputs(operation, write.version)),
        "supersedes": list(operation.supersedes),
        "text": text,
        "diff": diff,
        "readers": [_reader_json(reader) for reader in readers],
    }


def _readers(index: int, writes: Sequence[Write], users: Iterable[Operation]) -> list[Operation]:
    """Who was given this version while this write, and no later one of it, was in force."""
    write = writes[index]
    again = [
        later.operation.start_ns for later in writes[index + 1 :] if later.version == write.version
    ]
    earlier = any(one.version == write.version for one in writes[:index])
    first = write.operation.start_ns if earlier else 0
    last = min(again, default=2**63)
    read = [
        user for user in users if write.version in user.delivered and first <= user.start_ns < last
    ]
    return sorted(read, key=lambda user: (user.start_ns, user.key))


def _reader_json(reader: Operation) -> Json:
    return {
        "name": reader.name,
        "service": reader.service,
        "operation": str(reader.key),
        "span": span_json(reader.key),
        "time": time_json(reader.start_ns),
    }


def _diff(texts: Sequence[str | None], index: int) -> list[str]:
    """What changed against the version before, line by line; empty when not known."""
    before = texts[index - 1] if index else None
    after = texts[index]
    if before is None or after is None:
        return []
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]
