"""The one way in: every question the command line and the page may ask.

Answered by :class:`~memtrace_collector.api.service.Service` in the process that owns the store
and by :class:`~memtrace_collector.api.client.Client` over HTTP. Arguments and results are plain
JSON values; a span is ``{"traceId", "spanId"}``, times are integer nanoseconds, ``answer`` is
``TRACE`` or ``TRACE:SPAN``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from memtrace_collector.attribution.judging.said import Said

Json = dict[str, Any]

GRAPH_FORMATS = ("text", "json", "dot", "graphml")


class Replaying(NamedTuple):
    """How verdicts are to be tested by a replay; 0 and empty: as configured.

    The endpoint is never part of a request: who asks must not send the owner's key elsewhere.
    """

    runs: int = 0
    model: str = ""


class Questions(Protocol):
    """Raises an error of :mod:`memtrace_collector.errors` for what cannot be answered."""

    def graphs(self) -> list[Json]:
        """Every graph: ``graph_id``, ``operations``, ``first_ns``, ``last_ns``."""
        ...

    def graph(self, graph_id: str, answer: str, output_format: str) -> str:
        """One graph, or one answer's ancestry in it, as a document of that format."""
        ...

    def graph_hash(self, graph_id: str) -> str:
        """Fingerprint of a graph: equal for equal sets of spans, whatever their order."""
        ...

    def ancestry(self, answer: str) -> Json:
        """``{"answer", "graph_id", "lineage", "operations": [...]}``, oldest first."""
        ...

    def history(self, graph_id: str, record: str) -> Json:
        """``{"graph_id", "record", "versions": [...]}``: writer, sources, diff, readers."""
        ...

    def flag(self, answer: str, expected: str | None, evidence: Sequence[str], reason: str) -> Json:
        """Flag an answer; ``{"answer", "graph_id"}``. ``expected=""``: should have declined."""
        ...

    def attribute(
        self, method: str, graph_id: str, evidence: bool, replay: Replaying | None = None
    ) -> Json:
        """One pass over flagged answers; no graph id: all. ``{"verdicts": [the current one of
        each], "set_aside": what :meth:`set_aside` says}``."""
        ...

    def set_aside(self, graph_id: str) -> list[Json]:
        """Flagged answers that could not be judged: ``id``, ``graph_id``, ``answer``,
        ``reason``, ``attempts``. No graph id: all. :meth:`attribute` tries them again."""
        ...

    def verdicts(
        self, graph_id: str, stage: str, error_type: str, history: bool = False
    ) -> list[Json]:
        """Current verdicts (with ``history`` also superseded ones), oldest first; empty filters
        match all."""
        ...

    def judge(self, answer: str, said: Said) -> Json:
        """Confirm or correct the verdict on an answer, or withdraw what a person said of it; the
        verdict that stands now. Of the same judgement again nothing changes; what somebody else
        changed meanwhile is a :class:`~memtrace_collector.errors.ConflictError`."""
        ...

    def undelivered(self) -> list[Json]:
        """What a destination of verdicts refused for good, or did not take in time: ``id``,
        ``case_id``, ``revision``, ``signal``, ``destination``, ``attempts``, ``error``."""
        ...

    def redeliver(self) -> Json:
        """Send again what :meth:`undelivered` lists: ``{"reopened": how many}``."""
        ...

    def why(self, answer: str, about: str) -> Json:
        """The receipt of an answer; with ``about``: why that was (not) recalled."""
        ...

    def impact(self, target: str) -> Json:
        """Everything derived from a reference, a span (``TRACE:SPAN``) or a conversation."""
        ...

    def case(self, answer: str, redact: bool) -> Json:
        """The smallest slice of spans that holds the failure, as an OTLP/JSON request."""
        ...

    def invariants(self, graph_id: str) -> list[Json]:
        """What the watched invariants found. No graph id: all."""
        ...

    def explore(self, question: str, arguments: Mapping[str, object], text_chars: int) -> Json:
        """One question of :data:`~memtrace_collector.api.exploring.QUESTIONS`, bounded, for an
        assistant or a model: captured texts marked and shortened to ``text_chars``; 0: none."""
        ...

    def view(self, name: str, parameters: Mapping[str, str]) -> Json:
        """What a view of the page shows (:mod:`memtrace_collector.api.explorer.catalog`)."""
        ...

    def append(self, body: bytes, signal: str) -> None:
        """Take one OTLP export request (protobuf) into the log; returns when it is on disk."""
        ...

    def settle(self) -> Json:
        """Wait until everything appended so far is projected; ``{"operations": total}``."""
        ...

    def erase(self, graph_id: str) -> Json:
        """Erase a graph or, with an empty name, everything of the tenant, and search for what is
        left: ``erased``, ``searched``, ``left`` (empty: nothing), ``elsewhere``, ``note``."""
        ...
