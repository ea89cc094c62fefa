"""The faults of one run of one case: which are to be made, and where each took effect.

Whoever makes a fault asks :meth:`Plantings.fires` at the place where it happens and says
:meth:`Plantings.took_effect` there. The operation is the span that is current at that moment, so
the truth comes from the pipeline itself and never from what lineage or attribution say later.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from opentelemetry import trace
from opentelemetry.trace import SpanContext, format_span_id, format_trace_id

from memtrace_collector.bench.faults import KINDS
from memtrace_collector.bench.planned import Planting, Truth

NO_OPERATION = SpanContext(0, 0, is_remote=False)
"""Where the decision table names no operation."""
DECISIVE, ALSO = "decisive", "also"


class Plantings:
    """Thread-safe. Without plantings (the clean run) nothing ever fires."""

    def __init__(self, plantings: Sequence[Planting] = ()) -> None:
        self._plantings = tuple(plantings)
        self._lock = threading.Lock()
        self._truths: dict[tuple[str, str], Truth] = {}
        self._waiting: dict[str, list[Planting]] = {}

    def __bool__(self) -> bool:
        return bool(self._plantings)

    def fires(self, kind: str, message_id: str = "") -> Planting | None:
        """The planting of this kind, if one is to be made here.

        One that names a message fires only for that message (or when none is asked about); one
        that names none fires everywhere.
        """
        for planting in self._plantings:
            if planting.kind == kind and (
                not planting.message or not message_id or planting.message == message_id
            ):
                return planting
        return None

    def of(self, kind: str) -> tuple[Planting, ...]:
        """Every planting of this kind."""
        return tuple(planting for planting in self._plantings if planting.kind == kind)

    def took_effect(self, planting: Planting, span: SpanContext | None = None) -> None:
        """``planting`` went wrong in ``span`` (default: the current span), just now.

        Said again for the same planting, the later time counts: it is the last carrier's loss.
        """
        context = trace.get_current_span().get_span_context() if span is None else span
        kind = KINDS[planting.kind]
        truth = Truth(
            kind=kind.name,
            error_type=kind.error_type,
            trace_id=format_trace_id(context.trace_id) if context.trace_id else "",
            span_id=format_span_id(context.span_id) if context.span_id else "",
            role=planting.detail.get("role", DECISIVE),
        )
        with self._lock:
            self._truths[planting.kind, planting.message] = truth

    def took_effect_in_reply(self, planting: Planting, response_id: str) -> None:
        """As :meth:`took_effect`, in the span of the model call that gets this response."""
        with self._lock:
            self._waiting.setdefault(response_id, []).append(planting)

    def reply_seen(self, response_id: str, span: SpanContext) -> None:
        """The model call with this response id was ``span``."""
        with self._lock:
            waiting = self._waiting.pop(response_id, [])
        for planting in waiting:
            self.took_effect(planting, span)

    @property
    def truths(self) -> tuple[Truth, ...]:
        """What took effect, in the order of the plan."""
        with self._lock:
            keys = ((planting.kind, planting.message) for planting in self._plantings)
            return tuple(self._truths[key] for key in keys if key in self._truths)

    @property
    def without_effect(self) -> tuple[Planting, ...]:
        """What was to be made and never came to pass."""
        with self._lock:
            return tuple(p for p in self._plantings if (p.kind, p.message) not in self._truths)
