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
    used = [Use(item, ref) for item in items for ref in ancestry_inputs(item, None)]
    _collect(lookups, used, Role.SOURCE, sources)
    for item in items:
        choices = deciding.choices(item, lookups.tree(item.trace_id))
        sources[item.key] += [Source(choice.operation.key, Role.DECIDER) for choice in choices]
    replaced = [Use(item, ref) for item in items for ref in item.supersedes]
    _collect(lookups, replaced, Role.PREDECESSOR, sources)
    return sources


def _collect(
    lookups: Lookups,
    uses: list[Use],
    role: Role,
    sources: dict[OperationKey, list[Source]],
) -> None:
    straight = _straight(lookups, uses)
    resolved = resolution.resolve(lookups, [use for use in uses if use.key not in straight])
    for use in uses:
        key = use.key
        maker = straight.get(key)
        if maker is not None:
            sources[key.user].append(Source(maker, role))
            continue
        occurrences = resolved[key].occurrences
        sources[key.user] += [Source(found.operation.key, role) for found in occurrences]


def _straight(lookups: Lookups, uses: list[Use]) -> dict[UseKey, OperationKey]:
    """The makers of what has a single one that no rule could gainsay."""
    lookups.read_traces([use.user for use in uses])
    wanted: dict[str, list[str]] = defaultdict(list)
    for use in uses:
        wanted[use.user.graph_id].append(use.ref)
    for graph_id, refs in wanted.items():
        lookups.read_producers(graph_id, refs)
    found = {}
    for use in uses:
        maker = lookups.only_producers(use.user.graph_id).get(use.ref)
        if maker is not None and resolution.is_plain(lookups, use, maker):
            found[use.key] = maker
    return found
