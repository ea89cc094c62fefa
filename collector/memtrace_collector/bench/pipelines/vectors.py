"""The stand-in's vectors as LangChain's embeddings, which its stores and LangGraph's take."""

from __future__ import annotations

from langchain_core.embeddings import Embeddings

from memtrace_collector.bench.pipelines.ranking import embedded
from memtrace_collector.bench.stand_in.model import StandIn


class StandInEmbeddings(Embeddings):
    """The stand-in's vectors.

    Attributes:
        lines: texts -> the same with their dates.
        as_if: texts -> those that they are embedded as, by mistake.
    """

    def __init__(self, model: StandIn) -> None:
        self.lines: dict[str, str] = {}
        self.as_if: dict[str, str] = {}
        self._model = model

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self._embedded(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self._model.embed(text)

    def _embedded(self, text: str) -> list[float]:
        other = self.as_if.get(text)
        if other is not None:
            return self._model.embed(other)
        return embedded(self._model, text, self.lines.get(text, text))
