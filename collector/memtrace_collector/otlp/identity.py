"""Whether a span has valid ids: 16 and 8 bytes, not all zero, and a parent of 8 bytes or none."""

from __future__ import annotations

import re
from typing import Any

from memtrace_collector.otlp.slices import ids_view

TRACE_ID_BYTES, SPAN_ID_BYTES = 16, 8
_ZERO_TRACE_ID, _ZERO_SPAN_ID = bytes(TRACE_ID_BYTES), bytes(SPAN_ID_BYTES)
_USUAL = re.compile(
    rb"\x0a\x10(?!\x00{16}).{16}\x12\x08(?!\x00{8}).{8}(?:\x22\x08.{8})?\x2a", re.DOTALL
).match
"""How encoders begin a span: trace id, span id, parent, name."""


def has_valid_ids(span: bytes) -> bool:
    """Has the span in these bytes valid ids?

    Raises:
        DecodeError: they are no span.
    """
    return _USUAL(span) is not None or are_valid_ids(ids_view(span))


def are_valid_ids(span: Any) -> bool:
    """Has the decoded span valid ids?"""
    trace_id, span_id = span.trace_id, span.span_id
    return (
        len(trace_id) == TRACE_ID_BYTES
        and len(span_id) == SPAN_ID_BYTES
        and trace_id != _ZERO_TRACE_ID
        and span_id != _ZERO_SPAN_ID
        and len(span.parent_span_id) in (0, SPAN_ID_BYTES)
    )
