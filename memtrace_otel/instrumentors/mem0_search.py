"""Reads: ``search``, ``get_all``, ``get`` and the reranker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timezone
from typing import Any

from memtrace_otel import references, semconv
from memtrace_otel.instrumentors import mem0_identity as identity
from memtrace_otel.instrumentors.mem0_shells import Arguments, Observation, Peek
from memtrace_otel.instrumentors.mem0_stages import (
    Library,
    Row,
    Stage,
    attributes,
    number_of,
    rows_of,
    score_kind,
)
from memtrace_otel.operations import MemoryOperation
from memtrace_otel.tracer import start_operation
from memtrace_otel.variables import Variable

_DEFAULT_THRESHOLD_V2 = 0.1
_CROSS_ENCODERS = frozenset(("cohere", "sentence_transformer", "huggingface", "zero_entropy"))
"""mem0's reranker providers of that kind; ``llm_reranker`` and the program's own are others."""


class ReadStage(Stage):
    """A public read of a scope: ``get_all``, and the base of ``search``."""

    def __init__(self, memory: object, library: Library, arguments: Arguments) -> None:
        graphs = identity.graph_ids(identity.scope_of(arguments))
        super().__init__(
            memory, library, semconv.STEP_RETRIEVE, graph_id=graphs[0] if graphs else None
        )
        self._other_graphs = graphs[1:]
        self.arguments = arguments
        self.limit = arguments.get("limit", arguments.get("top_k"))
        self.threshold = arguments.get("threshold")

    def begin(self) -> None:
        self.operation.limits(k=self.limit, threshold=self.threshold)
        if self._other_graphs:
            self.operation.reads(*self._other_graphs)

    def _finish(self, result: object, /) -> None:
        items = items_of(result)
        self.operation.attribute(semconv.GEN_AI_MEMORY_RECORD_COUNT, len(items))
        for item in items:
            self.deliver(item["id"], item, number_of(item.get("score")))


class SearchStage(ReadStage):
    """The public ``search``.

    The candidates are what the vector store returned: what it cut itself, nobody sees.
    """

    def __init__(self, memory: object, library: Library, arguments: Arguments) -> None:
        super().__init__(memory, library, arguments)
        self._candidates: list[Row] = []
        self._reranked: set[str] = set()

    def begin(self) -> None:
        super().begin()
        self.operation.inputs(references.query(self.arguments["query"]))

    def on_search(self, _arguments: Arguments, /) -> Observation | None:
        return Peek(self.memory, self._saw)

    def on_rerank(self, arguments: Arguments, /) -> Observation | None:
        return RerankStage(self, arguments)

    def reranked(self, ids: set[str]) -> None:
        """The reranker was given the records ``ids``."""
        self._reranked = ids

    def _saw(self, result: object) -> None:
        self._candidates = rows_of(result)

    def _finish(self, result: object, /) -> None:
        super()._finish(result)
        fused = self.library.major >= 2
        self.operation.score_kind("fused" if fused else score_kind(self.memory))
        delivered = {str(item["id"]) for item in items_of(result)}
        for rank, row in enumerate(self._candidates, start=1):
            if row.id not in delivered:
                reason = self._reason(row)
                # In 2.x the store's score is what the threshold is held against and no more.
                score = row.score if not fused or reason == "threshold" else None
                self.operation.dropped(self.record(row.id, row.payload), score, reason, rank)

    def _reason(self, row: Row) -> str:
        if row.id in self._reranked:
            return "rerank"
        hidden = self.library.major >= 2 and not self.arguments.get("show_expired")
        if hidden and _has_expired(row.payload):
            return "expired"
        threshold = self.threshold
        if threshold is None and self.library.major >= 2:
            threshold = _DEFAULT_THRESHOLD_V2
        if threshold is not None and (row.score or 0.0) < threshold:
            return "threshold"
        return "limit"


class RerankStage(Stage):
    """``reranker.rerank``: takes the results in the order found, gives them in its own."""

    def __init__(self, search: SearchStage, arguments: Arguments) -> None:
        super().__init__(search.memory, search.library, semconv.STEP_RERANK)
        self._search = search
        self._arguments = arguments
        self._given = items_of(arguments["documents"])

    def begin(self) -> None:
        query = references.query(self._arguments["query"])
        self.operation.inputs(query, *self._versions(self._given))
        self.operation.limits(k=self._arguments.get("top_k"))

    def _finish(self, result: object, /) -> None:
        kept = items_of(result)
        kept_ids = {str(item["id"]) for item in kept}
        self._search.reranked({str(item["id"]) for item in self._given})
        for item, version in zip(kept, self._versions(kept)):
            self.operation.delivered(version, number_of(item.get("rerank_score")))
        self.operation.score_kind(_rerank_score_kind(self.memory))
        for item, version in zip(self._given, self._versions(self._given)):
            if str(item["id"]) not in kept_ids:
                self.operation.dropped(version, reason="rerank")

    def _versions(self, items: Sequence[Mapping[str, Any]]) -> list[Variable]:
        return [self.record(item["id"], item) for item in items]


class GetObservation(Observation):
    """The public ``get`` of one record: the record itself tells to which graph this belongs."""

    def __init__(self, memory: object, library: Library, arguments: Arguments) -> None:
        self._library = library
        self._record_id = arguments["memory_id"]
        super().__init__(memory)

    def _finish(self, result: object, /) -> None:
        items = items_of([result])
        operation = self._start(items[0] if items else {})
        operation.attribute(semconv.GEN_AI_MEMORY_RECORD_COUNT, len(items))
        for item in items:
            operation.delivered(identity.record(item["id"], item, self._library.major))
        operation.stop()

    def _abandon(self, error: BaseException, /) -> None:
        self._start({}).fail(error)

    def _start(self, item: Mapping[str, Any]) -> MemoryOperation:
        owners = identity.graph_ids(item)
        return start_operation(
            semconv.STEP_RETRIEVE,
            system=identity.SYSTEM,
            system_version=self._library.version,
            library_graph_id=owners[0] if owners else None,
            capture=semconv.CAPTURE_OBSERVED,
            attributes=attributes(self.memory, self._record_id),
        )


def items_of(result: object) -> list[Mapping[str, Any]]:
    """The memories of a public result: ``{"results": […]}`` or a list; malformed ones left out."""
    found = result.get("results") if isinstance(result, Mapping) else result
    items = found if isinstance(found, (list, tuple)) else ()
    return [item for item in items if isinstance(item, Mapping) and item.get("id") is not None]


def _rerank_score_kind(memory: object) -> str:
    config = getattr(getattr(memory, "config", None), "reranker", None)
    known = getattr(config, "provider", None) in _CROSS_ENCODERS
    return "cross_encoder" if known else "other"


def _has_expired(payload: Mapping[str, Any]) -> bool:
    try:
        last_day = date.fromisoformat(str(payload.get("expiration_date")))
    except ValueError:
        return False
    return last_day < datetime.now(timezone.utc).date()
