"""Ids of what is written back: they derive from case and revision. Pure.

A second delivery of a row is the same bytes; a superseding verdict has new ids (DESIGN section
3.6).
"""

from __future__ import annotations

import hashlib


def case_trace_id(case_id: str, revision: int) -> str:
    """The trace of one case and revision, 32 hex digits."""
    return _digest("case", case_id, str(revision))[:32]


def root_span_id(case_id: str, revision: int) -> str:
    """The root span of a case trace, 16 hex digits."""
    return _digest("root", case_id, str(revision))[:16]


def hop_span_id(case_id: str, revision: int, number: int) -> str:
    """A hop of a case trace, counted from 0, 16 hex digits."""
    return _digest("hop", case_id, str(revision), str(number))[:16]


def in_trace_span_id(case_id: str, revision: int) -> str:
    """The verdict's span inside the failing trace, 16 hex digits."""
    return _digest("in-trace", case_id, str(revision))[:16]


def marker_span_id(name: str) -> str:
    """The marker of a decisive operation and type, 16 hex digits."""
    return _digest("cause", name)[:16]


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
