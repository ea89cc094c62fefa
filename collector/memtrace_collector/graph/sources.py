"""The operations that stand one step behind others, and what they did for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from memtrace_collector.graph import deciding, resolution
from memtrace_collector.graph.facts import Operation, OperationKey
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.reader import GraphReader
from memtrace_collector.graph.references import ancestry_inputs
from memtrace_collector.graph.resolution import Use, UseKey
from memtrace_otel import semconv

_UNKNOWN = f"@{semconv.UNKNOWN_VERSION}"


class Role(Enum):
    """What another operation did for this one."""

    SOURCE = "source"
    """Produced or delivered something that this one used."""
    DECIDER = "decider"
    """Chose this write."""
    PREDECESSOR = "predecessor"
    """Made the version that this one replaced or removed."""


class Source(NamedTuple):
    """An operation that stands behind another, and how."""

    key: OperationKey
    role: Role


def resolve_sources(
    reader: GraphReader, operations: Iterable[Operation]
) -> dict[OperationKey, list[Source]]:
    """Per operation: producers and deliverers of what it used (in its order), who decided it,
    then the makers of what it superseded.
    """
    items = list(operations)
    lookups = Lookups(reader)
    sources: dict[OperationKey, list[Source]] = {item.key: [] for item in items}
    used = [_Used(item, tuple(ancestry_inputs(item, None))) for item in items]
    _collect(lookups, used, Role.SOURCE, sources)
    for item in items:
        choices = deciding.choices(item, lookups.tree(item.trace_id))
        sources[item.key] += [Source(choice.operation.key, Role.DECIDER) for choice in choices]
    replaced = [_Used(item, item.supersedes) for item in items if item.supersedes]
    _collect(lookups, replaced, Role.PREDECESSOR, sources)
    return sources


class _Used(NamedTuple):
    user: Operation
    refs: tuple[str, ...]


def _collect(
    lookups: Lookups,
    used: list[_Used],
    role: Role,
    sources: dict[OperationKey, list[Source]],
) -> None:
    _read(lookups, used)
    straight = [_makers(lookups, item) for item in used]
    left = [
        Use(user, ref)
        for (user, refs), makers in zip(used, straight)
        for ref, maker in zip(refs, makers)
        if maker is None
    ]
    resolved = resolution.resolve(lookups, left) if left else {}
    for (user, refs), makers in zip(used, straight):
        key = user.key
        behind = sources[key]
        for ref, maker in zip(refs, makers):
            if maker is not None:
                behind.append(Source(maker, role))
                continue
            occurrences = resolved[UseKey(key, ref)].occurrences
            behind += [Source(found.operation.key, role) for found in occurrences]


def _read(lookups: Lookups, used: list[_Used]) -> None:
    """All that is asked for, with few reads."""
    lookups.read_traces([user for user, _ in used])
    wanted: dict[str, list[str]] = defaultdict(list)
    for user, refs in used:
        wanted[user.graph_id] += refs
    for graph_id, names in wanted.items():
        lookups.read_producers(graph_id, names)


def _makers(lookups: Lookups, used: _Used) -> list[OperationKey | None]:
    """Of each reference the single producer, where no rule could gainsay it."""
    user, refs = used
    key, named = user.key, user.sources
    only = lookups.only_producers(user.graph_id)
    makers = [only.get(ref) for ref in refs]
    if not lookups.is_alone(user.trace_id):
        delivering = lookups.tree(user.trace_id).delivering
        makers = [None if delivering(ref) else maker for ref, maker in zip(refs, makers)]
    return [
        None if maker == key or ref.endswith(_UNKNOWN) or named.get(ref, maker) != maker else maker
        for ref, maker in zip(refs, makers)
    ]
