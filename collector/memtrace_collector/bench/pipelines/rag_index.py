"""The RAG program's documents: messages in chunks, in vector stores of LangChain's."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore

import memtrace_otel as memtrace
from memtrace_collector.bench.dialogue import Message
from memtrace_collector.bench.pipelines.segments import segments, without_needed
from memtrace_collector.bench.pipelines.turn import Item
from memtrace_collector.bench.pipelines.vectors import StandInEmbeddings
from memtrace_collector.bench.stand_in.model import StandIn
from memtrace_collector.demo.language import sentences
from memtrace_otel import Variable

SYSTEM = "rag"
CHUNK_CHARS = 1_800
_EVERYTHING = 10_000
_NAMESPACE = uuid.UUID("0c5a7c0e-4f5e-4b6e-9c53-6a9c6f1f7a22")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A part of a message as it is indexed: led by who said it."""

    id: str
    text: str
    message: Message

    @property
    def variable(self) -> Variable:
        return memtrace.document(self.text, self.id, system=SYSTEM)

    @property
    def item(self) -> Item:
        """As a prompt shows it."""
        return Item(variable=self.variable, text=self.text, said_at=self.message.said_at)


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk with its score in one ranking."""

    chunk: Chunk
    score: float


class Index:
    """One vector store: a user's conversation, or a corpus that several users share."""

    def __init__(self, graph_id: str, embeddings: StandInEmbeddings) -> None:
        self.graph_id = graph_id
        self._embeddings = embeddings
        self._store = InMemoryVectorStore(embeddings)
        self._chunks: dict[str, Chunk] = {}

    def chunks(self) -> tuple[Chunk, ...]:
        """Everything in it, in the order in which it came."""
        return tuple(self._chunks.values())

    def add(self, chunks: Sequence[Chunk]) -> None:
        """Put these into the store."""
        self._embeddings.lines.update((chunk.text, chunk.item.line()) for chunk in chunks)
        self._store.add_documents(
            [Document(id=chunk.id, page_content=chunk.text) for chunk in chunks]
        )
        self._chunks.update((chunk.id, chunk) for chunk in chunks)

    def search(self, query: str, k: int = _EVERYTHING) -> list[Hit]:
        """The ``k`` nearest chunks, nearest first."""
        found = self._store.similarity_search_with_score(query, k=k)
        return [Hit(self._chunks[str(document.id)], score) for document, score in found]


def ingest(model: StandIn, index: Index, message: Message, *, misfiled: bool) -> None:
    """The message enters as a document, in chunks; ``misfiled``: under another owner's name."""
    whole = memtrace.message(message.text, id=message.id)
    with memtrace.operation("ingest", system=SYSTEM, graph_id=index.graph_id) as op:
        op.inputs(whole)
        op.time(whole, message.said_at)
        op.role(whole, message.role)
        planted = model.plantings.fires("filed_elsewhere", message.id)
        if misfiled and planted:
            model.effect(planted)
        chunks = _chunked(model, message, index.graph_id)
        for chunk in chunks:
            op.outputs(chunk.variable)
            op.edge(whole, chunk.variable)
            op.time(chunk.variable, message.said_at)
        index.add(chunks)


def _chunked(model: StandIn, message: Message, graph_id: str) -> list[Chunk]:
    pieces = sentences(message.text)
    texts = segments(message.text, CHUNK_CHARS) if len(message.text) > CHUNK_CHARS else []
    planted = model.plantings.fires("chunk_lost", message.id)
    if planted:
        kept = without_needed(model.case.question, pieces or [message.text])
        if kept != pieces:
            model.effect(planted)
            texts = segments(" ".join(kept), CHUNK_CHARS)
    return [
        Chunk(
            id=str(uuid.uuid5(_NAMESPACE, f"{graph_id} {message.id} {number}")),
            text=f"{message.speaker}: {text}",
            message=message,
        )
        for number, text in enumerate(texts or [message.text])
    ]
