"""Clients that send requests at a fixed rate over kept connections and wait for each answer."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tests.benchmarks.rag_traces import Request

_SLOW_DOWN = frozenset((429, 502, 503, 504))
_TIMEOUT_SECONDS = 300.0


@dataclass
class Sent:
    """What was acknowledged. Latencies in seconds."""

    spans: int = 0
    operations: int = 0
    bytes: int = 0
    retried: int = 0
    failed: int = 0
    latencies: list[float] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def latency(self, share: float) -> float:
        """A quantile, in milliseconds."""
        ordered = sorted(self.latencies) or [0.0]
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1e3


@dataclass
class Load:
    """Requests for ``url``, one after the other, each with ids of its own.

    ``rate``: spans per second in all, 0 for as fast as they are answered.
    ``more``: whether request number n is to be sent, so many seconds after the start.
    """

    url: str
    requests: Sequence[Request]
    connections: int
    rate: float
    more: Callable[[int, float], bool]
    headers: Mapping[str, str] = field(default_factory=dict)
    first_number: int = 1
    sent: Sent = field(default_factory=Sent)

    def run(self) -> Sent:
        """Send until there are no more; returns when all are answered."""
        threads = [threading.Thread(target=self._send) for _ in range(self.connections)]
        self._next, self._start = 0, time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.sent

    def _take(self) -> int | None:
        with self.sent.lock:
            number = self._next
            if not self.more(number, time.monotonic() - self._start):
                return None
            self._next += 1
        return number

    def _send(self) -> None:
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(
            parts.hostname or "", parts.port, timeout=_TIMEOUT_SECONDS
        )
        while (number := self._take()) is not None:
            request = self.requests[number % len(self.requests)]
            if self.rate:
                due = self._start + number * request.spans / self.rate
                time.sleep(max(0.0, due - time.monotonic()))
            body = request.fresh(self.first_number + number, time.time_ns())
            self._export(connection, body, request)
        connection.close()

    def _export(self, connection: http.client.HTTPConnection, body: bytes, of: Request) -> None:
        headers = {"content-type": "application/x-protobuf", **self.headers}
        while True:
            start = time.perf_counter()
            connection.request("POST", "/v1/traces", body, headers)
            response = connection.getresponse()
            response.read()
            took = time.perf_counter() - start
            if response.status not in _SLOW_DOWN:
                break
            with self.sent.lock:
                self.sent.retried += 1
            time.sleep(float(response.headers.get("retry-after") or 0.1))
        with self.sent.lock:
            self.sent.latencies.append(took)
            if response.status == http.client.OK:
                self.sent.spans += of.spans
                self.sent.operations += of.operations
                self.sent.bytes += len(body)
            else:
                self.sent.failed += 1
