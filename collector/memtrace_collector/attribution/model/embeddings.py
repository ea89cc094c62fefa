"""Vectors from an OpenAI-compatible endpoint or a local model, in batches, kept and bounded."""

from __future__ import annotations

import base64
import importlib
import struct
from collections.abc import Sequence
from typing import Any

import openai
from opentelemetry.instrumentation.utils import suppress_instrumentation

from memtrace_collector.attribution.model.cache import Cache, cache_key
from memtrace_collector.attribution.model.clients import client
from memtrace_collector.attribution.model.similarity import Embedder, EmbeddingError, Vector
from memtrace_collector.errors import WrongUseError

LOCAL = "local:"
BATCH = 64
MAX_CHARACTERS = 2_000


class EndpointEmbedder:
    """An embedding model behind an endpoint. Times in seconds; retries as for chat calls."""

    def __init__(
        self, model: str, *, base_url: str, key: str, timeout_seconds: float, retries: int
    ) -> None:
        self._model = model
        self._client = client(base_url, key, timeout_seconds, retries)

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        try:
            with suppress_instrumentation():
                reply = self._client.embeddings.create(
                    model=self._model, input=list(texts), encoding_format="float"
                )
        except openai.OpenAIError as error:
            raise EmbeddingError(f"{type(error).__name__}: {error}"[:300]) from None
        ordered = sorted(reply.data, key=lambda each: each.index)
        if len(ordered) != len(texts):
            raise EmbeddingError(f"{len(ordered)} vectors for {len(texts)} texts")
        return [each.embedding for each in ordered]

    def close(self) -> None:
        self._client.close()


class LocalEmbedder:
    """A sentence-transformers model in a folder that the user names; nothing is downloaded."""

    def __init__(self, path: str) -> None:
        try:
            library: Any = importlib.import_module("sentence_transformers")
        except ImportError:
            raise WrongUseError(
                "a local embedding model needs sentence-transformers: "
                "pip install sentence-transformers"
            ) from None
        try:
            self._model = library.SentenceTransformer(path, local_files_only=True)
        except (OSError, ValueError) as error:
            raise WrongUseError(f"no embedding model can be read from {path}: {error}") from None

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [[float(x) for x in each] for each in self._model.encode(list(texts))]

    def close(self) -> None:
        """Nothing is held open."""


class KeptEmbedder:
    """An embedder with a cache before it; asks in batches of :data:`BATCH`."""

    def __init__(self, embedder: Embedder, name: str, cache: Cache) -> None:
        self._embedder, self._name, self._cache = embedder, name, cache

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        shown = [each[:MAX_CHARACTERS] for each in texts]
        kept = {each: self._kept(each) for each in dict.fromkeys(shown)}
        found = {each: vector for each, vector in kept.items() if vector is not None}
        lacking = [each for each in kept if each not in found]
        for start in range(0, len(lacking), BATCH):
            batch = lacking[start : start + BATCH]
            for each, vector in zip(batch, self._embedder.embed(batch)):
                found[each] = vector
                self._cache.put(self._key(each), {"v": _packed(vector)})
        return [found[each] for each in shown]

    def _kept(self, content: str) -> Vector | None:
        kept = self._cache.get(self._key(content))
        packed = kept.get("v") if kept else None
        return _unpacked(packed) if isinstance(packed, str) else None

    def _key(self, content: str) -> str:
        return cache_key(self._name, "embedding", content)


def _packed(vector: Vector) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def _unpacked(packed: str) -> Vector:
    data = base64.b64decode(packed)
    return struct.unpack(f"<{len(data) // 4}f", data)
