"""A server that takes what it is sent, or refuses it, for tests of what sends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Sink(ThreadingHTTPServer):
    """Takes what it is sent, or answers with ``status`` to everything."""

    daemon_threads = True

    def __init__(self, status: int = 200, location: str = "", port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Answering)
        self.status = status
        self.location = location
        self.bodies: list[bytes] = []
        self.paths: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Answering(BaseHTTPRequestHandler):
    server: Sink

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.bodies.append(body)
        self.server.paths.append(self.path)
        self.send_response(self.server.status)
        if self.server.location:
            self.send_header("location", self.server.location + self.path)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.do_POST()

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@contextmanager
def sink(status: int = 200, location: str = "", port: int = 0) -> Iterator[Sink]:
    server = Sink(status, location, port)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
