"""Histograms of values recorded here and of values counted by another process.

The SDK's own take one value at a time, and the process that projects reads some ten thousand
operations a second: it counts them by bucket, and only the counts cross over. The result are
the SDK's data points, for any of its exporters.
"""

from __future__ import annotations

import bisect
import threading
import time
from collections.abc import Iterable

from opentelemetry.sdk.metrics import Exemplar as SdkExemplar
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Histogram,
    HistogramDataPoint,
)
from opentelemetry.sdk.metrics.export import Metric as SdkMetric

from memtrace_collector.telemetry.catalog import METRICS
from memtrace_collector.telemetry.metric import Metric
from memtrace_collector.telemetry.metrics import Distribution, Exemplar

_Attributes = tuple[tuple[str, str], ...]


def distribution(bounds: tuple[float, ...], values: Iterable[float]) -> Distribution:
    """``values``, at least one, counted by the buckets with these upper bounds."""
    counts = [0] * (len(bounds) + 1)
    listed = list(values)
    for value in listed:
        counts[bisect.bisect_left(bounds, value)] += 1
    return Distribution(tuple(counts), sum(listed), min(listed), max(listed))


def merged(one: Distribution, other: Distribution) -> Distribution:
    """Both together; they have the same buckets."""
    return Distribution(
        tuple(a + b for a, b in zip(one.counts, other.counts)),
        one.sum + other.sum,
        min(one.least, other.least),
        max(one.greatest, other.greatest),
    )


class Histograms:
    """As large as the catalogue allows sets of attributes, however much is counted."""

    def __init__(self) -> None:
        self._began_ns = time.time_ns()
        self._lock = threading.Lock()
        self._values: dict[str, dict[_Attributes, Distribution]] = {}
        self._exemplars: dict[tuple[str, _Attributes, int], SdkExemplar] = {}

    def merge(
        self,
        metric: Metric,
        values: Distribution,
        attributes: dict[str, str],
        exemplar: Exemplar | None = None,
    ) -> None:
        """Count these values. ``exemplar``: stands for the greatest of them, in its bucket, until
        the next of that bucket."""
        key = tuple(attributes.items())
        with self._lock:
            points = self._values.setdefault(metric.name, {})
            known = points.get(key)
            points[key] = merged(known, values) if known else values
            if exemplar is not None:
                bucket = bisect.bisect_left(metric.bounds, values.greatest)
                self._exemplars[metric.name, key, bucket] = SdkExemplar(
                    {},
                    values.greatest,
                    time.time_ns(),
                    int(exemplar.span_id, 16),
                    int(exemplar.trace_id, 16),
                )

    def metrics(self) -> list[SdkMetric]:
        """Everything counted so far, cumulative."""
        now = time.time_ns()
        with self._lock:
            return [
                SdkMetric(
                    name=name,
                    description=METRICS[name].description,
                    unit=METRICS[name].unit,
                    data=Histogram(
                        data_points=[
                            self._point(METRICS[name], key, values, now)
                            for key, values in points.items()
                        ],
                        aggregation_temporality=AggregationTemporality.CUMULATIVE,
                    ),
                )
                for name, points in self._values.items()
            ]

    def _point(
        self, metric: Metric, key: _Attributes, values: Distribution, now_ns: int
    ) -> HistogramDataPoint:
        buckets = range(len(metric.bounds) + 1)
        shown = (self._exemplars.get((metric.name, key, bucket)) for bucket in buckets)
        return HistogramDataPoint(
            attributes=dict(key),
            start_time_unix_nano=self._began_ns,
            time_unix_nano=now_ns,
            count=sum(values.counts),
            sum=values.sum,
            bucket_counts=values.counts,
            explicit_bounds=metric.bounds,
            min=values.least,
            max=values.greatest,
            exemplars=[each for each in shown if each is not None],
        )
