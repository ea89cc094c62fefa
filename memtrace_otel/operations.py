"""The typed operation: fields go in before and during the host's call, one exit writes them.

Nothing here raises into the host: each public method is a guarded boundary. What is given is
read at once, so that a later change by the host is not recorded as what was used.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, SupportsFloat, TypeVar, cast

from opentelemetry.trace import INVALID_SPAN, Span
from opentelemetry.util.types import AttributeValue

from memtrace_otel import semconv
from memtrace_otel.guard import handle
from memtrace_otel.recording import MAX_ENTRIES, Record
from memtrace_otel.variables import Variable, VariableRef

VariableLike = Variable | VariableRef | str
_INT64 = 2**63
F = TypeVar("F", bound=Callable[..., None])


def _while_open(method: F) -> F:
    """The guard of this boundary: does nothing once closed, and lets no fault of ours out."""
    where = method.__qualname__

    @functools.wraps(method)
    def wrapper(self: MemoryOperation, *args: Any, **kwargs: Any) -> None:
        if self._record is None:
            return
        try:
            method(self, *args, **kwargs)
        except Exception as error:
            handle(error, where)

    return cast(F, wrapper)


class MemoryOperation:
    """One memory operation, open until :meth:`stop` or :meth:`fail`.

    Made by ``operation`` and ``start_operation``, never directly. Methods may be called in any
    order; after the exit they do nothing. Variables are given as a ``Variable``, a
    ``VariableRef`` or the text of a reference.

    Attributes:
        span: the OpenTelemetry span of the operation.
        is_recording: whether anything will be written: False without an SDK, for unsampled
            operations and after the exit.
    """

    __slots__ = ("_record", "span")

    def __init__(self, span: Span, record: Record | None) -> None:
        self.span = span
        self._record = record

    @property
    def is_recording(self) -> bool:
        return self._record is not None

    @property
    def step(self) -> str:
        """The step, as in ``memtrace.step``; empty when not recording."""
        return self._record.begin.step if self._record else ""

    @property
    def graph_id(self) -> str:
        """The graph that the operation writes or answers from; empty when not recording."""
        return self._record.begin.graph_id if self._record else ""

    @property
    def capture(self) -> str:
        """observed, declared or inferred; empty when not recording."""
        return self._record.begin.capture if self._record else ""

    @_while_open
    def graph(self, graph_id: str) -> None:
        """Whose memory this is, where that shows only after the start.

        It holds for this operation alone: those inside it inherit what was known at its start.
        """
        if self._record:
            self._record.begin = self._record.begin._replace(graph_id=str(graph_id))
            self._record.attributes[semconv.MEMTRACE_GRAPH_ID] = str(graph_id)

    @_while_open
    def inputs(self, *variables: VariableLike) -> None:
        """What the operation read and, as far as known, used."""
        self._extend(semconv.INPUTS, variables)

    @_while_open
    def shown(self, *variables: VariableLike) -> None:
        """What was offered without knowing that it was used: never an ancestor."""
        self._extend(semconv.SHOWN, variables)

    @_while_open
    def outputs(self, *variables: VariableLike) -> None:
        """What the operation produced."""
        self._extend(semconv.OUTPUTS, variables)

    @_while_open
    def delivered(self, variable: VariableLike, score: SupportsFloat | None = None) -> None:
        """The next result of a read, in rank order."""
        ref = self._take(variable, delivered=True)
        if ref and self._append(semconv.DELIVERED, ref):
            self._append(semconv.SCORES, _number(score))

    @_while_open
    def score_kind(self, kind: str) -> None:
        """What the scores are: similarity, distance, bm25, fused, cross_encoder or other."""
        self._fields[semconv.SCORE_KIND] = str(kind)

    @_while_open
    def dropped(
        self,
        variable: VariableLike,
        score: SupportsFloat | None = None,
        reason: str = "other",
        rank: int | None = None,
    ) -> None:
        """A candidate that was considered and cut.

        ``reason``: threshold, limit, rerank, dedup, expired, budget, filter or other.
        """
        ref = self._take(variable)
        if ref:
            entry = [ref, _number(score), str(reason)]
            self._append(semconv.DROPPED, entry if rank is None else [*entry, int(rank)])

    @_while_open
    def limits(self, **limits: object) -> None:
        """What a replay needs: ``k``, ``threshold``, ``budget_tokens`` …; ``None`` is left out."""
        self._map(semconv.LIMITS).update(
            {name: _plain(value) for name, value in limits.items() if value is not None}
        )

    @_while_open
    def supersedes(self, *variables: VariableLike) -> None:
        """What was replaced or removed; it pairs with the output of the same record."""
        self._extend(semconv.SUPERSEDES, variables)

    @_while_open
    def decision(
        self,
        fact: VariableLike | None,
        action: str,
        target: VariableLike | None = None,
        status: str | None = None,
    ) -> None:
        """What was decided for a fact: ADD, UPDATE, DELETE or NOOP, on which record.

        ``None`` where the library does not say. ``status``: done, skipped or failed.
        """
        entry = [self._take(fact) or None, str(action), self._take(target) or None]
        self._append(semconv.DECISIONS, entry if status is None else [*entry, str(status)])

    @_while_open
    def edge(self, input: VariableLike, output: VariableLike, relation: str | None = None) -> None:
        """This input made this output. Needed whenever the operation knows it."""
        step = self.step
        name = relation or semconv.STEP_RELATIONS.get(step, semconv.RELATION_DERIVED_FROM)
        ends = [self._take(input), self._take(output)]
        if all(ends):
            self._append(semconv.EDGES, [*ends, str(name)])

    @_while_open
    def reads(self, *graph_ids: str) -> None:
        """Other graphs that were read from, at most 8."""
        known = self._fields.setdefault(semconv.READS, [])
        known.extend(name for name in map(str, graph_ids) if name not in known)
        del known[semconv.MAX_READS :]

    @_while_open
    def source(self, variable: VariableLike, trace_id: str, span_id: str) -> None:
        """Which operation is meant where ``variable`` has several producers or deliverers.

        ``trace_id`` and ``span_id`` are lower-case hex digits.
        """
        ref = self._take(variable)
        if ref:
            self._map(semconv.FROM)[ref] = f"{int(trace_id, 16):032x}-{int(span_id, 16):016x}"

    @_while_open
    def time(self, variable: VariableLike, when: datetime | str | float) -> None:
        """The moment from which relative words in ``variable`` count.

        A ``datetime`` (a naive one is local time), seconds since the Unix epoch, or RFC 3339.
        """
        ref = self._take(variable)
        if ref:
            self._map(semconv.TIMES)[ref] = _rfc3339(when)

    @_while_open
    def role(self, variable: VariableLike, role: str) -> None:
        """Who said it: user, assistant, tool, document or system."""
        ref = self._take(variable)
        if ref:
            self._map(semconv.ROLES)[ref] = str(role)

    @_while_open
    def cut(self, *variables: VariableLike) -> None:
        """References whose content here is not whole: absence of text in it proves nothing."""
        self._extend(semconv.CUT, variables)

    @_while_open
    def inferred(self, *variables: VariableLike) -> None:
        """References of this operation that are known only by matching content."""
        self._extend(semconv.INFERRED, variables)

    @_while_open
    def attribute(self, name: str, value: AttributeValue) -> None:
        """A further attribute of the span. Content must not be given here."""
        if self._record:
            known = isinstance(value, (str, bytes, bool, int, float, Sequence, Mapping))
            self._record.attributes[str(name)] = value if known else str(value)

    @_while_open
    def stop(self) -> None:
        """Write everything and end the span; an adopted span is left open."""
        self._close(None)

    @_while_open
    def fail(self, exception: BaseException) -> None:
        """As :meth:`stop`, with ``error.type`` and an error status."""
        self._close(exception)

    def _close(self, error: BaseException | None) -> None:
        record, self._record = self._record, None
        if record is not None:
            record.write(error)

    @property
    def _fields(self) -> dict[str, Any]:
        return self._record.fields if self._record else {}

    def _extend(self, field: str, variables: tuple[VariableLike, ...]) -> None:
        record = self._record
        if record is None:
            return
        references = record.references(variables)
        known = record.fields.get(field)
        if known is not None:
            known.extend(references)
            references = known
        if len(references) > MAX_ENTRIES:
            self._count_lost(field, len(references) - MAX_ENTRIES)
            del references[MAX_ENTRIES:]
        record.fields[field] = references

    def _append(self, field: str, entry: object) -> bool:
        known = self._fields.setdefault(field, [])
        if len(known) >= MAX_ENTRIES:
            self._count_lost(field, 1)
            return False
        known.append(entry)
        return True

    def _map(self, field: str) -> dict[str, Any]:
        known: dict[str, Any] = self._fields.setdefault(field, {})
        if len(known) >= MAX_ENTRIES:
            self._count_lost(field, 1)
            known.popitem()
        return known

    def _count_lost(self, field: str, count: int) -> None:
        lost = self._fields.setdefault(semconv.TRUNCATED, {})
        lost[field] = lost.get(field, 0) + count

    def _take(self, variable: VariableLike | None, *, delivered: bool = False) -> str:
        """The reference of ``variable``; empty when there is none."""
        if variable is None or self._record is None:
            return ""
        references = self._record.references((variable,), delivered=delivered)
        return references[0] if references else ""


NOT_RECORDING = MemoryOperation(INVALID_SPAN, None)
"""The shared operation of programs without an SDK."""


def _number(score: SupportsFloat | None) -> float | None:
    """A finite score, ``None`` for anything else; JSON has no NaN."""
    if score is None:
        return None
    number = float(score)
    return number if math.isfinite(number) else None


def _plain(value: object) -> object:
    if isinstance(value, (bool, str)) or (isinstance(value, int) and abs(value) < _INT64):
        return value
    return _number(value) if isinstance(value, SupportsFloat) else str(value)


def _rfc3339(when: datetime | str | float) -> str:
    if isinstance(when, str):
        return when
    if not isinstance(when, datetime):
        return datetime.fromtimestamp(when, timezone.utc).isoformat()
    return (when if when.tzinfo else when.astimezone()).isoformat()
