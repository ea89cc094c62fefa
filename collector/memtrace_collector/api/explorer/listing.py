"""Which verdicts a list shows: filters, what each filter would leave, and pages. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from memtrace_collector.attribution.verdict import MEMORY_STAGES
from memtrace_collector.store.short_verdicts import ShortVerdict

FACETS: Mapping[str, Callable[[ShortVerdict], str]] = {
    "stage": lambda verdict: verdict.stage,
    "type": lambda verdict: verdict.error_type,
    "graph": lambda verdict: verdict.graph_id,
    "system": lambda verdict: verdict.system,
    "service": lambda verdict: verdict.service,
    "method": lambda verdict: verdict.method,
}
"""Filters by one value, by their parameters."""
HUMAN = "human"


class Filters(NamedTuple):
    """What is asked for; ``values`` holds the filters of :data:`FACETS` that are set, ``human``
    is None for all, ``text`` is looked for whatever its case."""

    values: Mapping[str, str] = {}
    text: str = ""
    memory_only: bool = False
    human: bool | None = None


class Filtered(NamedTuple):
    """``counts``: for each facet, how many verdicts each of its values would leave."""

    verdicts: list[ShortVerdict]
    counts: dict[str, Counter[str]]


def is_memory_fault(stage: str) -> bool:
    return stage in MEMORY_STAGES


def filtered(verdicts: Iterable[ShortVerdict], filters: Filters) -> Filtered:
    """Those that pass every filter, in the order given."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in FACETS}
    passed = []
    needle = filters.text.casefold()
    for verdict in verdicts:
        if not _is_wanted(verdict, filters, needle):
            continue
        values = {name: read(verdict) for name, read in FACETS.items()}
        missed = [name for name, wanted in filters.values.items() if values[name] != wanted]
        if not missed:
            passed.append(verdict)
        for name in FACETS if not missed else missed if len(missed) == 1 else ():
            counts[name][values[name]] += 1
    return Filtered(passed, counts)


def page_after(
    verdicts: Sequence[ShortVerdict], after: tuple[str, str], limit: int
) -> list[ShortVerdict]:
    """At most ``limit`` of the newest-first list, those older than ``after`` (time, id)."""
    older = (v for v in verdicts if not any(after) or (v.created, v.id) < after)
    return [verdict for verdict, _ in zip(older, range(limit))]


def _is_wanted(verdict: ShortVerdict, filters: Filters, needle: str) -> bool:
    if filters.memory_only and not is_memory_fault(verdict.stage):
        return False
    if filters.human is not None and (verdict.method == HUMAN) is not filters.human:
        return False
    return not needle or any(needle in text.casefold() for text in _searched(verdict))


def _searched(verdict: ShortVerdict) -> Iterable[str]:
    yield verdict.explanation
    yield verdict.graph_id
    yield verdict.id
    yield from map(str, (verdict.answer_key, *verdict.decisive_keys))
    yield verdict.case_trace or ""
    yield verdict.operation
