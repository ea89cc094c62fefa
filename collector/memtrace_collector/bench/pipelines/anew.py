"""A pipeline that sets up its program anew for every case, as the case's surface says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias

from memtrace_collector.bench.pipelines.base import Bench, Pipeline, Ran
from memtrace_collector.bench.pipelines.surface import Surface, surface
from memtrace_collector.bench.planned import PlannedCase
from memtrace_collector.bench.plantings import Plantings
from memtrace_collector.bench.stand_in.model import StandIn

Needs: TypeAlias = Mapping[str, Mapping[str, bool]]
"""See :func:`~memtrace_collector.bench.pipelines.surface.surface`."""


class Program(Protocol):
    """What serves one case, from its first message to its answer."""

    def run(self, case: PlannedCase) -> Ran: ...


Make: TypeAlias = Callable[[Bench, StandIn, Surface, Plantings], Program]


@dataclass(slots=True)
class Anew:
    """Implements :class:`~memtrace_collector.bench.pipelines.base.Pipeline`."""

    bench: Bench
    name: str
    make: Make
    needs: Needs

    def run(self, case: PlannedCase, plantings: Plantings, model: StandIn) -> Ran:
        program = self.make(self.bench, model, surface(case, self.needs), plantings)
        return program.run(case)


def anew(name: str, make: Make, needs: Needs) -> Callable[[Bench], Pipeline]:
    """A pipeline called ``name`` whose program is made by ``make``."""
    return partial(Anew, name=name, make=make, needs=needs)
