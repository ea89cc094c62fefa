"""Settings of how long things are kept, and of the room that is left on the disk."""

from __future__ import annotations

from dataclasses import dataclass

from memtrace_collector.settings.checks import check


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionConfig:
    """How long received requests and captured content are kept. 0: for ever."""

    log_days: float = 0.0
    """Received requests, once they are projected and forwarded."""
    log_bytes: int = 0
    """Received requests at most, even where the oldest are not forwarded yet."""
    values_days: float = 0.0
    """Captured content. What is known of the operations stays."""
    disk_reserve_bytes: int = -1
    """Left free on the disk: requests are refused before. -1: 1 GiB, or 5 % of a smaller disk."""

    def validate(self) -> None:
        for name in ("log_days", "values_days"):
            check(f"retention.{name}", 0 <= getattr(self, name) <= 36_525, "0 to 36525 days")
        check("retention.log_bytes", self.log_bytes >= 0, "0 or more")
        check("retention.disk_reserve_bytes", self.disk_reserve_bytes >= -1, "-1, 0 or more")

    @property
    def reserve(self) -> int | None:
        """``disk_reserve_bytes``; None: the usual one."""
        return None if self.disk_reserve_bytes < 0 else self.disk_reserve_bytes
