"""Several requests under way at once, in threads that do not keep the process alive."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

_Work = TypeVar("_Work")
_Result = TypeVar("_Result")


class Senders(Generic[_Work, _Result]):
    """At most ``count`` calls of ``send`` at once.

    The threads are daemons: one that waits for a destination does not hold up the end of the
    process. What it had under way is in the log.
    """

    def __init__(self, send: Callable[[_Work], _Result], count: int, name: str) -> None:
        self._send = send
        self._count = count
        self._name = name
        self._queue: queue.SimpleQueue[tuple[_Work, Future[_Result]] | None] = queue.SimpleQueue()
        self._threads = 0
        self.under_way: set[Future[_Result]] = set()

    @property
    def is_full(self) -> bool:
        return len(self.under_way) >= self._count

    def submit(self, work: _Work) -> None:
        """Start sending; ask :attr:`is_full` before. One thread submits."""
        future: Future[_Result] = Future()
        self.under_way.add(future)
        if self._threads < min(self._count, len(self.under_way)):
            self._threads += 1
            name = f"{self._name}-{self._threads}"
            threading.Thread(target=self._run, name=name, daemon=True).start()
        self._queue.put((work, future))

    def close(self) -> None:
        """Let the threads end, each after what it has under way."""
        for _ in range(self._threads):
            self._queue.put(None)
        self._threads = 0

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            work, future = item
            try:
                future.set_result(self._send(work))
            except Exception as error:
                future.set_exception(error)
            del item, work, future
