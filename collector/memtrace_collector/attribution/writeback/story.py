"""A path in words: the whole story of a case in one attribute of its root. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from memtrace_collector.attribution.writeback.sizes import fits_in_list

_EXPENDABLE = ("kept", "unknown", "changed", "lost")
"""Outcomes in the order in which hops are left out where there is no room for all."""


def story(path: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line per hop, without content, such as ``2. 2026-01-01 09:30 extraction lost at
    memtrace.extract of writer (decisive)``.

    Where all are too long for an attribute, the less telling are left out; decisive hops and the
    answer stay, and the numbers show the gaps.
    """
    lines = {number: _line(number, hop) for number, hop in enumerate(path, 1)}
    spare = [
        (_EXPENDABLE.index(hop["outcome"]), number)
        for number, hop in enumerate(path, 1)
        if not hop["decisive"] and hop["kind"] != "answer"
    ]
    for _, number in sorted(spare):
        if fits_in_list(lines.values()):
            break
        del lines[number]
    return list(lines.values())


def _line(number: int, hop: Mapping[str, Any]) -> str:
    when = datetime.fromtimestamp(hop["time_ns"] // 1_000_000_000, tz=timezone.utc)
    of_service = f" of {hop['service']}" if hop["service"] else ""
    sign = " (decisive)" if hop["decisive"] else ""
    what = f"{hop['kind']} {hop['outcome']} at {hop['operation']}{of_service}{sign}"
    return f"{number}. {when:%Y-%m-%d %H:%M} {what}"
