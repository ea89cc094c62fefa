"""Senders that never give up, and the ledger of what was acknowledged to them."""

from __future__ import annotations

import http.client
import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import grpc

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
TIMEOUT_SECONDS = 20.0
RETRY_SECONDS = 0.05
SENT_AGAIN = 0.02
"""Share of the acknowledged requests that a sender sends once more."""
_RECONNECT = [
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 300),
]

Post = Callable[[bytes], str]
"""Send a request once; why it was not acknowledged, empty when it was."""
NO_CONNECTION = "no connection"
RETRYABLE = frozenset(
    (
        *(NO_CONNECTION, "HTTP 429", "HTTP 502", "HTTP 503", "HTTP 504"),
        *("CANCELLED", "DEADLINE_EXCEEDED", "ABORTED", "UNAVAILABLE", "DATA_LOSS"),
    )
)
"""What a sender of OTLP sends again (rules C19 and C22)."""


class Ledger:
    """Which numbered requests were acknowledged. Thread-safe."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._acknowledged: list[int] = []
        self.refused: Counter[str] = Counter()
        """Attempts without an acknowledgement, by reason; each was repeated."""

    def next_number(self) -> int:
        with self._lock:
            return next(self._numbers)

    def note(self, number: int) -> None:
        with self._lock:
            self._acknowledged.append(number)

    def refuse(self, reason: str) -> None:
        with self._lock:
            self.refused[reason] += 1

    def acknowledged(self) -> list[int]:
        """Numbers, in the order of their acknowledgements."""
        with self._lock:
            return list(self._acknowledged)

    def __len__(self) -> int:
        with self._lock:
            return len(self._acknowledged)


def _posting(port: int) -> Iterator[Post]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)

    def post(body: bytes) -> str:
        headers = {"content-type": "application/x-protobuf"}
        try:
            connection.request("POST", "/v1/traces", body, headers)
            response = connection.getresponse()
            response.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            return NO_CONNECTION
        return "" if response.status == 200 else f"HTTP {response.status}"

    with closing(connection):
        yield post


def _calling(port: int) -> Iterator[Post]:
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=_RECONNECT) as channel:
        export = channel.unary_unary(EXPORT)

        def post(body: bytes) -> str:
            try:
                export(body, timeout=TIMEOUT_SECONDS)
            except grpc.RpcError as error:
                return str(error.code().name)
            return ""

        yield post


over_http = contextmanager(_posting)
over_grpc = contextmanager(_calling)


class Senders:
    """Two over HTTP and one over gRPC; each repeats a request until it is acknowledged.

    Args:
        body: the request of a number.
        pause_seconds: of each sender, after each acknowledgement.
    """

    def __init__(
        self,
        ledger: Ledger,
        body: Callable[[int], bytes],
        *,
        http_port: int,
        grpc_port: int,
        pause_seconds: float,
    ) -> None:
        self._ledger = ledger
        self._body = body
        self._pause = pause_seconds
        self._stop = threading.Event()
        self._give_up = threading.Event()
        doors = (over_http(http_port), over_http(http_port), over_grpc(grpc_port))
        self._threads = [
            threading.Thread(target=self._send, args=(door, seed), daemon=True)
            for seed, door in enumerate(doors)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self, seconds: float) -> None:
        """Begin no more requests, and wait until those under way are acknowledged."""
        self._stop.set()
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
            assert not thread.is_alive(), "a request was not acknowledged in time"

    def abandon(self) -> None:
        """Repeat nothing any more: nobody will answer."""
        self._give_up.set()
        self.stop(2 * TIMEOUT_SECONDS)

    def _send(self, door: contextmanager[Post], seed: int) -> None:
        chance = random.Random(seed)
        with door as post:
            while not self._stop.is_set():
                number = self._ledger.next_number()
                body = self._body(number)
                while reason := post(body):
                    self._ledger.refuse(reason)
                    if self._give_up.wait(RETRY_SECONDS):
                        return
                self._ledger.note(number)
                if chance.random() < SENT_AGAIN:
                    post(body)
                self._stop.wait(self._pause)
