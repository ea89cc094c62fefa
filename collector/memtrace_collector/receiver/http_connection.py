"""One HTTP connection with what uvicorn leaves to a proxy: time limits and a bound on headers.

uvicorn's own protocol waits without end for a request's head, keeps headers of any length, and
answers what is not HTTP in plain text.
"""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from memtrace_collector.access.tls import CertificateProtocol
from memtrace_collector.receiver.http import OtlpHttp
from memtrace_collector.receiver.limits import Limits
from memtrace_collector.receiver.refusal import Code, RefusedError

MAX_HEAD_BYTES = 64 << 10
"""Headers, and whatever else is not body: chunk sizes, trailers."""
_LATECOMERS = 64
"""Connections over the limit that are still told to come back later."""
_TICK_SECONDS = 0.5

_Phase = Literal["idle", "head", "body"]
_Watch = Literal["head", "body", "rest", "idle"]


class GuardedConnection(CertificateProtocol):
    """Made by uvicorn, one for each connection; its application is an :class:`OtlpHttp`."""

    def __init__(
        self,
        config: Any,
        server_state: Any,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._door: OtlpHttp = config.app
        self._limits: Limits = config.app.limits
        self._phase: _Phase = "idle"
        self._watched: _Watch | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._idle_since = self.loop.time()
        self._beside_body = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        over = len(self.connections) - self._limits.connections
        if over > 0 and not self._close_an_idle_one():
            self._door.count_closed("connections")
            if over > _LATECOMERS:
                transport.abort()
                return
            self.app = self._door.busy
        self._watch("head", self._limits.header_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        self._watch(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._beside_body += len(data)
        super().data_received(data)
        if self._beside_body > MAX_HEAD_BYTES:
            self._door.count_closed("head")
            self._refuse_head("the headers are too long")
        else:
            self._watch_phase()

    def on_message_begin(self) -> None:
        self._phase = "head"
        self._beside_body = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._phase = "body"
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._beside_body -= 2 * len(body)  # chunked, a body may take as much again in sizes
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._phase = "idle"
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._idle_since = self.loop.time()
        self._watch_phase()

    def send_400_response(self, msg: str) -> None:
        """What is not HTTP is refused like everything else: with a status message."""
        refusal = RefusedError(Code.INVALID_ARGUMENT, msg)
        body = refusal.body("json")
        head = (
            "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _refuse_head(self, reason: str) -> None:
        if self._phase == "head" and not self._is_answering:
            self.send_400_response(reason)
        else:
            self.transport.abort()

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def _is_idle(self) -> bool:
        return self._phase == "idle" and not self._is_answering

    def _close_an_idle_one(self) -> bool:
        """Make room by closing the connection that has been idle for longest."""
        idle = [
            other
            for other in self.connections
            if isinstance(other, GuardedConnection) and other is not self and other._is_idle
        ]
        if not idle:
            return False
        longest = min(idle, key=lambda other: other._idle_since)
        longest.transport.close()
        longest.connections.discard(longest)
        return True

    def _watch_phase(self) -> None:
        limits = self._limits
        if self._phase == "head":
            self._watch("head", limits.header_seconds)
        elif self._phase == "body" and self._is_answering:
            self._watch("body", _TICK_SECONDS)
        elif self._is_answering:
            self._watch(None)
        elif self._phase == "idle":
            # empty lines begin no request: they put off neither deadline
            if self._watched != "head":
                self._watch("idle", limits.idle_seconds)
        else:
            self._watch("rest", limits.drain_seconds)

    def _watch(self, what: _Watch | None, seconds: float = 0.0) -> None:
        """Start a deadline; one that runs for the same is not put off."""
        if what == self._watched:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._watched = what
        if what is not None:
            self._timer = self.loop.call_later(seconds, self._expire)

    def _expire(self) -> None:
        if self._watched == "body":
            self.cycle.message_event.set()  # the application looks at the clock
            self._timer = self.loop.call_later(_TICK_SECONDS, self._expire)
            return
        if self._watched == "head":
            self._door.count_closed("slow")
        self.transport.close()
