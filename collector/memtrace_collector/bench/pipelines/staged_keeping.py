"""What happens to units after they were written: consolidation, and pages that several write."""

from __future__ import annotations

from collections.abc import Sequence

import memtrace_otel as memtrace
from memtrace_collector.bench.pipelines.staged_forming import Candidate
from memtrace_collector.bench.pipelines.staged_units import SYSTEM, Unit, Units
from memtrace_collector.bench.pipelines.staged_writing import Writing
from memtrace_collector.bench.planned import Planting
from memtrace_collector.bench.stand_in.model import StandIn

_OLDEST = 4
"""How many of the oldest units a consolidation takes."""


def consolidate(model: StandIn, units: Units) -> None:
    """The oldest units become one that sums them up.

    With ``summary_dropped`` those that carry its message are among them.
    """
    everything = units.all()
    planted = model.plantings.fires("summary_dropped")
    chosen = list(everything[:_OLDEST])
    if planted:
        chosen += [unit for unit in everything if _carries(model, planted, unit)]
    chosen = list({unit.id: unit for unit in chosen}.values())
    if len(chosen) < 2:
        return
    with memtrace.operation("consolidate", system=SYSTEM) as op:
        op.inputs(*(unit.variable for unit in chosen))
        op.supersedes(*(unit.variable for unit in chosen))
        text = model.summarise([unit.line for unit in chosen])
        latest = max(unit.valid_from for unit in chosen)
        summary = units.put(Unit(id=units.new_id(), text=text, valid_from=latest))
        op.outputs(summary.variable)
        op.time(summary.variable, latest)
        for unit in chosen:
            op.edge(unit.variable, summary.variable)
            units.remove(unit.id)
            op.outputs(memtrace.deleted_memory(unit.id, system=SYSTEM))


def write_page(
    model: StandIn, writing: Writing, found: Sequence[Candidate], planted: Planting
) -> list[Candidate]:
    """Two workers add to one page of the owner; the second has not seen what the first wrote.

    Returns what does not go onto the page; all of ``found`` where there is too little for one.
    """
    carrying = [c for c in found if planted.message in model.oracle.carried_by(c.line)]
    others = [c for c in found if not model.oracle.speaks_of(c.line)]
    if not carrying or len(others) < 2:
        return list(found)
    base = writing.create(others[0])
    if base is None:
        return list(found)
    page = base
    for candidate in carrying:
        page = writing.append(page, candidate)
    writing.append(base, others[1], planted)
    written = {id(c) for c in (*carrying, *others[:2])}
    return [c for c in found if id(c) not in written]


def _carries(model: StandIn, planted: Planting, unit: Unit) -> bool:
    return planted.message in model.oracle.carried_by(unit.line)
