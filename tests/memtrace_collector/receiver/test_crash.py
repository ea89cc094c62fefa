"""SIGKILL while requests come in: what was acknowledged is there, once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import grpc
import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memtrace_collector.log.position import START
from memtrace_collector.log.reader import read
from memtrace_collector.log.segments import SegmentLog
from memtrace_collector.receiver.decode import decode_traces

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
RUNS, CLIENTS = 4, 4

SERVE = """
import sys, threading
from pathlib import Path
from memtrace_collector.log.segments import SegmentLog
from memtrace_collector.receiver.ingest import Ingest
from memtrace_collector.receiver.server import Listen, ReceiverServer

log = SegmentLog(Path(sys.argv[1]), segment_bytes=50_000)
server = ReceiverServer(Ingest(log.append), Listen(grpc_port=0, http_port=0))
server.start()
print(server.http_port, server.grpc_port, flush=True)
threading.Event().wait()
"""


def body(span: int) -> bytes:
    request = ExportTraceServiceRequest()
    request.resource_spans.add().scope_spans.add().spans.add(
        trace_id=b"\1" * 16, span_id=span.to_bytes(8, "big"), name="x" * 200
    )
    return request.SerializeToString()


def send_http(port: int, spans: range, acknowledged: list[int], count: Callable) -> None:
    with httpx.Client(timeout=10) as client:
        for span in spans:
            try:
                answer = client.post(
                    f"http://127.0.0.1:{port}/v1/traces",
                    content=body(span),
                    headers={"content-type": "application/x-protobuf"},
                )
            except httpx.HTTPError:
                return
            if answer.status_code == 200:
                acknowledged.append(span)
                count()


def send_grpc(port: int, spans: range, acknowledged: list[int], count: Callable) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        export = channel.unary_unary(EXPORT)
        for span in spans:
            try:
                export(body(span), timeout=10)
            except grpc.RpcError:
                return
            acknowledged.append(span)
            count()


@pytest.mark.fault("F1")
def test_every_acknowledged_span_is_there_once_after_kills_at_random_moments(
    tmp_path: Path,
) -> None:
    chance = random.Random(11)
    acknowledged: list[int] = []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for run in range(RUNS):
        with subprocess.Popen(
            [sys.executable, "-c", SERVE, str(tmp_path)], stdout=subprocess.PIPE, env=environment
        ) as server:
            assert server.stdout is not None
            ports = [int(port) for port in server.stdout.readline().split()]
            enough = threading.Semaphore(0)
            senders = []
            for client in range(CLIENTS):
                first = 1 + (run * CLIENTS + client) * 1_000_000
                send = send_grpc if client % 2 else send_http
                arguments = (ports[client % 2], range(first, first + 1_000_000), acknowledged)
                senders.append(threading.Thread(target=send, args=(*arguments, enough.release)))
            for sender in senders:
                sender.start()
            for _ in range(chance.randrange(20, 200)):
                assert enough.acquire(timeout=20)
            server.send_signal(signal.SIGKILL)
            for sender in senders:
                sender.join(20)
    SegmentLog(tmp_path).close()
    found = [
        int.from_bytes(span.span_id, "big")
        for entry in read(tmp_path, START)
        for resource in decode_traces(entry.record).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    assert len(acknowledged) > 20 * RUNS
    assert len(found) == len(set(found))
    assert set(acknowledged) <= set(found)
