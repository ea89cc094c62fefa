"""mem0's replaceable parts for the benchmark: the stand-in as model and embedder, and a vector
store that fails where a fault is planted.

mem0 calls all of them inside its own methods, which our instrumentation watches: the span that is
current in here is the operation that goes wrong.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from memtrace_collector.bench.dialogue import Message
from memtrace_collector.bench.planned import Planting
from memtrace_collector.bench.stand_in.model import StandIn
from memtrace_collector.demo import decision
from memtrace_collector.demo.decision import Action


class StandInLlm:
    """mem0's ``llm``. ``given``: the messages that are being added."""

    def __init__(self, model: StandIn, major: int) -> None:
        self._model = model
        self._major = major
        self.given: Sequence[Message] = ()

    def generate_response(self, messages: Sequence[Mapping[str, Any]], **_options: Any) -> str:
        """The reply that this generation of mem0 expects, as JSON."""
        prompt = "\n".join(str(message["content"]) for message in messages)
        if decision.PROMPT in prompt:
            return self._decide(prompt)
        facts = self._model.extract(self.given)
        if self._major == 1:
            return json.dumps({"facts": facts}, ensure_ascii=False)
        entries = [{"id": str(place), "text": text} for place, text in enumerate(facts)]
        return json.dumps({"memory": entries}, ensure_ascii=False)

    def _decide(self, prompt: str) -> str:
        existing, facts = decision.requested(prompt)
        actions = self._model.decide(facts, existing)
        touched = {action.id for action in actions}
        left = [Action(m.id, m.text, "NONE") for m in existing if m.id not in touched]
        entries = [action.to_json() for action in (*left, *actions)]
        return json.dumps({"memory": entries}, ensure_ascii=False)


class StandInEmbedder:
    """mem0's ``embedding_model``."""

    def __init__(self, model: StandIn) -> None:
        self._model = model

    def embed(self, text: str, _memory_action: str | None = None) -> list[float]:
        planted = self._model.plantings.fires("missed")
        if planted and planted.message in self._model.oracle.carried_by(text):
            return self._model.embed(planted.detail["as_if"])
        return self._model.embed(text)

    def embed_batch(
        self, texts: Sequence[str], memory_action: str | None = None
    ) -> list[list[float]]:
        return [self.embed(text, memory_action) for text in texts]


class WriteRefusedError(RuntimeError):
    """The vector store did not take a record."""


class FaultyStore:
    """What a vector store does beside its own work. ``asking``: the question is being asked."""

    def __init__(self, model: StandIn) -> None:
        self._model = model
        self.asking = False

    def before_insert(self, payloads: Sequence[Mapping[str, Any]] | None) -> None:
        """Refuse a record that carries the message of a planted ``write_failed``."""
        planted = self._model.plantings.fires("write_failed")
        texts = [str(payload.get("data")) for payload in payloads or ()]
        if planted and any(self._carries(planted, text) for text in texts):
            self._model.effect(planted)
            raise WriteRefusedError("the store is not reachable")

    def found(self, rows: list[Any]) -> list[Any]:
        """What a search returns; on the question's, searches that miss or go elsewhere show."""
        if not self.asking:
            return self._taken_for_known(rows)
        for kind in ("wrong_namespace", "missed"):
            planted = self._model.plantings.fires(kind)
            if planted and kind == "missed":
                rows = [row for row in rows if not self._carries(planted, _text(row))]
            if planted:
                self._model.effect(planted)
        return rows

    def _taken_for_known(self, rows: list[Any]) -> list[Any]:
        """A row with the hash of a fact about to come: as after an update that kept the hash."""
        planted = self._model.plantings.fires("taken_for_known")
        if planted and rows and planted.message not in self._model.seen:
            facts = [f.text for f in self._model.oracle.facts(planted.message)]
            for row, text in zip(rows, facts):
                row.payload["hash"] = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
        return rows

    def _carries(self, planted: Planting, text: str) -> bool:
        return planted.message in self._model.oracle.carried_by(text)


def faulty(store: Any) -> Any:
    """A subclass of mem0's vector store ``store`` whose instances do what their ``faults`` say."""

    def insert(
        self: Any, vectors: Any, payloads: Any = None, ids: Any = None, **options: Any
    ) -> Any:
        self.faults.before_insert(payloads)
        return store.insert(self, vectors, payloads=payloads, ids=ids, **options)

    @functools.wraps(store.search)  # instrumentation goes by the names of its arguments
    def search(self: Any, *arguments: Any, **options: Any) -> list[Any]:
        rows: list[Any] = self.faults.found(store.search(self, *arguments, **options))
        return rows

    return type(store.__name__, (store,), {"insert": insert, "search": search})


def _text(row: Any) -> str:
    return str((getattr(row, "payload", None) or {}).get("data", ""))
