"""An application on a port of this machine; uvicorn."""

from __future__ import annotations

import socket
import threading
from typing import Literal

import uvicorn
from starlette.types import ASGIApp

from memtrace_collector import errors
from memtrace_collector.access.tls import uvicorn_options
from memtrace_collector.settings.tls import NO_TLS, TlsConfig

STOP_SECONDS = 2


class ApiServer:
    """The application on a port, in a thread of its own."""

    def __init__(
        self,
        app: ASGIApp,
        host: str,
        port: int,
        *,
        lifespan: Literal["on", "off"] = "off",
        option: str = "--api-port",
        tls: TlsConfig = NO_TLS,
    ) -> None:
        """Bind (so that the address is known before anything starts).

        Args:
            app: what is served.
            host: name or address to listen on.
            port: 0 takes a free one.
            lifespan: whether the application has something to set up and take down.
            option: with which option another address is chosen, for the error.
            tls: a client shows a certificate or a token.

        Raises:
            UnreachableError: the address is taken or not ours.
        """
        self._socket = _bind(host, port, option)
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            lifespan=lifespan,
            timeout_graceful_shutdown=STOP_SECONDS,
            **uvicorn_options(tls, needs_certificate=False),
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="memtrace-api", daemon=True)

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._socket.getsockname()[:2]
        return str(host), int(port)

    def start(self) -> None:
        self._socket.listen(128)
        self._thread.start()

    def stop(self) -> None:
        """Finish what is being answered (at most ``STOP_SECONDS``), then close."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(2 * STOP_SECONDS)
        self._socket.close()

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])


def _bind(host: str, port: int, option: str) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise errors.UnreachableError(
            f"cannot listen on {host}:{port}: {error.strerror or error}; choose another {option}"
        ) from None
