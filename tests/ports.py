"""Ports for servers that the tests start."""

from __future__ import annotations

import random
import socket

_RANGE = range(20_000, 32_000)
"""Below those that the system gives to whoever connects: they stay free until they are used."""
_given: set[int] = set()
_chance = random.SystemRandom()


def free_port() -> int:
    """One that nobody listens on, and that was not given to anybody here before."""
    while True:
        port = _chance.choice(_RANGE)
        if port not in _given and _is_free(port):
            _given.add(port)
            return port


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
