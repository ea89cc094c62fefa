"""The rules with sentence embeddings for wordings that they leave open."""

from __future__ import annotations

import dataclasses
import logging

from memtrace_collector.attribution.attribute import attribute
from memtrace_collector.attribution.model.collect import Collected, Key
from memtrace_collector.attribution.model.similarity import Embedder, EmbeddingError, judged
from memtrace_collector.attribution.verdict import Verdict
from memtrace_collector.graph.case import Case
from memtrace_collector.telemetry.metrics import Metrics

logger = logging.getLogger(__name__)

TEXT = "text"


class Similar:
    """Answers the doubts of a case by similarity; nothing where texts cannot be embedded."""

    def __init__(self, embedder: Embedder, metrics: Metrics) -> None:
        self._embedder, self._metrics = embedder, metrics

    def answers(self, case: Case) -> dict[Key, bool | None]:
        """What similarity says of the doubts that the rules have."""
        collected = Collected({})
        attribute(case, judgements=collected)
        try:
            return judged(case, collected.doubts.values(), self._embedder)
        except EmbeddingError as error:
            logger.warning("texts were compared by words alone: %s", error)
            self._metrics.add("memtrace.embeddings.failures", 1)
            return {}

    def __call__(self, case: Case) -> Verdict:
        """The rules' verdict with these answers; it then rests on text."""
        answers = self.answers(case)
        collected = Collected(answers)
        verdict = attribute(case, judgements=collected)
        if not collected.used or TEXT in verdict.basis:
            return verdict
        return dataclasses.replace(verdict, basis=(*verdict.basis, TEXT))
