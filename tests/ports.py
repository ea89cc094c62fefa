"""Ports for servers that the tests start."""

from __future__ import annotations

import socket

_given: set[int] = set()


def free_port() -> int:
    """One that nobody listens on, and that was not given to anybody here before."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = int(taken.getsockname()[1])
        if port not in _given:
            _given.add(port)
            return port
