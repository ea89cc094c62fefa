"""Commands that go on until they are told to end."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextlib.contextmanager
def until_signal(stop: threading.Event) -> Iterator[None]:
    """SIGTERM and SIGINT set ``stop`` and do nothing else."""
    previous = {number: signal.signal(number, lambda *_: stop.set()) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
