"""An application on mem0, as its users write one: ``add`` turn by turn, ``search``, prompt, model.

mem0 is the installed one, with a local Qdrant in memory; what it does is recorded by its
instrumentation, the application itself records nothing but its own trace.
"""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from itertools import islice
from typing import Any

from memtrace_collector.bench.dialogue import Message
from memtrace_collector.bench.pipelines.base import Bench, Ran, owner_of, question_prompt, told
from memtrace_collector.bench.pipelines.mem0_parts import (
    FaultyStore,
    StandInEmbedder,
    StandInLlm,
    faulty,
)
from memtrace_collector.bench.pipelines.telemetry import recording
from memtrace_collector.bench.planned import PlannedCase, Planting
from memtrace_collector.bench.plantings import Plantings
from memtrace_collector.bench.stand_in.model import DIMENSIONS, StandIn
from memtrace_collector.errors import WrongUseError
from memtrace_otel import owner_graph_id, semconv
from memtrace_otel.instrumentors.mem0 import Mem0Instrumentor

LIMIT = 20
_TURN = 2
"""Messages that are added together, where no fault needs one alone."""
_ALONE = ("filed_elsewhere", "forget_ignored")
_UNDATED = ("left_beside",)
_OTHERS = 3
_JUST_MORE = 0.0001


class Mem0Pipeline:
    """One pipeline for both generations.

    Args:
        bench: what every pipeline is given.
        name: as in ``faults.SYSTEMS``.
        major: the generation that must be installed.

    Raises:
        WrongUseError: another generation of mem0 is installed.
    """

    def __init__(self, bench: Bench, name: str, major: int) -> None:
        installed = version("mem0ai")
        if installed.partition(".")[0] != str(major):
            raise WrongUseError(f"{name} needs mem0ai {major}.x; {installed} is installed here")
        self.name = name
        self._major = major
        self._bench = bench
        self._store_class: Any = None
        os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=str(bench.folder / "mem0"))
        self._mem0 = importlib.import_module("mem0")  # reads its environment while imported
        self._qdrant = importlib.import_module("qdrant_client")
        Mem0Instrumentor().instrument(skip_dep_check=True)

    def close(self) -> None:
        """Put back what was wrapped."""
        Mem0Instrumentor().uninstrument()

    def run(self, case: PlannedCase, plantings: Plantings, model: StandIn) -> Ran:
        """The dialogue goes in by ``add``, the question is answered from ``search``."""
        faults = FaultyStore(model)
        llm = StandInLlm(model, self._major)
        with self._memory(faults, llm, StandInEmbedder(model)) as memory:
            application = _Application(self._bench, self._major, memory, case, plantings, model)
            for messages in turns(told(case, plantings), case):
                llm.given = messages
                application.remember(messages)
            application.fill_other()
            with self._bench.turn("answer a question"):
                faults.asking = True
                return application.answer()

    @contextmanager
    def _memory(
        self, faults: FaultyStore, llm: StandInLlm, embedder: StandInEmbedder
    ) -> Iterator[Any]:
        """A memory of mem0 with a store of its own, in this process's own memory."""
        client = self._qdrant.QdrantClient(":memory:")
        openai = {"api_key": "none", "openai_base_url": self._bench.model_url}
        settings = {
            "llm": {"provider": "openai", "config": openai},
            "embedder": {"provider": "openai", "config": openai},
            "vector_store": {
                "provider": "qdrant",
                "config": {
                    "client": client,
                    "collection_name": "bench",
                    "embedding_model_dims": DIMENSIONS,
                },
            },
            "history_db_path": ":memory:",
        }
        with warnings.catch_warnings():  # a local Qdrant says that it needs no indexes
            warnings.simplefilter("ignore")
            memory = self._mem0.Memory.from_config(settings)
        memory.llm.client.close()
        memory.embedding_model.client.close()
        memory.llm, memory.embedding_model = llm, embedder
        if self._store_class is None:
            self._store_class = faulty(type(memory.vector_store))
        memory.vector_store.__class__ = self._store_class
        memory.vector_store.faults = faults
        try:
            yield memory
        finally:
            memory.db.close()
            client.close()


