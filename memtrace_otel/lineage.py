"""Which operation of this process produced, delivered or decided a variable. Bounded.

Only for span links, the navigable projection of lineage: the collector resolves producers from
``memtrace.lineage`` and never from here. Thread-safe: the maps are only replaced and set.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from opentelemetry.trace import SpanContext

from memtrace_otel import semconv
from memtrace_otel.digests import Recent

_GENERATION = 10_000
_TRACES = 500
_DELIVERIES_PER_TRACE = 500


class Source:
    """An operation that had to do with a variable; a greater ``order`` is nearer in time."""

    __slots__ = ("context", "order")

    def __init__(self, order: int, context: SpanContext) -> None:
        self.order = order
        self.context = context


class LineageIndex:
    """Recent variables of this process and the spans behind them."""

    def __init__(self, size: int = _GENERATION) -> None:
        self._order = itertools.count(1)
        self._producers: Recent[str, Source] = Recent(size)
        self._deliverers: Recent[int, Recent[str, Source]] = Recent(_TRACES)
        self._deciders: Recent[str, Source] = Recent(size)
        self._published: Recent[str, bool] = Recent(size)

    def register(
        self,
        context: SpanContext,
        *,
        produced: Sequence[str] = (),
        delivered: Sequence[str] = (),
        decided: Sequence[str] = (),
    ) -> None:
        """Remember what the operation of this span did. Later calls overrule earlier ones."""
        source = Source(next(self._order), context)
        if produced:
            self._producers.set_all(produced, source)
        if delivered:
            self._deliveries(context.trace_id).set_all(delivered, source)
        if decided:
            self._deciders.set_all(decided, source)

    def _deliveries(self, trace_id: int) -> Recent[str, Source]:
        found = self._deliverers.get(trace_id)
        if found is None:
            found = Recent(_DELIVERIES_PER_TRACE)
            self._deliverers.set(trace_id, found)
        return found

    def producer(self, reference: str) -> SpanContext | None:
        """The span that last produced ``reference`` here."""
        source = self._producers.get(reference)
        return source.context if source else None

    def deliverer(self, reference: str, trace_id: int) -> SpanContext | None:
        """The span of this trace that last delivered ``reference``."""
        deliveries = self._deliverers.get(trace_id)
        source = deliveries.get(reference) if deliveries else None
        return source.context if source else None

    def links(
        self,
        step: str,
        *,
        trace_id: int,
        excluded: Sequence[int] = (),
        named: Sequence[SpanContext] = (),
        read: Sequence[str] = (),
        fetched: Sequence[str] = (),
        superseded: Sequence[str] = (),
    ) -> list[tuple[SpanContext, str]]:
        """At most 8 spans behind what was read, nearest first, each with its relation.

        A use of something delivered earlier in this trace leads to that delivery, any other to
        the producer, and a decided fact to its decision too (DESIGN section 3.2, links).

        Args:
            step: the reading operation's step; it names the relation.
            trace_id: its trace.
            excluded: span ids that get no link: the operation's own and its parent's.
            named: spans that the caller knows to be meant; they come first.
            read: references used or shown.
            fetched: references that this operation itself delivers.
            superseded: references that it replaces.
        """
        relation = semconv.STEP_RELATIONS.get(step, semconv.RELATION_DERIVED_FROM)
        producers = self._producers
        deliveries = self._deliverers.get(trace_id)
        deciders = self._deciders if self._deciders else None
        found: dict[Source, str] = {}
        for ref in read:
            source = producers.young.get(ref) or producers.old.get(ref)
            if deliveries is not None:
                source = deliveries.get(ref) or source
            if source is not None and source not in found:
                found[source] = relation
            if deciders is not None:
                decider = deciders.get(ref)
                if decider is not None and decider not in found:
                    found[decider] = semconv.RELATION_DECIDED_BY
        for ref in fetched:
            source = producers.get(ref)
            if source is not None and source not in found and ref not in read:
                found[source] = relation
        for ref in superseded:
            source = producers.get(ref)
            if source is not None and source not in found:
                found[source] = semconv.RELATION_SUPERSEDES
        if not (found or named):
            return []
        nearest = sorted(found.items(), key=_distance)
        links = [(context, relation) for context in named]
        links += [(source.context, name) for source, name in nearest]
        return _distinct(links, excluded)[: semconv.MAX_LINKS]

    def publish(self, references: Iterable[str]) -> None:
        """Remember that the values of these references have left the process."""
        self._published.set_all(references, True)

    def is_published(self, reference: str) -> bool:
        """Whether the value of ``reference`` has lately left the process on some span."""
        return self._published.get(reference) is not None


def _distance(found: tuple[Source, str]) -> int:
    return -found[0].order


def _distinct(
    links: list[tuple[SpanContext, str]], excluded: Sequence[int]
) -> list[tuple[SpanContext, str]]:
    """One link per span, the first; none to an excluded one."""
    seen = set(excluded)
    kept = []
    for context, relation in links:
        if context.span_id not in seen:
            seen.add(context.span_id)
            kept.append((context, relation))
    return kept
