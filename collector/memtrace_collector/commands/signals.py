"""Commands that go on until they are told to end."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterable, Iterator

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextlib.contextmanager
def until_signal(stop: threading.Event) -> Iterator[None]:
    """SIGTERM and SIGINT set ``stop`` and do nothing else."""
    with _on(_SIGNALS, stop.set):
        yield


@contextlib.contextmanager
def on_hangup(reload: Callable[[], None]) -> Iterator[None]:
    """SIGHUP calls ``reload`` and does nothing else."""
    with _on((signal.SIGHUP,), reload):
        yield


@contextlib.contextmanager
def _on(numbers: Iterable[signal.Signals], do: Callable[[], None]) -> Iterator[None]:
    previous = {number: signal.signal(number, lambda *_: do()) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
