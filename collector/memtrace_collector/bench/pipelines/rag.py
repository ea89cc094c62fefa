"""Answers from a corpus that several users share, and from the user's own conversation.

python -m memtrace_collector.bench.pipelines.rag --plan plan.json --outcomes out.jsonl
"""

from __future__ import annotations

import random
import sys

import memtrace_otel as memtrace
from memtrace_collector.bench.dialogue import Message
from memtrace_collector.bench.faults import RAG
from memtrace_collector.bench.pipelines import rag_index, runner, turn
from memtrace_collector.bench.pipelines.anew import anew
from memtrace_collector.bench.pipelines.base import Bench, Ran, owner_of, told
from memtrace_collector.bench.pipelines.neighbour import graph_of, neighbour_messages, neighbour_of
from memtrace_collector.bench.pipelines.rag_finding import Finding, spoil
from memtrace_collector.bench.pipelines.rag_index import SYSTEM, Chunk, Index
from memtrace_collector.bench.pipelines.surface import Surface
from memtrace_collector.bench.pipelines.vectors import StandInEmbeddings
from memtrace_collector.bench.planned import PlannedCase
from memtrace_collector.bench.plantings import Plantings
from memtrace_collector.bench.stand_in.model import StandIn

_SHARED = 0.5
"""Part of the dialogue that is in the corpus: minutes of meetings, as it were."""


class _Assistant:
    """One assistant: a store per owner, and the corpus."""

    def __init__(self, bench: Bench, model: StandIn, chosen: Surface, plantings: Plantings) -> None:
        self._bench = bench
        self._model = model
        self._surface = chosen
        self._plantings = plantings
        self._embeddings = StandInEmbeddings(model)
        self._indexes: dict[str, Index] = {}

    def run(self, case: PlannedCase) -> Ran:
        chance = random.Random(f"corpus {case.dialogue} {case.question.text}")  # noqa: S311 - repeatable on purpose, no secret
        for message in neighbour_messages(case):
            self._take_in(message, graph_of(neighbour_of(case)))
        for message in told(case, self._plantings):
            owner = owner_of(case, message, self._plantings)
            shared = chance.random() < _SHARED and owner == case.owner
            if self._plantings.fires("wrong_namespace", message.id):
                shared = shared and message.id not in case.question.evidence
            graph_id = corpus_of(case) if shared else graph_of(owner)
            self._take_in(message, graph_id, misfiled=owner != case.owner)
        return self._answer(case, graph_of(case.owner))

    def _index(self, graph_id: str) -> Index:
        if graph_id not in self._indexes:
            self._indexes[graph_id] = Index(graph_id, self._embeddings)
        return self._indexes[graph_id]

    def _take_in(self, message: Message, graph_id: str, *, misfiled: bool = False) -> None:
        chunk = Chunk(id="", text=f"{message.speaker}: {message.text}", message=message)
        spoil(self._model, self._embeddings.as_if, chunk)
        with self._bench.turn("index"):
            rag_index.ingest(self._model, self._index(graph_id), message, misfiled=misfiled)

    def _answer(self, case: PlannedCase, graph_id: str) -> Ran:
        wrong = self._plantings.fires("wrong_namespace")
        own = graph_of(neighbour_of(case)) if wrong else graph_id
        indexes = [self._index(own), self._index(corpus_of(case))]
        with self._bench.turn("question"), memtrace.graph(graph_id):
            query = turn.ask(self._model, SYSTEM)
            skipped = self._plantings.fires("not_searched")
            items = [] if skipped else Finding(self._model, self._surface, indexes).find(query)
            prompt = turn.assemble(self._model, SYSTEM, query, items, "Excerpts:")
            ran = turn.answer(
                self._bench,
                self._model,
                SYSTEM,
                prompt,
                graph_id,
                declared=self._surface.declares_answer,
            )
        if skipped:
            self._plantings.took_effect(skipped, ran.answer)
        return ran


def corpus_of(case: PlannedCase) -> str:
    """The graph of the corpus of the case owner's team."""
    return f"corpus:{case.owner}-team"


rag = anew(RAG, _Assistant, {})


if __name__ == "__main__":
    sys.exit(runner.main(rag))
