"""What the destination of verdicts takes."""

from __future__ import annotations

from dataclasses import dataclass

from memtrace_collector.settings.profiles import PROFILES, Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteBack:
    """What a destination takes: its profile, by name, and whether texts may go."""

    profile: str = "jaeger"
    quotes: bool = False

    @property
    def takes(self) -> Profile:
        """How it takes spans."""
        return PROFILES[self.profile]
