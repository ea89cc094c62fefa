"""Where everything goes on to: settings and secrets of the environment -> a destination."""

from __future__ import annotations

import os
from pathlib import Path

from memtrace_collector.errors import ConfigError
from memtrace_collector.exporter.otlp import OtlpDestination
from memtrace_collector.settings.forward import ForwardConfig, headers_for


def open_destination(name: str, forward: ForwardConfig) -> OtlpDestination:
    """The configured destination; the caller closes it.

    Raises:
        ConfigError: the file of authorities cannot be used, or the headers are malformed.
    """
    headers = headers_for(os.environ)
    try:
        return OtlpDestination(
            name, forward.url, headers, ca=Path(forward.ca) if forward.ca else None
        )
    except OSError as error:
        raise ConfigError(f"forward.ca: {forward.ca} cannot be used: {error}") from None
