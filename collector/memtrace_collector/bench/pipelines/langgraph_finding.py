"""The LangGraph agent's search tool."""

from __future__ import annotations

import memtrace_otel as memtrace
from memtrace_collector.bench.pipelines.langgraph_records import SYSTEM, Hit, Records
from memtrace_collector.bench.pipelines.surface import Surface
from memtrace_collector.bench.pipelines.turn import Item, carries
from memtrace_collector.bench.planned import Planting
from memtrace_collector.bench.stand_in.model import StandIn
from memtrace_otel import MemoryOperation

_FETCHED = 40


class Finding:
    """Searches for one question. ``reads``: graph of the records, where it is not the owner's."""

    def __init__(self, model: StandIn, surface: Surface, records: Records, reads: str = "") -> None:
        self._model = model
        self._surface = surface
        self._records = records
        self._reads = reads
        self._fetch = _FETCHED
        self._spoil()
        self._k = self._configured()

    def find(self, text: str) -> list[Item]:
        """What a search for ``text`` returns, best first."""
        searched = self._reads if not self._surface.declares_answer else ""
        with memtrace.operation("retrieve", system=SYSTEM, graph_id=searched or None) as op:
            op.inputs(memtrace.query(text))
            op.score_kind("similarity")
            op.limits(k=self._k)
            if self._reads and self._reads != op.graph_id:
                op.reads(self._reads)
            misled = self._model.plantings.fires("wrong_namespace")
            if misled:
                self._model.effect(misled)
            kept = self._cut(op, self._alive(op, self._records.search(text, self._fetch)))
            self._note_what_was_missed(kept)
        return [hit.record.item for hit in kept]

    def _alive(self, op: MemoryOperation, hits: list[Hit]) -> list[Hit]:
        now = self._model.case.question.asked_at
        alive = []
        for hit in hits:
            if hit.record.expires_at is not None and hit.record.expires_at <= now:
                op.dropped(hit.record.variable, hit.score, "expired")
            else:
                alive.append(hit)
        return alive

    def _cut(self, op: MemoryOperation, hits: list[Hit]) -> list[Hit]:
        for hit in hits[: self._k]:
            op.delivered(hit.record.variable, hit.score)
        for rank, hit in enumerate(hits[self._k :], start=self._k + 1):
            op.dropped(hit.record.variable, hit.score, "limit", rank)
        return hits[: self._k]

    def _ranks(self, planted: Planting | None = None) -> list[int]:
        """Ranks, for the question as asked, of what speaks of the evidence; with a planting, of
        what carries its message."""
        hits = self._records.search(self._model.case.question.text, 10_000)
        speaks = self._model.oracle.speaks_of
        return [
            rank
            for rank, hit in enumerate(hits, start=1)
            if (
                self._carries(planted, hit.record.item)
                if planted
                else speaks(hit.record.item.line())
            )
        ]

    def _configured(self) -> int:
        """The limit that the tool is configured with: enough for the question as asked, but for
        what is to be beyond it."""
        worst = max(self._ranks(), default=1)
        fires = self._model.plantings.fires
        self._fetch = max(_FETCHED, worst)
        if fires("query_lost"):
            return worst
        spoiled = fires("missed") or fires("below_the_limit")
        if spoiled is None:
            return max(self._surface.k, worst)
        first = min(self._ranks(spoiled), default=2)
        if fires("missed"):
            self._fetch = max(1, first - 1)
        return max(1, min(max(self._surface.k, worst), first - 1))

    def _spoil(self) -> None:
        """What is to be missed gets the vector of other words."""
        for kind in ("missed", "below_the_limit"):
            for planted in self._model.plantings.of(kind):
                self._records.index_as(
                    [r for r in self._records.all() if self._carries(planted, r.item)],
                    planted.detail.get("as_if", "Noted."),
                )

    def _note_what_was_missed(self, kept: list[Hit]) -> None:
        """In this search: the evidence was not delivered, or an older version of it was."""
        plantings = self._model.plantings
        for kind in ("missed", "below_the_limit"):
            for planted in plantings.of(kind):
                if not any(self._carries(planted, hit.record.item) for hit in kept):
                    self._model.effect(planted)
        stale = plantings.fires("stale_index")
        if stale and self._records.lagging:
            current = {record.key: record for record in self._records.all()}
            if any(current.get(hit.record.key) != hit.record for hit in kept):
                self._model.effect(stale)

    def _carries(self, planted: Planting, item: Item) -> bool:
        return carries(self._model, planted, item.line())
