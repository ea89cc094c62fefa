"""Who takes the demo's spans and judges its answers: an `up` of its own, or what runs already."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from memtrace_collector.api.client import Client
from memtrace_collector.commands.session import TOKEN_VARIABLE
from memtrace_collector.demo.processes import server
from memtrace_collector.demo.settings import Settings
from memtrace_collector.errors import UnreachableError

READY_SECONDS = 60.0
"""How long an installation is waited for that may just be starting."""
_CONNECT_SECONDS = 2.0
_POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Collector:
    """Base URLs: of OTLP over HTTP, and of the API."""

    otlp_http: str
    api: str

    def client(self) -> Client:
        """Asks with the token of ``MEMTRACE_TOKEN``, where one is set; the caller closes it."""
        return Client(self.api, os.environ.get(TOKEN_VARIABLE, ""))


@contextmanager
def collector(settings: Settings) -> Iterator[Collector]:
    """The running installation that the settings name; else an `up`, for as long as the context
    lasts.

    Raises:
        UnreachableError: it does not answer in time.
    """
    if settings.is_elsewhere:
        running = Collector(settings.endpoint, settings.api)
        _await(settings.endpoint, lambda: _accepts(settings.endpoint))
        _await(settings.api, lambda: _answers(running))
        yield running
        return
    command = [
        sys.executable, "-m", "memtrace_collector", "up", "--store", str(settings.store),
        "--grpc-port", "0", "--http-port", "0", "--api-port", "0", "--format", "json",
        *(["--forward", settings.forward] if settings.forward else []),
    ]  # fmt: skip
    with server("memtrace-otel up", command, os.environ, settings.collector_log) as line:
        addresses = json.loads(line)
        yield Collector(addresses["otlp_http"], addresses["api"])


def _await(url: str, is_there: Callable[[], bool]) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not is_there():
        if time.monotonic() >= deadline:
            raise UnreachableError(f"{url} did not answer within {READY_SECONDS:.0f} s")
        time.sleep(_POLL_SECONDS)


def _accepts(url: str) -> bool:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname or "", port), _CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


def _answers(running: Collector) -> bool:
    with closing(running.client()) as client:
        try:
            client.graphs()
        except UnreachableError:
            return False
    return True
