"""What a sender may take of the server: connections, and time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one door. Times in seconds.

    ``connections``: open at once; one more closes the one that has been idle for longest, and is
    refused, retryably, where none is idle.
    ``header_seconds``: from the first byte of a request, or of a connection, to the end of its
    head.
    ``idle_seconds``: between requests; longer than common clients keep a connection, so that it is
    they who close it and never find it closed while they send.
    ``body_seconds``, ``slowest_bytes_per_second``: a body is given ``body_grace_seconds`` and a
    second more for each so many bytes that have come, up to ``body_seconds`` in all.
    ``message_seconds``: for a message of gRPC, whose progress cannot be seen; clients give up
    sooner.
    ``drain_seconds``: how long the rest of a refused body is read and forgotten, so that the
    sender gets to see the refusal.
    """

    connections: int = 1_000
    header_seconds: float = 10.0
    idle_seconds: float = 120.0
    body_seconds: float = 300.0
    body_grace_seconds: float = 10.0
    slowest_bytes_per_second: float = 4_096.0
    message_seconds: float = 60.0
    drain_seconds: float = 5.0

    def body_deadline(self, started: float, received: int) -> float:
        """When a body that began at ``started`` must be complete, given what has come of it."""
        earned = self.body_grace_seconds + received / self.slowest_bytes_per_second
        return started + min(earned, self.body_seconds)
