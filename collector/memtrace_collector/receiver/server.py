"""Starting and stopping both doors, in threads of their own."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import uvicorn

from memtrace_collector.access.tls import uvicorn_options
from memtrace_collector.errors import WrongUseError
from memtrace_collector.receiver import grpc as otlp_grpc
from memtrace_collector.receiver.http import OtlpHttp
from memtrace_collector.receiver.ingest import Ingest
from memtrace_collector.settings.tls import NO_TLS, TlsConfig

LOOPBACK = "127.0.0.1"
GRPC_PORT = 4317
HTTP_PORT = 4318
DRAIN_SECONDS = 2.0
_START_SECONDS = 10.0
_GRPC_THREADS = 16
_BACKLOG = 2048


class ListenError(WrongUseError):
    """A port cannot be listened on; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Listen:
    """Where to listen. Port 0: any free one, reported by the server once it has started."""

    host: str = LOOPBACK
    grpc_port: int = GRPC_PORT
    http_port: int = HTTP_PORT
    tls: TlsConfig = NO_TLS


class ReceiverServer:
    """OTLP over gRPC and HTTP in front of one :class:`Ingest`."""

    def __init__(self, ingest: Ingest, listen: Listen) -> None:
        self._ingest = ingest
        self._listen = listen
        self._grpc: grpc.Server | None = None
        self._http: uvicorn.Server | None = None
        self._http_thread: threading.Thread | None = None
        self.grpc_port = 0
        self.http_port = 0

    def start(self) -> None:
        """Listen on both ports; on return both accept requests.

        Raises:
            ListenError: a port is taken or the host is not ours; nothing is left listening.
        """
        host = self._listen.host
        listening = _listening_socket(host, self._listen.http_port)
        try:
            self._grpc, self.grpc_port = _grpc_server(self._ingest, self._listen)
        except ListenError:
            listening.close()
            raise
        self.http_port = listening.getsockname()[1]
        self._grpc.start()
        self._start_http(listening)

    def stop(self, drain_seconds: float = DRAIN_SECONDS) -> None:
        """Take no new requests, answer those that are under way, then close. Idempotent."""
        if self._http is not None:
            self._http.should_exit = True
        if self._grpc is not None:
            self._grpc.stop(drain_seconds).wait()
            self._grpc = None
        if self._http_thread is not None:
            self._http_thread.join()
            self._http = self._http_thread = None

    def _start_http(self, listening: socket.socket) -> None:
        tls = uvicorn_options(self._listen.tls, needs_certificate=True)
        options: dict[str, Any] = {"http": "httptools", **tls}
        config = uvicorn.Config(
            OtlpHttp(self._ingest),
            loop="asyncio",
            lifespan="off",
            access_log=False,
            log_config=None,
            server_header=False,
            timeout_graceful_shutdown=int(DRAIN_SECONDS),
            **options,
        )
        server = uvicorn.Server(config)
        self._http = server
        self._http_thread = threading.Thread(
            target=lambda: asyncio.run(server.serve(sockets=[listening])),
            name="memtrace-otlp-http",
            daemon=True,
        )
        self._http_thread.start()
        give_up = time.monotonic() + _START_SECONDS
        while not server.started:
            if not self._http_thread.is_alive() or time.monotonic() > give_up:
                self.stop(0)
                raise ListenError("the OTLP/HTTP server did not start")
            time.sleep(0.005)


def _listening_socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise ListenError(f"cannot listen on {host}:{port} for OTLP/HTTP: {error}") from error


def _grpc_server(ingest: Ingest, listen: Listen) -> tuple[grpc.Server, int]:
    host, port = listen.host, listen.grpc_port
    server = grpc.server(
        ThreadPoolExecutor(_GRPC_THREADS, thread_name_prefix="memtrace-otlp-grpc"),
        handlers=otlp_grpc.handlers(ingest),
        options=[
            ("grpc.max_receive_message_length", ingest.max_request_bytes),
            ("grpc.so_reuseport", 0),
        ],
    )
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        if listen.tls.is_on:
            bound = server.add_secure_port(address, _grpc_credentials(listen.tls))
        else:
            bound = server.add_insecure_port(address)
    except RuntimeError as error:
        raise ListenError(f"cannot listen on {address} for OTLP/gRPC: {error}") from error
    return server, bound


def _grpc_credentials(tls: TlsConfig) -> grpc.ServerCredentials:
    """With a client authority, who has no certificate of it does not get through the handshake."""
    return grpc.ssl_server_credentials(
        [(Path(tls.key).read_bytes(), Path(tls.certificate).read_bytes())],
        Path(tls.client_ca).read_bytes() if tls.client_ca else None,
        require_client_auth=bool(tls.client_ca),
    )
