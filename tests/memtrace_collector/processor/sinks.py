"""Destinations on loopback that keep the bytes they are sent, over HTTP and gRPC."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc

METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


class Sink:
    """What came, and how to answer: ``status`` gives an HTTP status for a body."""

    def __init__(self, status: Callable[[bytes], int] = lambda body: 200) -> None:
        self.bodies: list[bytes] = []
        self.status = status
        self.lock = threading.Lock()

    def take(self, body: bytes) -> int:
        with self.lock:
            status = self.status(body)
            if status == 200:
                self.bodies.append(body)
        return status


@contextmanager
def http_sink(sink: Sink) -> Iterator[str]:
    """The URL of a server that fills ``sink``."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            status = sink.take(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Taking(grpc.GenericRpcHandler):
    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        return grpc.unary_unary_rpc_method_handler(self._take) if details.method == METHOD else None

    def _take(self, body: bytes, context: grpc.ServicerContext) -> bytes:
        status = self._sink.take(body)
        if status == 413:
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too large")
        if status != 200:
            context.abort(grpc.StatusCode.UNAVAILABLE, "not now")
        return b""


@contextmanager
def grpc_sink(sink: Sink) -> Iterator[str]:
    """The URL of a server that fills ``sink``."""
    options = [("grpc.max_receive_message_length", -1)]
    with ThreadPoolExecutor(4) as pool:
        server = grpc.server(pool, handlers=[_Taking(sink)], options=options)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield f"grpc://127.0.0.1:{port}"
        finally:
            server.stop(0).wait()


SINKS = {"http": http_sink, "grpc": grpc_sink}
