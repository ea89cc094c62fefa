"""How long to wait before trying again. Pure."""

from __future__ import annotations

import zlib

_LARGEST_EXPONENT = 60


def delay_seconds(attempt: int, *, first: float, longest: float, key: str = "") -> float:
    """Exponential back-off with up to 25 % of jitter, which derives from ``key`` and attempt.

    Args:
        attempt: failed attempts so far, from 1.
        first, longest: bounds of the delay before jitter, in seconds.
        key: spreads things that failed together.
    """
    exponent = min(max(attempt - 1, 0), _LARGEST_EXPONENT)
    delay = min(longest, first * 2.0**exponent)
    jitter = zlib.crc32(f"{key}/{attempt}".encode()) / 2**32
    return delay * (1 - 0.25 * jitter)
