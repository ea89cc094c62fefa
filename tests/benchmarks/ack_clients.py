"""Producers for ``bench_ack``: each sends a request, awaits its answer, sends the next.

    python -m tests.benchmarks.ack_clients http PORT PRODUCERS BYTES SECONDS

Over HTTP raw sockets, many in one thread, so that the client takes little of the machine; over
gRPC grpcio's own client. Prints JSON: seconds taken, CPU seconds, bytes of a request, and the
latency of each in microseconds.
"""

from __future__ import annotations

import contextlib
import json
import random
import selectors
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
SPAN_BYTES = 2_000
_WORDS = ["the", "user", "likes", "tea", "and", "moved", "to", "Berlin", "with", "her", "sister"]


def request_of(size: int) -> bytes:
    """An export request of about ``size`` bytes: spans of 2 KB, one in three a memory span."""
    chance = random.Random(size)
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    while request.ByteSize() < size:
        left = size - request.ByteSize()
        number = len(scope.spans)
        span = scope.spans.add(
            trace_id=chance.randbytes(16),
            span_id=chance.randbytes(8),
            name="chat" if number % 3 else "search_memory",
            start_time_unix_nano=1_780_000_000_000_000_000 + number,
            end_time_unix_nano=1_780_000_000_000_500_000 + number,
        )
        if number % 3 == 0:
            packed = json.dumps([f"mem:notes:{chance.randrange(10**12)}@1" for _ in range(10)])
            span.attributes.add(key="memtrace.inputs").value.string_value = packed
        text = " ".join(chance.choices(_WORDS, k=400))
        room = max(0, min(SPAN_BYTES, left) - 500)
        span.attributes.add(key="input.value").value.string_value = text[:room]
    return request.SerializeToString()


@dataclass
class _Producer:
    """One connection with at most one request under way."""

    connection: socket.socket
    message: memoryview
    left: memoryview
    sent_at: float = 0.0
    answer: bytes = b""

    def begin(self) -> None:
        self.left, self.answer, self.sent_at = self.message, b"", time.perf_counter()
        self.write()

    def write(self) -> bool:
        """Send on; True when something is still to be sent."""
        with contextlib.suppress(BlockingIOError):
            while self.left:
                self.left = self.left[self.connection.send(self.left) :]
        return bool(self.left)

    def read(self) -> bool:
        """Take what has come; True when the answer is complete."""
        self.answer += self.connection.recv(65_536)
        if not self.answer:
            raise ConnectionError("the server closed the connection")
        if not self.answer.startswith(b"HTTP/1.1 200"):
            raise ConnectionError(self.answer[:200])
        return b"\r\n\r\n" in self.answer


def over_http(port: int, producers: int, size: int, seconds: float) -> list[float]:
    """Latencies in seconds."""
    body = request_of(size)
    head = (
        f"POST /v1/traces HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
        f"content-type: application/x-protobuf\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    message = memoryview(head.encode() + body)
    latencies: list[float] = []
    with selectors.DefaultSelector() as selector:
        for _ in range(producers):
            connection = socket.create_connection(("127.0.0.1", port))
            connection.setblocking(False)
            producer = _Producer(connection, message, message)
            producer.begin()
            selector.register(connection, _interest(bool(producer.left)), producer)
        _exchange(selector, latencies, time.perf_counter() + seconds)
        for key in list(selector.get_map().values()):
            key.data.connection.close()
    return latencies


def _exchange(selector: selectors.BaseSelector, latencies: list[float], end: float) -> None:
    waiting = len(selector.get_map())
    while waiting:
        for key, events in selector.select():
            producer: _Producer = key.data
            wants_to_write = bool(producer.left)
            if events & selectors.EVENT_WRITE:
                producer.write()
            if events & selectors.EVENT_READ and producer.read():
                latencies.append(time.perf_counter() - producer.sent_at)
                if time.perf_counter() < end:
                    producer.begin()
                else:
                    waiting -= 1
            if bool(producer.left) != wants_to_write:
                selector.modify(producer.connection, _interest(bool(producer.left)), producer)


def _interest(writing: bool) -> int:
    return selectors.EVENT_READ | (selectors.EVENT_WRITE if writing else 0)


def over_grpc(port: int, producers: int, size: int, seconds: float) -> list[float]:
    """Latencies in seconds; four producers share a channel."""
    body = request_of(size)
    latencies: list[float] = []
    end = time.perf_counter() + seconds

    def produce(export: Callable[..., bytes]) -> None:
        while (sent_at := time.perf_counter()) < end:
            export(body, timeout=30)
            latencies.append(time.perf_counter() - sent_at)

    options = [("grpc.use_local_subchannel_pool", 1)]
    channels = [
        grpc.insecure_channel(f"127.0.0.1:{port}", options) for _ in range((producers + 3) // 4)
    ]
    threads = [
        threading.Thread(target=produce, args=(channels[n // 4].unary_unary(EXPORT, None, None),))
        for n in range(producers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for channel in channels:
        channel.close()
    return latencies


def main(door: str, port: int, producers: int, size: int, seconds: float) -> None:
    send = over_http if door == "http" else over_grpc
    started, cpu = time.perf_counter(), time.process_time()
    latencies = send(port, producers, size, seconds)
    report = {
        "seconds": time.perf_counter() - started,
        "cpu": time.process_time() - cpu,
        "bytes": len(request_of(size)),
        "latencies_us": [round(1e6 * latency) for latency in latencies],
    }
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
