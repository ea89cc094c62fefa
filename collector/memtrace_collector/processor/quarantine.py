"""Records that could not be read or applied: noted, counted, left where they are.

The note is one JSON line per record beside the segments; the bytes stay in the log, so that a
later release can project them again.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path

from memtrace_collector.log.position import LogPosition
from memtrace_collector.log.reader import Damage
from memtrace_collector.telemetry.metrics import NULL_METRICS, Metrics

logger = logging.getLogger(__name__)

BAD_DATA = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError)
"""Raised over bad data whatever the state of the disk; anything else is the store's fault."""

FILE_NAME = "quarantine.jsonl"
MAX_NOTES = 10_000
_MAX_REASON_CHARS = 500


class Quarantine:
    """Notes and counts each position once, over restarts too; beyond ``MAX_NOTES`` only counts."""

    def __init__(self, folder: Path, metrics: Metrics = NULL_METRICS) -> None:
        self._path = folder / FILE_NAME
        self._metrics = metrics
        self._noted = set(_positions(self._path))

    def poison(self, position: LogPosition, error: BaseException) -> None:
        """A record that is intact in the log, and cannot be projected."""
        self._note(position, "poison", f"{type(error).__name__}: {error}")

    def damage(self, damage: Damage) -> None:
        """A stretch of the log that is not readable."""
        self._note(damage.position, "damaged", f"{damage.size} damaged bytes ({damage.reason})")

    def _note(self, position: LogPosition, kind: str, reason: str) -> None:
        if position in self._noted:
            return
        logger.error("log record at %s is quarantined: %s", tuple(position), reason)
        self._metrics.add("memtrace.projection.quarantined", 1, kind=kind)
        if len(self._noted) >= MAX_NOTES:
            return
        self._noted.add(position)
        note = {**position._asdict(), "reason": reason[:_MAX_REASON_CHARS]}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(note) + "\n")


def _positions(path: Path) -> list[LogPosition]:
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return [position for position in map(_position, lines) if position is not None]


def _position(line: str) -> LogPosition | None:
    """None for a line cut short by a crash: its record is met, and noted, again."""
    try:
        note = json.loads(line)
        return LogPosition(int(note["segment"]), int(note["offset"]))
    except (ValueError, KeyError, TypeError):
        return None
