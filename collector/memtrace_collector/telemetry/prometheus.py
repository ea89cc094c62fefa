"""Our own metrics: counters that the stages add to, gauges that are read when scraped.

OpenTelemetry metrics, shown in the text format of Prometheus. Names follow OpenTelemetry
(``memtrace.spans.received``); Prometheus shows ``memtrace_spans_received_total``. Attribute
values come from closed sets; a graph id is never one, for it may name a person.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.metrics import CallbackOptions, Counter, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.resources import Resource
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

logger = logging.getLogger(__name__)

CONTENT_TYPE = CONTENT_TYPE_LATEST


class Reading(NamedTuple):
    """One value of a gauge and the attributes it stands for."""

    value: float
    attributes: dict[str, str]


class Telemetry:
    """Implements :class:`~memtrace_collector.telemetry.metrics.Metrics`."""

    def __init__(self, version: str) -> None:
        self._reader = PrometheusMetricReader(disable_target_info=True)
        self._provider = MeterProvider(
            metric_readers=[self._reader],
            resource=Resource.create({"service.name": "memtrace-otel", "service.version": version}),
            shutdown_on_exit=False,
        )
        self._meter = self._provider.get_meter("memtrace_collector", version)
        # a scope of its own: a counter of what happened and a gauge of what is may share a name
        self._gauges = self._provider.get_meter("memtrace_collector.gauges", version)
        self._counters: dict[str, Counter] = {}
        self._lock = threading.Lock()

    def add(self, name: str, value: int, **attributes: str) -> None:
        """Add ``value`` to the counter ``name``; a negative value is logged and ignored."""
        if value < 0:
            logger.warning("counter %s: %d was not added; a counter only grows", name, value)
            return
        counter = self._counters.get(name)
        if counter is None:
            with self._lock:
                counter = self._counters.setdefault(name, self._meter.create_counter(name))
        counter.add(value, attributes)

    def gauge(self, name: str, description: str, read: Callable[[], Iterable[Reading]]) -> None:
        """Show what ``read`` returns at each scrape; a failing ``read`` shows nothing."""

        def observe(_: CallbackOptions) -> list[Observation]:
            try:
                return [Observation(value, attributes) for value, attributes in read()]
            except Exception:
                logger.exception("gauge %s could not be read", name)
                return []

        self._gauges.create_observable_gauge(name, callbacks=[observe], description=description)

    def render(self) -> bytes:
        """Everything, as Prometheus reads it."""
        return generate_latest()

    def close(self) -> None:
        self._provider.shutdown()
