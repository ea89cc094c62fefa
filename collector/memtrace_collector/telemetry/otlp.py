"""Our metrics by OTLP, from time to time, to whoever takes them; over HTTP or gRPC.

The SDK's own exporters send. Headers and authorities are theirs to read from the environment
(``OTEL_EXPORTER_OTLP_METRICS_HEADERS``, ``OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE``).
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.grpc import metric_exporter as otlp_grpc
from opentelemetry.exporter.otlp.proto.http import metric_exporter as otlp_http
from opentelemetry.sdk.metrics.export import (
    Metric,
    MetricExporter,
    MetricExportResult,
    MetricsData,
    PeriodicExportingMetricReader,
)

from memtrace_collector.errors import UnreachableError
from memtrace_collector.settings.telemetry import TelemetryConfig
from memtrace_collector.telemetry.metrics import Metrics
from memtrace_collector.telemetry.passes import Passes

TIMEOUT_SECONDS = 5
"""Of one export with its repetitions; what is not taken then comes with the next."""
_PATH = "/v1/metrics"


def reader(
    config: TelemetryConfig, histograms: Callable[[], list[Metric]], metrics: Metrics
) -> PeriodicExportingMetricReader:
    """Exports what the SDK counts together with ``histograms``. Failures are counted in
    ``metrics`` and logged once a minute."""
    # the exporters log every attempt of every export
    logging.getLogger("opentelemetry.exporter.otlp").setLevel(logging.CRITICAL)
    exporter = _Exporter(_sender(config.otlp_url), histograms, metrics)
    return PeriodicExportingMetricReader(
        exporter,
        export_interval_millis=config.interval_seconds * 1_000,
        export_timeout_millis=TIMEOUT_SECONDS * 1_000,
    )


def _sender(url: str) -> MetricExporter:
    parts = urlsplit(url)
    if parts.scheme in ("grpc", "grpcs"):
        return otlp_grpc.OTLPMetricExporter(
            endpoint=parts.netloc, insecure=parts.scheme == "grpc", timeout=TIMEOUT_SECONDS
        )
    endpoint = url.rstrip("/").removesuffix(_PATH) + _PATH
    return otlp_http.OTLPMetricExporter(endpoint=endpoint, timeout=TIMEOUT_SECONDS)


class _Exporter(MetricExporter):
    """Adds what the SDK does not count, and never raises."""

    def __init__(
        self, sender: MetricExporter, histograms: Callable[[], list[Metric]], metrics: Metrics
    ) -> None:
        super().__init__()
        self._sender = sender
        self._histograms = histograms
        self._passes = Passes(
            "our metrics could not be exported; the next export has them",
            "memtrace.telemetry.export_failures",
            metrics,
            pause_seconds=0.0,
        )

    def export(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any
    ) -> MetricExportResult:
        def send() -> float:
            result = self._sender.export(self._whole(metrics_data), timeout_millis, **kwargs)
            if result is not MetricExportResult.SUCCESS:
                raise UnreachableError("the receiver of our metrics did not take them")
            return 0.0

        self._passes.once(send)
        failed = self._passes.is_failing
        return MetricExportResult.FAILURE if failed else MetricExportResult.SUCCESS

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        return self._sender.force_flush(timeout_millis)

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
        self._sender.shutdown(timeout_millis, **kwargs)

    def _whole(self, data: MetricsData) -> MetricsData:
        ours = self._histograms()
        if not ours or not data.resource_metrics:
            return data
        first, *rest = data.resource_metrics
        scope, *others = first.scope_metrics
        scope = dataclasses.replace(scope, metrics=[*scope.metrics, *ours])
        whole = dataclasses.replace(first, scope_metrics=[scope, *others])
        return MetricsData(resource_metrics=[whole, *rest])
