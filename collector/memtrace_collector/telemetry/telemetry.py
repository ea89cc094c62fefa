"""Our own metrics: counted by the stages, read when they are scraped, exported by OTLP.

The SDK of OpenTelemetry counts and reads, :class:`Histograms` beside it; both reach every way out
together. What is reported is kept within the catalogue here, at the one door.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable
from typing import NamedTuple

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.metrics import CallbackOptions, Counter, Observation
from opentelemetry.sdk.metrics import MeterProvider, TraceBasedExemplarFilter
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.metrics.export import Metric as SdkMetric
from opentelemetry.sdk.resources import Resource

from memtrace_collector.settings.telemetry import ONLY_SCRAPED, TelemetryConfig
from memtrace_collector.telemetry.bounds import Bounds
from memtrace_collector.telemetry.catalog import METRICS
from memtrace_collector.telemetry.histograms import Histograms, distribution
from memtrace_collector.telemetry.metrics import Distribution, Exemplar
from memtrace_collector.telemetry.otlp import reader
from memtrace_collector.telemetry.prometheus import Scrapes

logger = logging.getLogger(__name__)

SERVICE_NAME = "memtrace-otel"
ROLE = "memtrace.role"
"""Resource attribute: up, process, work or serve."""
CLOSE_MILLIS = 2_000
"""For the last export, at most."""
_SCOPE = "memtrace_collector"


class Reading(NamedTuple):
    """One value of a gauge and the attributes it stands for."""

    value: float
    attributes: dict[str, str]


class Telemetry:
    """Implements :class:`~memtrace_collector.telemetry.metrics.Metrics`; :meth:`close` when done.

    Args:
        version: of this package.
        role: the command that runs.
        config: where metrics go by OTLP, if anywhere.
    """

    def __init__(
        self, version: str, role: str = "up", config: TelemetryConfig = ONLY_SCRAPED
    ) -> None:
        self._bounds = Bounds()
        self._histograms = Histograms()
        self._in_memory = InMemoryMetricReader()
        exporting = [reader(config, self._histograms.metrics, self)] if config.otlp_url else []
        self._provider = MeterProvider(
            metric_readers=[self._in_memory, *exporting],
            resource=_resource(version, role),
            exemplar_filter=TraceBasedExemplarFilter(),
            shutdown_on_exit=False,
        )
        self._meter = self._provider.get_meter(_SCOPE, version)
        self._counters: dict[str, Counter] = {
            metric.name: self._meter.create_counter(metric.name, metric.unit, metric.description)
            for metric in METRICS.values()
            if metric.kind == "counter"
        }
        for metric in METRICS.values():
            for attributes in metric.few() if metric.kind == "counter" else ():
                self._counters[metric.name].add(0, attributes)
        self._scrapes = Scrapes(self._collect)

    def add(
        self, name: str, value: float, exemplar: Exemplar | None = None, /, **attributes: str
    ) -> None:
        """Add ``value`` to the counter ``name``; a negative value is logged and ignored."""
        metric = self._bounds.metric(name, "counter", attributes)
        if metric is None:
            return
        if value < 0:
            logger.warning("counter %s: %s was not added; a counter only grows", name, value)
            return
        context = _context(exemplar) if exemplar is not None else None
        self._counters[name].add(value, self._bounds.within(metric, attributes), context)

    def record(
        self, name: str, value: float, exemplar: Exemplar | None = None, /, **attributes: str
    ) -> None:
        """Put one value into the histogram ``name``."""
        metric = self._bounds.metric(name, "histogram", attributes)
        if metric is not None:
            within = self._bounds.within(metric, attributes)
            self._histograms.merge(metric, distribution(metric.bounds, [value]), within, exemplar)

    def merge(self, name: str, values: Distribution, /, **attributes: str) -> None:
        """Put many values, counted elsewhere, into the histogram ``name``."""
        metric = self._bounds.metric(name, "histogram", attributes)
        if metric is not None:
            self._histograms.merge(metric, values, self._bounds.within(metric, attributes))

    def gauge(self, name: str, read: Callable[[], Iterable[Reading]]) -> None:
        """Show what ``read`` returns at each scrape and export; a failing ``read`` shows nothing.

        Raises:
            KeyError: the catalogue has no such metric.
        """
        metric = METRICS[name]

        def observe(_: CallbackOptions) -> list[Observation]:
            try:
                return [
                    Observation(value, self._bounds.within(metric, attributes))
                    for value, attributes in read()
                ]
            except Exception:
                logger.exception("gauge %s could not be read", name)
                return []

        self._meter.create_observable_gauge(
            name, callbacks=[observe], unit=metric.unit, description=metric.description
        )

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """Everything, in the format that the header ``Accept`` asks for, and its media type."""
        return self._scrapes.render(accept)

    def close(self) -> None:
        """Export once more and stop."""
        self._provider.shutdown(timeout_millis=CLOSE_MILLIS)

    def _collect(self) -> list[SdkMetric]:
        data = self._in_memory.get_metrics_data()
        found = [
            metric
            for resource in (data.resource_metrics if data is not None else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
        ]
        return [*found, *self._histograms.metrics()]


def _resource(version: str, role: str) -> Resource:
    return Resource.create(
        {
            "service.name": SERVICE_NAME,
            "service.version": version,
            "service.instance.id": str(uuid.uuid4()),
            ROLE: role,
        }
    )


def _context(exemplar: Exemplar) -> Context:
    """In which the SDK takes the span as the exemplar of what is counted."""
    place = trace.SpanContext(
        int(exemplar.trace_id, 16),
        int(exemplar.span_id, 16),
        is_remote=True,
        trace_flags=trace.TraceFlags(trace.TraceFlags.SAMPLED),
    )
    return trace.set_span_in_context(trace.NonRecordingSpan(place), Context())
