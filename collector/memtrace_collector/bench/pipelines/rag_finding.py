"""The RAG program's search: a rewritten query, two vector stores, a reranking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import memtrace_otel as memtrace
from memtrace_collector.bench.pipelines.rag_index import SYSTEM, Chunk, Hit, Index
from memtrace_collector.bench.pipelines.ranking import order
from memtrace_collector.bench.pipelines.surface import Surface
from memtrace_collector.bench.pipelines.turn import Item, carries
from memtrace_collector.bench.planned import Planting
from memtrace_collector.bench.stand_in.model import StandIn
from memtrace_otel import MemoryOperation, Variable

LEAST_FETCHED = 10
_FETCHED = 40
_SPOILED = ("missed", "below_the_limit")


def spoil(model: StandIn, as_if: dict[str, str], chunk: Chunk) -> None:
    """Note the other words under which a chunk is to be embedded, where that is planted."""
    for kind in _SPOILED:
        for planted in model.plantings.of(kind):
            if carries(model, planted, chunk.item.line()):
                as_if[chunk.text] = planted.detail.get("as_if", "Noted.")


class Finding:
    """Searches these stores for one question; the first is the user's own."""

    def __init__(self, model: StandIn, surface: Surface, indexes: Sequence[Index]) -> None:
        self._model = model
        self._surface = surface
        self._indexes = indexes
        self._question = model.case.question.text
        self._fetch = _FETCHED
        self._k = self._configured()

    def find(self, query: Variable) -> list[Item]:
        """What the prompt is to be made of, best first."""
        query, text = self._rewrite(query)
        if self._surface.staged_search:
            found = [hit for index in self._indexes for hit in self._search(query, text, [index])]
        else:
            found = self._search(query, text, self._indexes)
        return [hit.chunk.item for hit in self._rerank(query, text, found)]

    def _configured(self) -> int:
        """The limit that the searches are configured with: enough for the question as asked,
        but for what is to be beyond it."""
        worst = max(self._ranks(), default=1)
        fires = self._model.plantings.fires
        self._fetch = max(_FETCHED, worst)
        if fires("query_lost"):
            return worst
        spoiled = fires("missed") or fires("below_the_limit")
        if spoiled is None:
            return max(LEAST_FETCHED, worst)
        first = min(self._ranks(spoiled), default=2)
        if fires("missed"):
            self._fetch = max(1, first - 1)
        return max(1, min(max(LEAST_FETCHED, worst), first - 1))

    def _ranks(self, planted: Planting | None = None) -> list[int]:
        """Ranks, for the question as asked, of what speaks of the evidence; with a planting, of
        what carries its message."""
        speaks = self._model.oracle.speaks_of
        lines = [
            (rank, hit.chunk.item.line())
            for hits in _merged(self._groups(), self._question)
            for rank, hit in enumerate(hits, start=1)
        ]
        return [
            rank
            for rank, line in lines
            if (carries(self._model, planted, line) if planted else speaks(line))
        ]

    def _groups(self) -> list[Sequence[Index]]:
        """Which stores are searched together."""
        return [[i] for i in self._indexes] if self._surface.staged_search else [self._indexes]

    def _rewrite(self, query: Variable) -> tuple[Variable, str]:
        with memtrace.operation("rewrite", system=SYSTEM) as op:
            op.inputs(query)
            text = self._model.rewrite(self._question)
            rewritten = memtrace.query(text)
            op.outputs(rewritten)
        return rewritten, text

    def _search(self, query: Variable, text: str, indexes: Sequence[Index]) -> list[Hit]:
        hits = _merged([indexes], text)[0][: self._fetch]
        misled = self._model.plantings.fires("wrong_namespace")
        elsewhere = misled is not None and not self._surface.declares_answer
        with memtrace.operation(
            "retrieve",
            system=SYSTEM,
            name="retrieval chunks",
            graph_id=indexes[0].graph_id if elsewhere else None,
        ) as op:
            op.inputs(query)
            op.score_kind("similarity")
            own = op.graph_id
            op.reads(*(index.graph_id for index in indexes if index.graph_id != own))
            if misled and indexes[0] is self._indexes[0]:
                self._model.effect(misled)
            kept = self._cut(op, hits)
            self._note_what_was_missed(indexes, kept)
        return kept

    def _cut(self, op: MemoryOperation, hits: Sequence[Hit]) -> list[Hit]:
        planted = self._model.plantings.fires("below_threshold")
        threshold = self._threshold(planted, hits)
        op.limits(k=self._k, threshold=threshold)
        kept = []
        for rank, hit in enumerate(hits, start=1):
            if threshold is not None and hit.score < threshold:
                op.dropped(hit.chunk.variable, hit.score, "threshold", rank)
                if planted and carries(self._model, planted, hit.chunk.item.line()):
                    self._model.effect(planted)
            elif rank > self._k:
                op.dropped(hit.chunk.variable, hit.score, "limit", rank)
            else:
                op.delivered(hit.chunk.variable, hit.score)
                kept.append(hit)
        return kept

    def _threshold(self, planted: Planting | None, hits: Sequence[Hit]) -> float | None:
        """No threshold as a rule; one that is a little too high where that is planted."""
        if planted is None:
            return None
        carrying = [h.score for h in hits if carries(self._model, planted, h.chunk.item.line())]
        return max(carrying) + 0.01 if carrying else None

    def _note_what_was_missed(self, indexes: Sequence[Index], kept: Sequence[Hit]) -> None:
        """In this search: what carries the evidence lies in its stores and was not delivered."""
        for kind in _SPOILED:
            for planted in self._model.plantings.of(kind):
                there = any(
                    carries(self._model, planted, chunk.item.line())
                    for index in indexes
                    for chunk in index.chunks()
                )
                delivered = any(carries(self._model, planted, h.chunk.item.line()) for h in kept)
                if there and not delivered:
                    self._model.effect(planted)

    def _rerank(self, query: Variable, text: str, found: Sequence[Hit]) -> list[Hit]:
        """A cross-encoder's order, and its best ``k``."""
        tight = self._model.plantings.fires("reranked_away")
        speaking = sum(self._model.oracle.speaks_of(hit.chunk.item.line()) for hit in found)
        k = max(self._surface.k, speaking)
        if tight:
            k = min(k, len(found) - 1)
        with memtrace.operation("rerank", system=SYSTEM) as op:
            op.inputs(query, *(hit.chunk.variable for hit in found))
            op.score_kind("cross_encoder")
            op.limits(k=k)
            scores = self._model.rerank(text, [hit.chunk.item.line() for hit in found])
            ranked = [replace(found[index], score=scores[index]) for index in order(scores)]
            for hit in ranked[:k]:
                op.delivered(hit.chunk.variable, hit.score)
            for rank, hit in enumerate(ranked[k:], start=k + 1):
                op.dropped(hit.chunk.variable, hit.score, "rerank", rank)
        return ranked[:k]


def _merged(groups: Sequence[Sequence[Index]], text: str) -> list[list[Hit]]:
    """For each group of stores searched together, all that they hold, nearest first."""
    return [
        sorted((hit for index in group for hit in index.search(text)), key=lambda h: -h.score)
        for group in groups
    ]
