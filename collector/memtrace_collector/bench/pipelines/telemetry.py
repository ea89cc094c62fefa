"""The real OpenTelemetry SDK and OTLP exporter of a pipeline process, and a watch on its spans."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import SpanContext

from memtrace_collector.bench.plantings import NO_OPERATION
from memtrace_collector.errors import WrongUseError
from memtrace_otel import farewell, runtime, semconv
from memtrace_otel.config import Config
from memtrace_otel.runtime import Runtime

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_QUEUE = 20_000
_MAX_VALUE_CHARS, _MAX_SPAN_CHARS = 131_072, 524_288
"""More than the defaults: a program that keeps a whole conversation in one record sets them so."""
_RESPONSE_ID = "gen_ai.response.id"
_OPERATION = "gen_ai.operation.name"

OnReply = Callable[[str, SpanContext], None]


class SpanWatch(SpanProcessor):
    """Remembers of one case which span was which: model calls by response id, the last of a step.

    ``on_reply`` is told each response id with its span.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self.on_reply: OnReply | None = None
        self.clear()

    def clear(self) -> None:
        """Forget everything: a new case begins."""
        self._answers: dict[str, SpanContext] = {}
        self._last: dict[str, SpanContext] = {}
        self._messages: dict[str, SpanContext] = {}
        self.last_chat = NO_OPERATION

    def answer(self, response_id: str) -> SpanContext:
        """The span of the model call with that response id; none: :data:`NO_OPERATION`."""
        return self._answers.get(response_id, NO_OPERATION)

    def last(self, step: str) -> SpanContext:
        """The span of that ``memtrace.step`` that ended last."""
        return self._last.get(step, NO_OPERATION)

    def ingest(self, message_id: str) -> SpanContext:
        """The span in which the message of that declared id last entered."""
        return self._messages.get(message_id, NO_OPERATION)

    def on_end(self, span: ReadableSpan) -> None:
        context, attributes = span.get_span_context(), span.attributes or {}
        if context is None:
            return
        step = str(attributes.get(semconv.MEMTRACE_STEP, ""))
        response_id = str(attributes.get(_RESPONSE_ID, ""))
        with self._lock:
            if step:
                self._last[step] = context
            if attributes.get(_OPERATION) == "chat":
                self.last_chat = context
            if response_id:
                self._answers[response_id] = context
            if step == semconv.STEP_INGEST:
                self._messages[_ingested(str(attributes.get(semconv.MEMTRACE_LINEAGE)))] = context
        if response_id and self.on_reply:
            self.on_reply(response_id, context)


def _ingested(lineage: str) -> str:
    """The id of the first message in a packed lineage: an ingest has one."""
    return lineage.partition('"msg:')[2].partition("@")[0]


def exporter_from_environment() -> SpanExporter:
    """The OTLP/HTTP exporter to the endpoint that the environment names.

    Raises:
        WrongUseError: it names none.
    """
    if not any(os.environ.get(name) for name in _ENDPOINTS):
        raise WrongUseError(f"set {_ENDPOINTS[-1]} to where the spans are to go")
    return OTLPSpanExporter()


def provider_for(system: str, exporter: SpanExporter, watch: SpanWatch) -> TracerProvider:
    """A provider of the service ``bench-<system>`` that batches to ``exporter``."""
    resource = Resource.create({semconv.SERVICE_NAME: f"bench-{system}"})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(watch)
    provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=_QUEUE))
    return provider


@contextmanager
def recording(provider: TracerProvider | None) -> Iterator[None]:
    """Operations inside go to ``provider`` with their content; None: to nowhere.

    The state of the process is a new one, as if the case had a process of its own: cases share
    no index and no sequence. The sequence is closed, and everything exported, at the end.
    """
    config = Config(
        capture_content=True,
        digest_key=semconv.KEY_PLAIN,
        max_value_chars=_MAX_VALUE_CHARS,
        max_span_chars=_MAX_SPAN_CHARS,
    )
    before = runtime.install(Runtime(config, tracer_provider=provider))
    try:
        yield
        if provider is not None:
            farewell.say()
            provider.force_flush()
    finally:
        runtime.install(before)
