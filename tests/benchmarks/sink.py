"""A destination in a process of its own that counts the spans it is sent.

python -m tests.benchmarks.sink      # prints its port, then answers GET with the count
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from memtrace_collector.otlp.halving import count
from tests.memtrace_collector.running import ROOT, environment


class RunningSink(NamedTuple):
    """``url``: where requests go."""

    url: str

    def spans(self) -> int:
        """How many came so far."""
        with urllib.request.urlopen(self.url, timeout=20) as response:
            return int(response.read())


@contextlib.contextmanager
def running_sink() -> Iterator[RunningSink]:
    """A sink until the end of the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", __name__],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=environment(),
    )
    assert process.stdout is not None
    try:
        yield RunningSink(f"http://127.0.0.1:{process.stdout.readline().strip()}")
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def closed_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class _Counting(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    spans = 0
    lock = threading.Lock()

    def do_POST(self) -> None:
        spans = count(self.rfile.read(int(self.headers["content-length"])))
        with self.lock:
            _Counting.spans += spans
        self._answer(b"")

    def do_GET(self) -> None:
        self._answer(str(_Counting.spans).encode())

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Counting)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
