"""Log records -> facts, by the enabled dialects. Pure.

What does not concern us is never decoded: a record is searched for markers, then cut into
spans that stay bytes, of which only those with a marker are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from google.protobuf.message import DecodeError

from memtrace_collector.dialects import registry
from memtrace_collector.dialects.evaluation import NO_THRESHOLDS, Thresholds
from memtrace_collector.graph.facts import SpanFacts
from memtrace_collector.log.format import LogRecord
from memtrace_collector.otlp.identity import has_valid_ids
from memtrace_collector.otlp.markers import Markers
from memtrace_collector.otlp.slices import SlicedRequest, Slices, sliced, split
from memtrace_collector.receiver.decode import InvalidRequestError, decode_logs, decode_traces


class Ours(NamedTuple):
    """A span that a dialect knows, where it stands in its scope, and what it says."""

    place: int
    data: bytes
    facts: SpanFacts


class RecordReader:
    """Reads log records as the enabled dialects understand them.

    Args:
        markers: how the keys of attributes begin that make a span worth decoding; None: those
            of all dialects.
        thresholds: evaluation name -> least passing score.
    """

    def __init__(
        self, markers: Iterable[bytes] | None = None, thresholds: Thresholds = NO_THRESHOLDS
    ) -> None:
        self._markers = Markers(registry.markers() if markers is None else markers)
        self._thresholds = thresholds

    def concerns_us(self, record: LogRecord) -> bool:
        """May the record hold a span or log record of an enabled dialect?"""
        if record.signal == "control":
            return False
        if record.encoding == "json":
            return self._markers.in_json(record.body)
        return self._markers.in_protobuf(record.body) is not None

    def facts(self, record: LogRecord) -> Sequence[SpanFacts]:
        """What the record says; empty when it does not concern us.

        Raises:
            InvalidRequestError: not the request that it should be.
        """
        if not self.concerns_us(record):
            return ()
        if record.signal == "logs":
            return list(registry.read_logs(record.tenant, decode_logs(record), self._thresholds))
        request = sliced_request(record)
        return [ours.facts for scope in split(request) for ours in self.spans(record.tenant, scope)]

    def spans(self, tenant: str, scope: Slices) -> Iterator[Ours]:
        """The spans of a scope that a dialect knows and that were accepted, in order.

        Raises:
            InvalidRequestError: one of them is no span.
        """
        is_marked = self._markers.in_protobuf
        marked = [(index, data) for index, data in enumerate(scope.spans) if is_marked(data)]
        if not marked:
            return
        try:
            source = registry.source_of(tenant, scope)
            for index, data in marked:
                if has_valid_ids(data):
                    facts = registry.read_slice(data, source, self._thresholds)
                    if facts is not None:
                        yield Ours(index, data, facts)
        except DecodeError as error:
            raise InvalidRequestError(f"a span of the request is damaged: {error}") from error


def sliced_request(record: LogRecord) -> SlicedRequest:
    """The trace request of a record, cut into spans that stay bytes.

    Raises:
        InvalidRequestError: not the request that it should be.
    """
    if record.encoding == "json":
        return sliced(decode_traces(record).SerializeToString())
    try:
        return sliced(record.body)
    except DecodeError as error:
        raise InvalidRequestError(f"the body is not a protobuf export request: {error}") from error
