"""Our metrics as Prometheus reads them: its text format, and OpenMetrics with exemplars.

OpenTelemetry's exporter for Prometheus drops exemplars, so that the SDK's data points are put
into the families of the Prometheus client here.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate

from opentelemetry.sdk.metrics import Exemplar as SdkExemplar
from opentelemetry.sdk.metrics.export import HistogramDataPoint, NumberDataPoint
from opentelemetry.sdk.metrics.export import Metric as SdkMetric
from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from prometheus_client.core import Metric as Family
from prometheus_client.exposition import choose_encoder
from prometheus_client.samples import Exemplar

from memtrace_collector.telemetry.catalog import METRICS
from memtrace_collector.telemetry.metric import Metric

_NS = 1_000_000_000


class Scrapes:
    """Answers scrapes. ``collect``: what there is now."""

    def __init__(self, collect: Callable[[], Iterable[SdkMetric]]) -> None:
        self._collect = collect
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        self._last: dict[tuple[str, tuple[tuple[str, str], ...]], SdkExemplar] = {}
        """Exemplars of counters: the SDK hands each out once, a scraper may miss it."""

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """Everything, in the format that the header ``Accept`` asks for, and its media type."""
        encode, media_type = choose_encoder(accept)
        return encode(self._registry), media_type

    def describe(self) -> list[Family]:
        """Nothing: what there is shows when it is collected."""
        return []

    def collect(self) -> Iterator[Family]:
        """The families of the Prometheus client."""
        for metric in self._collect():
            known = METRICS.get(metric.name)
            if known is not None:
                yield self._family(known, metric)

    def _family(self, known: Metric, metric: SdkMetric) -> Family:
        name = known.prometheus.removesuffix("_total")
        family = Family(name, known.description, known.kind, known.prometheus_unit)
        for point in metric.data.data_points:
            if isinstance(point, HistogramDataPoint):
                _add_histogram(family, point)
            elif isinstance(point, NumberDataPoint):
                labels = _labels(point)
                exemplar = self._exemplar(known, point) if known.kind == "counter" else None
                family.add_sample(known.prometheus, labels, point.value, exemplar=exemplar)
        return family

    def _exemplar(self, known: Metric, point: NumberDataPoint) -> Exemplar | None:
        key = (known.name, tuple(_labels(point).items()))
        for each in point.exemplars:
            self._last[key] = each
        last = self._last.get(key)
        return _shown(last) if last is not None else None


def _add_histogram(family: Family, point: HistogramDataPoint) -> None:
    labels = _labels(point)
    bounds = (*point.explicit_bounds, math.inf)
    exemplars = {bisect.bisect_left(bounds, each.value): each for each in point.exemplars}
    for bucket, (bound, count) in enumerate(zip(bounds, accumulate(point.bucket_counts))):
        family.add_sample(
            f"{family.name}_bucket",
            {**labels, "le": _bound(bound)},
            count,
            exemplar=_shown(exemplars[bucket]) if bucket in exemplars else None,
        )
    family.add_sample(f"{family.name}_count", labels, point.count)
    family.add_sample(f"{family.name}_sum", labels, point.sum)


def _bound(bound: float) -> str:
    return "+Inf" if bound == math.inf else str(float(bound))


def _labels(point: NumberDataPoint | HistogramDataPoint) -> dict[str, str]:
    return {name: str(value) for name, value in (point.attributes or {}).items()}


def _shown(exemplar: SdkExemplar) -> Exemplar:
    ids = {"trace_id": f"{exemplar.trace_id:032x}", "span_id": f"{exemplar.span_id:016x}"}
    return Exemplar(ids, exemplar.value, exemplar.time_unix_nano / _NS)