class _Application:
    """The application's own code during one run."""

    def __init__(
        self,
        bench: Bench,
        major: int,
        memory: Any,
        case: PlannedCase,
        plantings: Plantings,
        model: StandIn,
    ) -> None:
        self._bench = bench
        self._major = major
        self._memory = memory
        self._case = case
        self._plantings = plantings
        self._model = model

    def remember(self, messages: Sequence[Message]) -> None:
        """One ``add`` of some messages."""
        owner = owner_of(self._case, messages[0], self._plantings)
        added = self._memory.add(
            [_as_given(message) for message in messages],
            user_id=owner,
            metadata={"timestamp": messages[-1].said_at.isoformat()},
        )
        for planted in self._plantings.of("filed_elsewhere"):
            if planted.message == messages[0].id:
                self._plantings.took_effect(planted, self._bench.watch.ingest(planted.message))
        stored = {str(item["memory"]) for item in added["results"]}
        for planted in self._plantings.of("taken_for_known"):
            facts = {f.text for f in self._model.oracle.facts(planted.message) if f.carries}
            if planted.message in {m.id for m in messages} and not facts & stored:
                self._plantings.took_effect(planted, self._bench.watch.last(semconv.STEP_ADD))

    def fill_other(self) -> None:
        """Whoever's memory is searched by mistake has something in it."""
        for planted in self._plantings.of("wrong_namespace"):
            near = (m for m in self._case.messages if m.id not in self._case.question.evidence)
            for message in islice(near, _OTHERS):
                given = {**_as_given(message), "id": f"{message.id}/other"}
                self._memory.add([given], user_id=planted.detail["owner"], infer=False)

    def answer(self) -> Ran:
        """Search, prompt, model."""
        lines = [self._line(item) for item in self._found()]
        kept = self._within_budget(lines)
        ran = self._bench.ask(
            question_prompt(kept, self._case.question.text),
            self._plantings,
            self._model,
            owner_graph_id("user", self._case.owner),
        )
        for planted in self._plantings.of("over_budget"):
            if len(kept) < len(lines):
                self._plantings.took_effect(planted, ran.answer)
        for planted in self._plantings.of("not_searched"):
            self._plantings.took_effect(planted, ran.answer)
        return ran

    def _found(self) -> list[dict[str, Any]]:
        fires = self._plantings.fires
        if fires("not_searched"):
            return []
        elsewhere = fires("wrong_namespace")
        owner = elsewhere.detail["owner"] if elsewhere else self._case.owner
        cut = fires("below_the_limit") or fires("below_threshold")
        if cut is None:
            return self._search(owner)
        found = self._cut_off(cut)
        if not any(self._carries(cut, item) for item in found):
            self._plantings.took_effect(cut, self._bench.watch.last(semconv.STEP_RETRIEVE))
        return found

    def _cut_off(self, planted: Planting) -> list[dict[str, Any]]:
        """A search with a limit, or a threshold, that the message's best record just misses."""
        with recording(None):
            rows = self._search(self._case.owner)
        places = [place for place, item in enumerate(rows) if self._carries(planted, item)]
        if not places:
            return self._search(self._case.owner)
        if planted.kind == "below_the_limit":
            return self._search(self._case.owner, limit=max(1, places[0]))
        above = min(1.0, float(rows[places[0]]["score"]) + _JUST_MORE)
        return self._search(self._case.owner, threshold=above)

    def _search(self, owner: str, limit: int = LIMIT, **options: float) -> list[dict[str, Any]]:
        query = self._case.question.text
        if self._major == 1:
            results = self._memory.search(query, user_id=owner, limit=limit, **options)
        else:
            filters = {"user_id": owner}
            results = self._memory.search(query, filters=filters, top_k=limit, **options)
        found: list[dict[str, Any]] = results["results"]
        return found

    def _within_budget(self, lines: list[str]) -> list[str]:
        """All of it, or as much as goes before the first line that carries the message."""
        for planted in self._plantings.of("over_budget"):
            for place, line in enumerate(lines):
                if planted.message in self._model.oracle.carried_by(line):
                    return lines[:place]
        return lines

    def _line(self, item: dict[str, Any]) -> str:
        """As the prompt shows it; without its day where two values are to be told apart by none."""
        if any(planting.kind in _UNDATED for planting in self._case.plantings):
            return str(item["memory"])
        said_at = str((item.get("metadata") or {}).get("timestamp", ""))[:10]
        return f"[{said_at}] {item['memory']}"

    def _carries(self, planted: Planting, item: dict[str, Any]) -> bool:
        return planted.message in self._model.oracle.carried_by(str(item["memory"]))


def turns(messages: Sequence[Message], case: PlannedCase) -> Iterator[list[Message]]:
    """What is added together: two messages, and alone what a fault wants alone."""
    alone = {planting.message for planting in case.plantings if planting.kind in _ALONE}
    together: list[Message] = []
    for message in messages:
        if message.id in alone:
            if together:
                yield together
            yield [message]
            together = []
            continue
        together.append(message)
        if len(together) == _TURN:
            yield together
            together = []
    if together:
        yield together


def _as_given(message: Message) -> dict[str, str]:
    return {
        "role": message.role,
        "content": f"{message.speaker}: {message.text}",
        "id": message.id,
        "timestamp": message.said_at.isoformat(),
    }
