"""A request's body as it comes in: bounded, decompressed, counted among what is in flight."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from memtrace_collector.receiver.inflate import STEP_BYTES, Coding, Inflater
from memtrace_collector.receiver.ingest import Ingest
from memtrace_collector.receiver.refusal import too_large


class Body:
    """A context manager; leaving it gives the room back that the body took.

    Raises:
        RefusedError: too large, malformed compression, or no room for it now.
    """

    def __init__(self, ingest: Ingest, tenant: str, coding: Coding | None) -> None:
        self._ingest = ingest
        self._tenant = tenant
        self._inflater = Inflater(ingest.max_request_bytes, coding) if coding else None
        self._parts: list[bytes] = []
        self._held = 0
        self.received = 0
        """Bytes on the wire."""

    async def add(self, chunk: bytes) -> None:
        self.received += len(chunk)
        if self.received > self._ingest.max_request_bytes:
            raise too_large(self._ingest.max_request_bytes)
        if self._inflater is None:
            self._keep(chunk)
        else:
            await self._keep_all(self._inflater.feed(chunk))

    async def whole(self) -> bytes:
        """The body, once all chunks are added. Asked for once: it is kept by who asked."""
        if self._inflater is not None:
            await self._keep_all(self._inflater.finish())
        parts, self._parts = self._parts, []
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _keep_all(self, parts: Iterator[bytes]) -> None:
        for part in parts:
            self._keep(part)
            if len(part) == STEP_BYTES:
                await asyncio.sleep(0)  # a large body holds up nobody

    def _keep(self, part: bytes) -> None:
        self._ingest.in_flight.take(self._tenant, len(part))
        self._held += len(part)
        self._parts.append(part)

    def __enter__(self) -> Body:
        return self

    def __exit__(self, *exception: object) -> None:
        self._parts.clear()  # a refusal on its way to the sender still refers to this
        self._ingest.in_flight.give(self._tenant, self._held)
