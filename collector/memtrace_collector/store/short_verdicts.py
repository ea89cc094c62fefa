"""What a list shows of a verdict, read out of its stored form without decoding the rest."""

from __future__ import annotations

import msgspec

from memtrace_collector.graph.facts import OperationKey

MAX_LISTED = 20_000


class _Span(msgspec.Struct, frozen=True, gc=False):
    trace_id: str = msgspec.field(default="", name="traceId")
    span_id: str = msgspec.field(default="", name="spanId")


class _Hop(msgspec.Struct, frozen=True, gc=False):
    decisive: bool = False
    service: str | None = ""
    system: str | None = ""
    operation: str | None = ""


class ShortVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict in short; names as in its JSON form (DESIGN section 7)."""

    id: str
    revision: int
    graph_id: str
    created: str
    """RFC 3339 in UTC, to the millisecond."""
    stage: str = ""
    error_type: str = ""
    method: str = ""
    score: float = 0.0
    explanation: str = ""
    case_trace: str | None = None
    answer: _Span = _Span()
    decisive: tuple[_Span, ...] = ()
    path: tuple[_Hop, ...] = ()

    @property
    def answer_key(self) -> OperationKey:
        return OperationKey(self.answer.trace_id, self.answer.span_id)

    @property
    def decisive_keys(self) -> tuple[OperationKey, ...]:
        return tuple(OperationKey(each.trace_id, each.span_id) for each in self.decisive)

    @property
    def service(self) -> str:
        """Of the decisive operation; empty when there is none, or it does not say."""
        return self._decisive_hop.service or ""

    @property
    def system(self) -> str:
        """As :attr:`service`: the memory system."""
        return self._decisive_hop.system or ""

    @property
    def operation(self) -> str:
        """As :attr:`service`: the name of its span."""
        return self._decisive_hop.operation or ""

    @property
    def _decisive_hop(self) -> _Hop:
        return next((hop for hop in self.path if hop.decisive), _NO_HOP)


_NO_HOP = _Hop()
_DECODER = msgspec.json.Decoder(ShortVerdict)


def short_verdict(body: bytes | str) -> ShortVerdict:
    """``body``: the stored JSON form."""
    return _DECODER.decode(body)
