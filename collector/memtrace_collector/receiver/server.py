"""Starting and stopping both doors, on one event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import concurrent.futures
import importlib
import importlib.util
import socket
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import uvicorn

from memtrace_collector.access.tls import uvicorn_options
from memtrace_collector.errors import WrongUseError
from memtrace_collector.receiver import grpc as otlp_grpc
from memtrace_collector.receiver.exports import Exports
from memtrace_collector.receiver.http import OtlpHttp
from memtrace_collector.receiver.http_connection import GuardedConnection
from memtrace_collector.receiver.ingest import Ingest
from memtrace_collector.receiver.limits import Limits
from memtrace_collector.settings.tls import NO_TLS, TlsConfig

LOOPBACK = "127.0.0.1"
GRPC_PORT = 4317
HTTP_PORT = 4318
DRAIN_SECONDS = 2.0
_START_SECONDS = 10.0
_BACKLOG = 2048
_HAS_UVLOOP = importlib.util.find_spec("uvloop") is not None
_LOOPS = importlib.import_module("uvloop" if _HAS_UVLOOP else "asyncio")
"""uvloop is optional; with it a request costs less."""


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

    def __init__(self, ingest: Ingest, listen: Listen, limits: Limits | None = None) -> None:
        self._ingest = ingest
        self._listen = listen
        self._limits = limits or Limits()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._drain_seconds = DRAIN_SECONDS
        self.grpc_port = 0
        self.http_port = 0

    def start(self) -> None:
        """Listen on both ports; on return both accept requests.

        Raises:
            ListenError: a port is taken or the host is not ours; nothing is left listening.
        """
        listening = _listening_socket(self._listen.host, self._listen.http_port)
        self.http_port = listening.getsockname()[1]
        started: concurrent.futures.Future[int] = concurrent.futures.Future()
        self._thread = threading.Thread(
            target=self._run, args=(listening, started), name="memtrace-otlp", daemon=True
        )
        self._thread.start()
        try:
            self.grpc_port = started.result(_START_SECONDS)
        except concurrent.futures.TimeoutError:
            raise ListenError("the OTLP servers did not start") from None
        except ListenError:
            self._thread.join()
            raise

    def stop(self, drain_seconds: float = DRAIN_SECONDS) -> None:
        """Take no new requests, answer those that are under way, then close. Idempotent."""
        if self._thread is None or self._loop is None or self._stopping is None:
            return
        self._drain_seconds = drain_seconds
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()
        self._thread = None

    def _run(self, listening: socket.socket, started: concurrent.futures.Future[int]) -> None:
        loop: asyncio.AbstractEventLoop = _LOOPS.new_event_loop()
        try:
            loop.run_until_complete(self._serve(listening, started))
        except Exception as error:
            if started.done():
                raise
            started.set_exception(error)
        finally:
            listening.close()
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()

    async def _serve(
        self, listening: socket.socket, started: concurrent.futures.Future[int]
    ) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        exports = Exports(self._ingest)
        grpc_server, grpc_port = self._grpc_server(exports)
        await grpc_server.start()
        http_server = self._http_server(exports)
        serving = asyncio.create_task(http_server.serve(sockets=[listening]))
        while not http_server.started and not serving.done():
            await asyncio.sleep(0.002)
        if serving.done():
            await grpc_server.stop(None)
            raise ListenError("the OTLP/HTTP server did not start") from serving.exception()
        started.set_result(grpc_port)
        await self._stopping.wait()
        http_server.should_exit = True
        await asyncio.gather(serving, grpc_server.stop(self._drain_seconds))

    def _http_server(self, exports: Exports) -> uvicorn.Server:
        options: dict[str, Any] = {
            **uvicorn_options(self._listen.tls, needs_certificate=True),
            "http": GuardedConnection,
        }
        config = uvicorn.Config(
            OtlpHttp(exports, self._limits),
            interface="asgi3",
            lifespan="off",
            proxy_headers=False,
            access_log=False,
            log_config=None,
            server_header=False,
            timeout_keep_alive=round(self._limits.idle_seconds),
            timeout_graceful_shutdown=int(DRAIN_SECONDS),
            **options,
        )
        return uvicorn.Server(config)

    def _grpc_server(self, exports: Exports) -> tuple[grpc.aio.Server, int]:
        host, port, tls = self._listen.host, self._listen.grpc_port, self._listen.tls
        server = grpc.aio.server(
            handlers=otlp_grpc.handlers(exports, self._limits),
            options=otlp_grpc.options(self._ingest.max_request_bytes, self._limits),
        )
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            if tls.is_on:
                bound = server.add_secure_port(address, _grpc_credentials(tls))
            else:
                bound = server.add_insecure_port(address)
        except RuntimeError as error:
            raise ListenError(f"cannot listen on {address} for OTLP/gRPC: {error}") from error
        return server, bound


def _listening_socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise ListenError(f"cannot listen on {host}:{port} for OTLP/HTTP: {error}") from error


def _grpc_credentials(tls: TlsConfig) -> grpc.ServerCredentials:
    """With a client authority, who has no certificate of it does not get through the handshake."""
    return grpc.ssl_server_credentials(
        [(Path(tls.key).read_bytes(), Path(tls.certificate).read_bytes())],
        Path(tls.client_ca).read_bytes() if tls.client_ca else None,
        require_client_auth=bool(tls.client_ca),
    )
