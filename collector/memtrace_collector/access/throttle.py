"""Limits per tenant, so that a busy one leaves room for the others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from memtrace_collector.access.directory import Limits

BURST_SECONDS = 4.0
"""So much of what a second allows may come at once after a pause."""


@dataclass(slots=True)
class _Use:
    in_flight: int = 0
    allowance: float = 0.0
    """Bytes; below 0 after a request larger than what was left."""
    at: float = 0.0


class Throttle:
    """Counts what tenants take up. Only tenants that were let in are counted, so that what is
    kept is bounded by the file that names them.

    A request is let in while the tenant has anything left, and may leave a debt: its size is
    known only when it has been read.

    Args:
        limits_of: the limits in force for a tenant.
        clock: seconds, monotonic.
    """

    def __init__(
        self, limits_of: Callable[[str], Limits], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits_of = limits_of
        self._clock = clock
        self._lock = threading.Lock()
        self._uses: dict[str, _Use] = {}

    def refusal(self, tenant: str) -> str:
        """Why a request of this tenant cannot be taken now; empty: it can."""
        limits = self._limits_of(tenant)
        with self._lock:
            use = self._use(tenant, limits)
            if 0 < limits.requests_in_flight <= use.in_flight:
                return f"more than {limits.requests_in_flight} requests of yours are in flight"
            if limits.bytes_per_second and use.allowance <= 0:
                return f"you sent more than {limits.bytes_per_second} bytes per second"
        return ""

    def enter(self, tenant: str, size: int) -> None:
        """A request of so many bytes is being taken; ends with :meth:`leave`."""
        limits = self._limits_of(tenant)
        with self._lock:
            use = self._use(tenant, limits)
            use.in_flight += 1
            if limits.bytes_per_second:
                use.allowance -= size

    def leave(self, tenant: str) -> None:
        with self._lock:
            self._uses[tenant].in_flight -= 1

    def _use(self, tenant: str, limits: Limits) -> _Use:
        now, most = self._clock(), limits.bytes_per_second * BURST_SECONDS
        use = self._uses.get(tenant)
        if use is None:
            use = self._uses[tenant] = _Use(allowance=most, at=now)
        use.allowance = min(most, use.allowance + (now - use.at) * limits.bytes_per_second)
        use.at = now
        return use
