"""Finding in stages: sparse and dense searches, fused, reranked, judged sufficient or asked again.

A program with one stage asks an index that scores both ways at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import memtrace_otel as memtrace
from memtrace_collector.bench.pipelines.ranking import bm25, cosine, fused, order
from memtrace_collector.bench.pipelines.staged_units import SYSTEM, Entry, Units
from memtrace_collector.bench.pipelines.surface import Surface
from memtrace_collector.bench.pipelines.turn import Item
from memtrace_collector.bench.planned import Planting
from memtrace_collector.bench.stand_in.model import StandIn
from memtrace_collector.demo.language import content_stems
from memtrace_otel import MemoryOperation, Variable

THRESHOLD = 0.02
_SPARSE_SHARE = 0.1
_FETCHED = 40
_MOST_DROPPED = 200


@dataclass(frozen=True, slots=True)
class Hit:
    """An index entry with its score in one ranking."""

    entry: Entry
    score: float

    @property
    def variable(self) -> Variable:
        return self.entry.unit.variable

    @property
    def line(self) -> str:
        """As a prompt shows it."""
        return self.entry.unit.line


class Finding:
    """Searches for one question. ``reads``: graph of the units, where it is not the owner's."""

    def __init__(self, model: StandIn, surface: Surface, units: Units, reads: str = "") -> None:
        self._model = model
        self._surface = surface
        self._units = units
        self._reads = reads
        self._question = model.case.question.text
        self._fetch = _FETCHED
        self._k = self._configured()
        self._spoil()

    def find(self, query: Variable) -> list[Item]:
        """What the prompt is to be made of, best first."""
        text = self._question
        if self._surface.rewrites:
            query, text = self._rewrite(query)
        if self._surface.staged_search:
            hits = self._in_stages(query, text)
        else:
            hits = self._at_once(query, text)
        return [
            Item(variable=hit.variable, text=hit.entry.unit.text, said_at=hit.entry.unit.valid_from)
            for hit in hits
        ]

    def _configured(self) -> int:
        """The limit that this program is configured with: enough for the question as asked.

        For what is to be beyond the limit it is as tight as that takes.
        """
        ranks = self._ranks()
        self._fetch = max(_FETCHED, *ranks, 1)
        if self._model.plantings.fires("query_lost"):
            return max(ranks, default=1)
        return max(self._surface.k, *ranks, 1)

    def _ranks(self, planted: Planting | None = None) -> list[int]:
        """Ranks, for the question as asked, of what speaks of the evidence; with a planting, of
        what carries its message."""
        entries = self._units.entries()
        scores = self._scores(self._question, entries)
        lines = [entries[index].unit.line for index in order(scores)]
        speaks = self._model.oracle.speaks_of
        return [
            rank
            for rank, line in enumerate(lines, start=1)
            if (self._carries(planted, line) if planted else speaks(line))
        ]

    def _scores(self, text: str, entries: Sequence[Entry]) -> list[float]:
        """Dense and sparse scores of the index in one."""
        vector = self._model.embed(text)
        sparse = bm25(text, [entry.indexed for entry in entries])
        return [
            cosine(entry.vector, vector) + _SPARSE_SHARE * score
            for entry, score in zip(entries, sparse, strict=True)
        ]

    def _spoil(self) -> None:
        """What is to be missed stands in the index under words that are not its own.

        The limit of what is fetched, or delivered, is then one too low for it at most.
        """
        for kind in ("missed", "below_the_limit"):
            for planted in self._model.plantings.of(kind):
                for unit in self._units.all():
                    if self._carries(planted, unit.line):
                        self._units.index_as(unit.id, planted.detail.get("as_if", "Noted."))
                first = min(self._ranks(planted), default=2)
                self._k = max(1, min(self._k, first - 1))
                if kind == "missed":
                    self._fetch = max(1, first - 1)
                else:
                    self._fetch = max(self._fetch, *self._ranks(planted), 1)

    def _rewrite(self, query: Variable) -> tuple[Variable, str]:
        with memtrace.operation("rewrite", system=SYSTEM) as op:
            op.inputs(query)
            text = self._model.rewrite(self._question)
            rewritten = memtrace.query(text)
            op.outputs(rewritten)
        return rewritten, text

    def _at_once(self, query: Variable, text: str) -> list[Hit]:
        entries = self._alive
        searched = self._reads if not self._surface.declares_answer else ""
        with memtrace.operation("retrieve", system=SYSTEM, graph_id=searched or None) as op:
            op.inputs(query)
            self._say_what_is_read(op)
            misled = self._model.plantings.fires("wrong_namespace")
            if misled:
                self._model.effect(misled)
            self._drop_expired(op)
            scores = self._scores(text, entries)
            hits = [Hit(entries[index], scores[index]) for index in order(scores)]
            kept = self._cut(op, hits[: self._fetch], "fused", self._k)
            self._note_what_was_missed(kept)
            return kept

    def _in_stages(self, query: Variable, text: str) -> list[Hit]:
        """The first round; a second one with another query when that was not enough."""
        hits = self._round(query, text)
        if not self._surface.second_round:
            return hits
        with memtrace.operation("rewrite", system=SYSTEM) as op:
            op.inputs(query)
            op.shown(*(hit.variable for hit in hits))
            more_of = " ".join(dict.fromkeys(content_stems(text)))
            again = memtrace.query(more_of)
            op.outputs(again)
        known = {hit.entry.unit.id for hit in hits}
        more = [hit for hit in self._round(again, more_of) if hit.entry.unit.id not in known]
        return [*hits, *more]

    def _round(self, query: Variable, text: str) -> list[Hit]:
        entries = self._alive
        with memtrace.operation("retrieve", system=SYSTEM, composite=True) as whole:
            whole.inputs(query)
            sparse = bm25(text, [entry.indexed for entry in entries])
            vector = self._model.embed(text)
            dense = [cosine(entry.vector, vector) for entry in entries]
            rankings = [
                self._search(query, entries, sparse, "bm25"),
                self._search(query, entries, dense, "similarity"),
            ]
            merged = self._fuse(query, entries, rankings)
            hits = self._rerank(query, text, merged)
            for hit in hits:
                whole.delivered(hit.variable, hit.score)
        return hits

    def _search(
        self, query: Variable, entries: Sequence[Entry], scores: Sequence[float], kind: str
    ) -> list[int]:
        """One ranking of the index, as far as it is fetched."""
        ranked = order(scores)[: self._fetch]
        with memtrace.operation("retrieve", system=SYSTEM) as op:
            op.inputs(query)
            op.score_kind(kind)
            op.limits(k=self._fetch)
            self._say_what_is_read(op)
            self._drop_expired(op)
            for index in ranked:
                op.delivered(entries[index].unit.variable, scores[index])
        return ranked

    def _fuse(
        self, query: Variable, entries: Sequence[Entry], rankings: Sequence[Sequence[int]]
    ) -> list[Hit]:
        """Both rankings as one. All of it goes on: what is cut, is cut by the reranking."""
        scores = fused(rankings)
        hits = [
            Hit(entries[index], scores[index])
            for index in sorted(scores, key=lambda index: -scores[index])
        ]
        with memtrace.operation("rerank", system=SYSTEM) as op:
            op.inputs(query, *(hit.variable for hit in hits))
            op.score_kind("fused")
            for hit in hits:
                op.delivered(hit.variable, hit.score)
        return hits

    def _rerank(self, query: Variable, text: str, merged: Sequence[Hit]) -> list[Hit]:
        with memtrace.operation("rerank", system=SYSTEM) as op:
            op.inputs(query, *(hit.variable for hit in merged))
            scores = self._model.rerank(text, [hit.line for hit in merged])
            hits = [Hit(merged[index].entry, scores[index]) for index in order(scores)]
            return self._cut(op, hits, "cross_encoder", self._enough(hits))

    def _enough(self, hits: Sequence[Hit]) -> int:
        """The reranking's limit: enough for what speaks of the evidence, unless that is to be
        beyond it."""
        if self._model.plantings.fires("reranked_away"):
            return self._k
        speaks = self._model.oracle.speaks_of
        return max(self._k, *(n for n, hit in enumerate(hits, start=1) if speaks(hit.line)), 1)

    def _cut(self, op: MemoryOperation, hits: Sequence[Hit], kind: str, k: int) -> list[Hit]:
        """The first ``k`` above the threshold; the rest is said to be dropped."""
        threshold, planted = self._threshold(hits)
        op.score_kind(kind)
        op.limits(k=k, threshold=threshold)
        kept: list[Hit] = []
        for rank, hit in enumerate(hits[: k + _MOST_DROPPED], start=1):
            if hit.score < threshold:
                op.dropped(hit.variable, hit.score, "threshold", rank)
                if planted and self._carries(planted, hit.line):
                    self._model.effect(planted)
            elif rank <= k:
                op.delivered(hit.variable, hit.score)
                kept.append(hit)
            else:
                op.dropped(hit.variable, hit.score, "limit", rank)
        return kept

    def _note_what_was_missed(self, kept: Sequence[Hit]) -> None:
        """In this search: what carries the evidence was no candidate, beyond the limit, or old."""
        plantings = self._model.plantings
        for kind in ("missed", "below_the_limit"):
            for planted in plantings.of(kind):
                if not any(self._carries(planted, hit.line) for hit in kept):
                    self._model.effect(planted)
        stale = plantings.fires("stale_index")
        if stale and any(hit.entry.unit.id in self._units.lagging for hit in kept):
            self._model.effect(stale)

    def _threshold(self, hits: Sequence[Hit]) -> tuple[float, Planting | None]:
        planted = self._model.plantings.fires("below_threshold")
        if planted:
            scores = [hit.score for hit in hits if self._carries(planted, hit.line)]
            if scores:
                return max(scores) * 1.02 + 1e-6, planted
        return 0.0, None

    @property
    def _alive(self) -> list[Entry]:
        now = self._model.case.question.asked_at
        return [
            entry
            for entry in self._units.entries()
            if entry.unit.expires_at is None or entry.unit.expires_at > now
        ]

    def _drop_expired(self, op: MemoryOperation) -> None:
        alive = {entry.unit.id for entry in self._alive}
        for entry in self._units.entries():
            if entry.unit.id not in alive:
                op.dropped(entry.unit.variable, None, "expired")

    def _say_what_is_read(self, op: MemoryOperation) -> None:
        if self._reads and self._reads != op.graph_id:
            op.reads(self._reads)

    def _carries(self, planted: Planting, line: str) -> bool:
        return planted.message in self._model.oracle.carried_by(line)
