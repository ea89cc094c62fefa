"""Unbroken runs of the numbers of a process, from where they begin and end. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from memtrace_collector.graph.reader import Run, SequenceNumber


def runs_of(edges: Iterable[tuple[SequenceNumber, int]]) -> list[Run]:
    """Runs from their first and last numbers; what opens a run may be all of it."""
    runs: list[Run] = []
    for number, opens in edges:
        if opens:
            runs.append(Run(number, number))
        else:
            runs[-1] = runs[-1]._replace(last=number)
    return runs
