"""What the destination of verdicts takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteBack:
    """What a destination takes: its profile (jaeger, tempo, none), and whether texts may go."""

    profile: str = "jaeger"
    quotes: bool = False
