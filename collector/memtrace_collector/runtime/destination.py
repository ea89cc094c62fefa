"""Where everything goes on to: settings and secrets of the environment -> a destination."""

from __future__ import annotations

import os
from pathlib import Path

from memtrace_collector.errors import ConfigError
from memtrace_collector.exporter.otlp import OtlpDestination
from memtrace_collector.exporter.readback import ReadBack
from memtrace_collector.exporter.trace_query import TraceQuery
from memtrace_collector.settings.forward import ForwardConfig, headers_for
from memtrace_collector.settings.profiles import PROFILES
from memtrace_collector.telemetry.metrics import Metrics


def open_destination(name: str, forward: ForwardConfig) -> OtlpDestination:
    """The configured destination; the caller closes it.

    Raises:
        ConfigError: the file of authorities cannot be used, or the headers are malformed.
    """
    headers, longest = headers_for(os.environ), PROFILES[forward.profile].longest_text
    ca = Path(forward.ca) if forward.ca else None
    try:
        return OtlpDestination(name, forward.url, headers, ca=ca, longest_text=longest)
    except OSError as error:
        raise ConfigError(f"forward.ca: {forward.ca} cannot be used: {error}") from None


def open_readback(name: str, forward: ForwardConfig, metrics: Metrics) -> ReadBack | None:
    """What looks for delivered verdicts at the destination, which the caller closes; None where
    no query API is set.

    Raises:
        ConfigError: as :func:`open_destination`.
    """
    api = PROFILES[forward.profile].query
    if not forward.query_url or not api:
        return None
    ca = Path(forward.ca) if forward.ca else None
    try:
        query = TraceQuery(api, forward.query_url, headers_for(os.environ), ca)
    except OSError as error:
        raise ConfigError(f"forward.ca: {forward.ca} cannot be used: {error}") from None
    return ReadBack(name, query, metrics=metrics)
