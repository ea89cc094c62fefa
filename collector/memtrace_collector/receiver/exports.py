"""From a complete body to its acknowledgement, on the event loop that serves both doors."""

from __future__ import annotations

import asyncio
import functools
from collections import deque
from concurrent.futures import Future

from memtrace_collector.log.errors import LogError
from memtrace_collector.log.format import Encoding, Signal
from memtrace_collector.log.position import LogPosition
from memtrace_collector.receiver.ingest import COMMIT_SECONDS, Ingest, Submission, unavailable

CHECKED_HERE_BYTES = 128 << 10
"""Checking a larger body would hold up the other connections: it is done in a thread."""
_CHECKED_AT_ONCE: dict[Encoding, int] = {"protobuf": 2, "json": 1}
"""Of the larger ones: decoded, JSON takes many times its size."""


class Exports:
    """Made on the loop that it serves."""

    def __init__(self, ingest: Ingest) -> None:
        self.ingest = ingest
        self._commits = Commits(asyncio.get_running_loop())
        self._checks = {
            encoding: asyncio.Semaphore(at_once) for encoding, at_once in _CHECKED_AT_ONCE.items()
        }

    async def acknowledged(
        self, tenant: str, signal: Signal, encoding: Encoding, body: bytes
    ) -> bytes:
        """Keep a request; its response once it is on disk.

        Raises:
            RefusedError: malformed, or not now.
        """
        submission = await self._submit(tenant, signal, encoding, body)
        if submission.durable is not None:
            await self._commits.wait(submission.durable)
        return self.ingest.acknowledge(signal, encoding, submission.checked)

    async def _submit(
        self, tenant: str, signal: Signal, encoding: Encoding, body: bytes
    ) -> Submission:
        submit = functools.partial(self.ingest.submit, tenant, signal, encoding, body)
        if len(body) <= CHECKED_HERE_BYTES:
            return submit()
        async with self._checks[encoding]:
            return await asyncio.to_thread(submit)


class Commits:
    """Brings the log's answers to the event loop, with one wake-up for a whole commit."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._done: deque[tuple[Future[LogPosition], asyncio.Future[None]]] = deque()
        self._is_woken = False

    async def wait(self, durable: Future[LogPosition]) -> None:
        """Until the record is on disk.

        Raises:
            RefusedError: the disk refused, or takes too long; then the record is taken back where
                its commit has not begun.
        """
        arrived: asyncio.Future[None] = self._loop.create_future()
        too_late = self._loop.call_later(COMMIT_SECONDS, _give_up, arrived)
        durable.add_done_callback(lambda done: self._arrive(done, arrived))
        try:
            await arrived
        except (LogError, asyncio.TimeoutError) as error:
            durable.cancel()
            raise unavailable(error) from error
        finally:
            too_late.cancel()

    def _arrive(self, done: Future[LogPosition], arrived: asyncio.Future[None]) -> None:
        """In the log's thread."""
        self._done.append((done, arrived))
        if not self._is_woken and not self._loop.is_closed():
            self._is_woken = True
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._is_woken = False  # first: what arrives from here on wakes again
        while self._done:
            done, arrived = self._done.popleft()
            if arrived.done():
                continue
            error = None if done.cancelled() else done.exception()
            if error is None:
                arrived.set_result(None)
            else:
                arrived.set_exception(error)


def _give_up(arrived: asyncio.Future[None]) -> None:
    if not arrived.done():
        arrived.set_exception(asyncio.TimeoutError())
