"""The life of one record: its versions, and what changed between two of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from memtrace_collector.errors import NotFoundError, WrongUseError
from memtrace_collector.graph import versions
from memtrace_collector.graph.facts import Operation
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.questions.answered import Found, Paged, Texts, each
from memtrace_collector.graph.questions.arguments import GraphId, Record
from memtrace_collector.graph.questions.shapes import Json, span_json, time_json
from memtrace_collector.graph.questions.suggest import known_graph, no_such_record
from memtrace_collector.graph.reader import GraphReader
from memtrace_collector.graph.references import ancestry_inputs
from memtrace_collector.graph.versions import Version
from memtrace_otel import variables


class History(Paged, frozen=True, kw_only=True):
    """Every version of one memory record, oldest first: which operation wrote it, from what,
    what changed against the version before, and which reads were given it."""

    graph: GraphId
    record: Record


class Diff(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What changed between two versions of one record, as lines removed (-) and added (+)."""

    graph: GraphId
    record: Record
    before: Annotated[
        str, msgspec.Meta(description="Number of the older version, from 1, or its reference.")
    ]
    after: Annotated[str, msgspec.Meta(description="Number of the newer one, or its reference.")]


def history(reader: GraphReader, graph_id: str, record: str, texts: Texts) -> Found[Version]:
    """The versions of ``record`` (``kind:id``, or a reference to one of them).

    Raises:
        NotFoundError: no such graph, or nobody was seen to write the record.
    """
    name, found = _versions(reader, graph_id, record)
    numbers = {id(version): number for number, version in enumerate(found, 1)}
    return Found(
        {"graph_id": graph_id, "record": name},
        "versions",
        found,
        each(lambda version: _version_json(numbers[id(version)], version, texts)),
    )


def diff(
    reader: GraphReader, graph_id: str, record: str, before: str, after: str, texts: Texts
) -> Found[Version]:
    """What changed from one version of ``record`` to another.

    Raises:
        NotFoundError: no such graph, record or version.
        WrongUseError: a version is neither a number nor a reference.
    """
    name, found = _versions(reader, graph_id, record)
    old, new = (_numbered(name, found, wanted) for wanted in (before, after))
    one, other = found[old - 1], found[new - 1]
    known = one.text is not None and other.text is not None
    return Found(
        {
            "graph_id": graph_id,
            "record": name,
            "before": _version_json(old, one, texts),
            "after": _version_json(new, other, texts),
            "diff": texts.lines(versions.diff(one.text, other.text)) if known else None,
            "same": _is_same(one, other),
        }
    )


def ask_history(reader: GraphReader, given: History, texts: Texts) -> Found[Version]:
    return history(reader, given.graph, given.record, texts)


def ask_diff(reader: GraphReader, given: Diff, texts: Texts) -> Found[Version]:
    return diff(reader, given.graph, given.record, given.before, given.after, texts)


def _versions(reader: GraphReader, graph_id: str, record: str) -> tuple[str, list[Version]]:
    known_graph(reader, graph_id)
    name = variables.record_of(record) if "@" in record else record
    found = versions.versions(Lookups(reader), graph_id, name)
    if not found:
        raise no_such_record(reader, graph_id, name)
    return name, found


def _numbered(name: str, found: Sequence[Version], wanted: str) -> int:
    if wanted.isascii() and wanted.isdecimal():
        number = int(wanted)
        if not 1 <= number <= len(found):
            raise NotFoundError(f"{name} has the versions 1 to {len(found)}, and no {number}")
        return number
    if "@" not in wanted:
        raise WrongUseError(f"{wanted!r} is neither the number of a version nor a reference")
    numbers = [n for n, version in enumerate(found, 1) if version.write.version == wanted]
    if not numbers:
        known = ", ".join(version.write.version for version in found[:5])
        raise NotFoundError(f"{wanted} is no version of {name}; there are {known}")
    return numbers[-1]


def _is_same(one: Version, other: Version) -> bool | None:
    """Have both the same text? By digest, which needs no content, under one key only."""
    if one.write.operation.digest_key != other.write.operation.digest_key:
        return None
    first, second = (
        variables.text_version(variables.version_of(item.write.version)) for item in (one, other)
    )
    return first == second


def _version_json(number: int, version: Version, texts: Texts) -> Json:
    operation = version.write.operation
    return {
        "number": number,
        "ref": version.write.version,
        "step": operation.step,
        **_operation_json(operation),
        "sources": list(ancestry_inputs(operation, version.write.version)),
        "supersedes": list(operation.supersedes),
        "text": texts.one(version.text),
        "diff": texts.lines(version.diff),
        "readers": [
            {**_operation_json(reader.operation), "rank": reader.rank, "score": reader.score}
            for reader in version.readers
        ],
    }


def _operation_json(operation: Operation) -> Json:
    return {
        "name": operation.name,
        "service": operation.service,
        "operation": str(operation.key),
        "span": span_json(operation.key),
        "time": time_json(operation.start_ns),
    }
