"""What becomes of candidates in the staged system: decided, then created, updated or deleted."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import memtrace_otel as memtrace
from memtrace_collector.bench.pipelines.ranking import cosine, order
from memtrace_collector.bench.pipelines.staged_forming import Candidate
from memtrace_collector.bench.pipelines.staged_units import SYSTEM, Unit, Units
from memtrace_collector.bench.pipelines.surface import Surface
from memtrace_collector.bench.planned import Planting
from memtrace_collector.bench.stand_in.model import StandIn
from memtrace_collector.demo.decision import Action, Memory
from memtrace_otel import MemoryOperation, Variable

LIFETIME = timedelta(days=3650)
_SIMILAR, _RECENT = 8, 8
"""How many units a decision is shown: the most similar ones, and the newest."""


class WriteFailedError(Exception):
    """The store did not confirm a write."""


class Writing:
    """Writes candidates into the units of one owner."""

    def __init__(self, model: StandIn, surface: Surface, units: Units) -> None:
        self._model = model
        self._surface = surface
        self._units = units

    def write(self, found: Sequence[Candidate]) -> None:
        """Store what is worth storing of these; what one message says is decided at once."""
        if not self._surface.decides:
            for candidate in found:
                self.create(candidate)
            return
        for _, of_one in itertools.groupby(found, key=lambda each: each.message.id):
            self._decide(list(of_one))

    def create(self, candidate: Candidate) -> Unit | None:
        """A new unit of this candidate. A write that fails is passed over: None."""
        model = self._model
        unit = Unit(
            id=self._units.new_id(),
            text=candidate.text,
            valid_from=candidate.message.said_at,
            expires_at=self._expiry(candidate),
        )
        failing = self._planted("write_failed", candidate)
        with memtrace.operation("create", system=SYSTEM) as op:
            op.inputs(candidate.variable)
            if failing:
                model.effect(failing)
                op.fail(WriteFailedError("the store did not confirm the write"))
                return None
            expiring = self._planted("expired", candidate)
            if expiring:
                model.effect(expiring)
            written = self._units.put(unit)
            op.outputs(written.variable)
            op.edge(candidate.variable, written.variable)
            if self._surface.dated:
                op.time(written.variable, written.valid_from)
        return written

    def append(self, page: Unit, candidate: Candidate, planted: Planting | None = None) -> Unit:
        """The page as it was read, with one text more; ``planted``: it has been read too early."""
        with memtrace.operation("update", system=SYSTEM) as op:
            op.inputs(page.variable, candidate.variable)
            op.supersedes(page.variable)
            if planted:
                self._model.effect(planted)
            written = self._units.put(replace(page, text=f"{page.text} {candidate.text}"))
            op.outputs(written.variable)
            op.edge(page.variable, written.variable)
            op.edge(candidate.variable, written.variable)
            op.time(written.variable, written.valid_from)
        return written

    def update(
        self, unit: Unit, source: Variable, text: str, valid_from: datetime, *, lags: bool
    ) -> Unit:
        """A new version of ``unit`` with this text; ``lags``: the index does not see it yet."""
        if lags:
            self._units.lagging.add(unit.id)
        with memtrace.operation("update", system=SYSTEM) as op:
            op.inputs(source)
            op.supersedes(unit.variable)
            written = self._units.put(
                Unit(id=unit.id, text=text, valid_from=valid_from, expires_at=unit.expires_at)
            )
            op.outputs(written.variable)
            op.edge(source, written.variable)
            if self._surface.dated:
                op.time(written.variable, valid_from)
        return written

    def delete(self, unit: Unit) -> None:
        """``unit`` is gone."""
        with memtrace.operation("delete", system=SYSTEM) as op:
            op.supersedes(unit.variable)
            self._units.remove(unit.id)
            op.outputs(memtrace.deleted_memory(unit.id, system=SYSTEM))

    def _decide(self, found: Sequence[Candidate]) -> None:
        existing = self._offered(found)
        authored: dict[str, Variable] = {}
        with memtrace.operation("decide", system=SYSTEM) as op:
            op.inputs(*(candidate.variable for candidate in found))
            op.shown(*(unit.variable for unit in existing))
            fresh = self._without_known(op, found)
            actions = self._model.decide(
                [candidate.text for candidate in fresh],
                [Memory(str(number), unit.text) for number, unit in enumerate(existing)],
            )
            by_text = {candidate.text: candidate for candidate in found}
            for action in actions:
                self._record(op, action, by_text, existing, authored)
            chosen = {action.text for action in actions}
            for candidate in fresh:
                if candidate.text not in chosen:
                    op.decision(candidate.variable, "NOOP")
        latest = found[-1].message.said_at
        for action in actions:
            self._carry_out(action, by_text, existing, authored, latest)

    def _offered(self, found: Sequence[Candidate]) -> list[Unit]:
        """The units that a decision is shown: similar ones and the newest."""
        entries = self._units.entries()
        wanted = [self._model.embed(candidate.text) for candidate in found]
        nearest = [
            max((cosine(entry.vector, vector) for vector in wanted), default=0.0)
            for entry in entries
        ]
        similar = [entries[index].unit for index in order(nearest)[:_SIMILAR]]
        newest = self._units.all()[-_RECENT:]
        return list({unit.id: unit for unit in (*similar, *newest)}.values())

    def _without_known(self, op: MemoryOperation, found: Sequence[Candidate]) -> list[Candidate]:
        """Candidates that are not in the store already."""
        known = {unit.text for unit in self._units.all()}
        fresh = []
        for candidate in found:
            planted = self._planted("taken_for_known", candidate)
            if planted:
                self._model.effect(planted)
            if planted or candidate.text in known:
                op.dropped(candidate.variable, 0.97 if planted else 1.0, "dedup")
            else:
                fresh.append(candidate)
        return fresh

    def _record(
        self,
        op: MemoryOperation,
        action: Action,
        by_text: dict[str, Candidate],
        existing: Sequence[Unit],
        authored: dict[str, Variable],
    ) -> None:
        """One decision; text that the decision wrote itself is a new fact of its own."""
        target = self._target(action, existing)
        candidate = by_text.get(action.text)
        if candidate is None and target is not None and action.event == "UPDATE":
            merged = memtrace.fact(action.text)
            authored[action.text] = merged
            op.outputs(merged)
            op.edge(target.variable, merged)
        fact = candidate.variable if candidate else authored.get(action.text)
        op.decision(fact, action.event, target.variable if target else None)

    def _carry_out(
        self,
        action: Action,
        by_text: dict[str, Candidate],
        existing: Sequence[Unit],
        authored: dict[str, Variable],
        latest: datetime,
    ) -> None:
        target = self._target(action, existing)
        candidate = by_text.get(action.text)
        if target is None:
            if candidate is not None:
                self.create(candidate)
        elif action.event == "DELETE":
            self.delete(target)
        else:
            source = candidate.variable if candidate else authored[action.text]
            lags = candidate is not None and bool(self._planted("stale_index", candidate))
            when = candidate.message.said_at if candidate else latest
            self.update(target, source, action.text, when, lags=lags)

    def _target(self, action: Action, existing: Sequence[Unit]) -> Unit | None:
        if action.event == "ADD" or int(action.id) >= len(existing):
            return None
        return existing[int(action.id)]

    def _expiry(self, candidate: Candidate) -> datetime | None:
        """Units expire after ten years; one that is planted to, before the question."""
        said = candidate.message.said_at
        if self._planted("expired", candidate):
            return said + max(timedelta(), self._model.case.question.asked_at - said) / 2
        return said + LIFETIME if self._surface.expires else None

    def _planted(self, kind: str, candidate: Candidate) -> Planting | None:
        planted = self._model.plantings.fires(kind, candidate.message.id)
        carried = self._model.oracle.carried_by
        if planted and candidate.message.id in carried(candidate.line):
            return planted
        return None
