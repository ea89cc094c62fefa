"""Test kit: a provider of its own with sequential ids and a fake clock; spans as plain dicts.

    with testing.capture() as spans:
        my_agent.remember("I live in Lisbon")
    assert spans.names() == ["memtrace.ingest", "create_memory", "upsert_memory"]

Needs ``opentelemetry-sdk``. OpenTelemetry's global provider is not touched.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import Sampler
from opentelemetry.trace import format_span_id, format_trace_id

from memtrace_otel import runtime, semconv
from memtrace_otel.config import Config
from memtrace_otel.content import Redactor
from memtrace_otel.runtime import Runtime

SpanDict = dict[str, Any]
"""name, trace_id, span_id, parent_span_id (hex), start_ns, end_ns, status, attributes, links."""

START_NS = 1_767_225_600_000_000_000
"""Where the fake clock starts: 2026-01-01T00:00:00Z."""
STEP_NS = 1_000_000_000
PROCESS = "0" * 8
"""The process id in ``seq`` under the test kit."""


class SequentialIds(IdGenerator):
    """Trace and span ids 1, 2, 3 …"""

    def __init__(self) -> None:
        self._traces = itertools.count(1)
        self._spans = itertools.count(1)

    def generate_trace_id(self) -> int:
        return next(self._traces)

    def generate_span_id(self) -> int:
        return next(self._spans)


class FakeClock:
    """Nanoseconds since the Unix epoch; each reading is one second after the one before."""

    def __init__(self, start_ns: int = START_NS, step_ns: int = STEP_NS) -> None:
        self.now_ns = start_ns
        self.step_ns = step_ns

    def __call__(self) -> int:
        now = self.now_ns
        self.now_ns += self.step_ns
        return now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now_ns += int(seconds * 1e9)


class Spans:
    """The spans that ended so far, in the order in which they ended."""

    def __init__(self, provider: TracerProvider, exporter: InMemorySpanExporter) -> None:
        self.provider = provider
        self._exporter = exporter

    def all(self) -> list[SpanDict]:
        """Every span as a plain dict."""
        return [as_dict(span) for span in self._exporter.get_finished_spans()]

    def names(self) -> list[str]:
        """Their names."""
        return [span["name"] for span in self.all()]

    def steps(self) -> list[str]:
        """Their ``memtrace.step``, of memory operations only."""
        steps = (span["attributes"].get(semconv.MEMTRACE_STEP) for span in self.all())
        return [step for step in steps if step]

    def of(self, step: str) -> list[SpanDict]:
        """The spans of one step."""
        return [
            span for span in self.all() if span["attributes"].get(semconv.MEMTRACE_STEP) == step
        ]

    def one(self, step: str) -> SpanDict:
        """The only span of one step.

        Raises:
            LookupError: there is none, or more than one.
        """
        found = self.of(step)
        if len(found) != 1:
            raise LookupError(f"{len(found)} spans of step {step!r} in {self.names()}")
        return found[0]

    def clear(self) -> None:
        """Forget what ended so far."""
        self._exporter.clear()


def as_dict(span: ReadableSpan) -> SpanDict:
    """A span as a plain dict (see :data:`SpanDict`); attribute tuples become lists."""
    context = span.get_span_context()
    if context is None:
        raise ValueError("a span without a context")
    return {
        "name": span.name,
        "trace_id": format_trace_id(context.trace_id),
        "span_id": format_span_id(context.span_id),
        "parent_span_id": format_span_id(span.parent.span_id) if span.parent else "",
        "start_ns": span.start_time,
        "end_ns": span.end_time,
        "status": span.status.status_code.name,
        "attributes": _plain(span.attributes),
        "links": [
            {
                "trace_id": format_trace_id(link.context.trace_id),
                "span_id": format_span_id(link.context.span_id),
                "attributes": _plain(link.attributes),
            }
            for link in span.links
        ],
    }


def _plain(attributes: Mapping[str, Any] | None) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in (attributes or {}).items()
    }


def lineage(span: SpanDict) -> dict[str, Any]:
    """``memtrace.lineage`` of a span, put together when it was split; empty when it has none."""
    return _packed(span, semconv.MEMTRACE_LINEAGE)


def values(span: SpanDict) -> dict[str, Any]:
    """``memtrace.values`` of a span: reference -> content; empty when none was captured."""
    return _packed(span, semconv.MEMTRACE_VALUES)


def _packed(span: SpanDict, name: str) -> dict[str, Any]:
    attributes = span["attributes"]
    text = attributes.get(name, "")
    for number in itertools.count(1):
        piece = attributes.get(f"{name}.{number}")
        if piece is None:
            break
        text += piece
    parsed: dict[str, Any] = json.loads(text) if text else {}
    return parsed


@contextmanager
def capture(
    *,
    content: bool = True,
    digest_key: str = semconv.KEY_PLAIN,
    config: Config | None = None,
    redactor: Redactor | None = None,
    sampler: Sampler | None = None,
    span_limits: SpanLimits | None = None,
    service_name: str = "test",
) -> Iterator[Spans]:
    """Send every operation inside to memory, with nothing kept from before or for after.

    Args:
        content: whether content is captured.
        digest_key: ``plain`` (the default) or the key as text.
        config: a whole configuration instead of the two above.
        redactor: as for ``set_redactor``.
        sampler: of the provider; default: everything.
        span_limits: of the provider.
        service_name: of the provider's resource.
    """
    exporter = InMemorySpanExporter()
    provider = TracerProvider(
        sampler=sampler,
        resource=Resource({semconv.SERVICE_NAME: service_name}),
        id_generator=SequentialIds(),
        span_limits=span_limits,
        shutdown_on_exit=False,
    )
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    state = Runtime(
        config or Config(capture_content=content, digest_key=digest_key),
        tracer_provider=provider,
        clock=FakeClock(),
        redactor=redactor,
    )
    state.sequence.process = PROCESS
    before = runtime.install(state)
    try:
        yield Spans(provider, exporter)
    finally:
        runtime.install(before)
        provider.shutdown()
