"""Which span links the processor adds to what the host could know. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from memtrace_collector.graph.facts import OperationKey
from memtrace_collector.graph.sources import Role, Source
from memtrace_otel import semconv


class Link(NamedTuple):
    """A lineage link: its target and the value of ``memtrace.link.relation``."""

    target: OperationKey
    relation: str


def relation(step: str, role: Role) -> str:
    """The relation of an operation of this step to one that stands behind it."""
    if role is Role.DECIDER:
        return semconv.RELATION_DECIDED_BY
    if role is Role.PREDECESSOR:
        return semconv.RELATION_SUPERSEDES
    return semconv.STEP_RELATIONS.get(step, semconv.RELATION_DERIVED_FROM)


def missing_links(
    operation: OperationKey,
    parent: OperationKey | None,
    step: str,
    present: Iterable[OperationKey],
    sources: Iterable[Source],
) -> list[Link]:
    """Links to add, so that a span has at most ``semconv.MAX_LINKS`` lineage links in all.

    Args:
        operation: the span that gets them.
        parent: its direct parent; that relation shows in the tree already.
        present: targets of the lineage links it has. They stay, and count.
        sources: what stands behind it, most telling first.
    """
    taken = set(present)
    room = semconv.MAX_LINKS - len(taken)
    taken.add(operation)
    if parent is not None:
        taken.add(parent)
    links: list[Link] = []
    for source in sources:
        if len(links) >= room:
            break
        if source.key not in taken:
            taken.add(source.key)
            links.append(Link(source.key, relation(step, source.role)))
    return links
