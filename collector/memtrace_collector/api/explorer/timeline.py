"""Events of several kinds on one line of time, counted in columns. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from memtrace_collector.api.questions import Json

COLUMNS = 120


def timeline(lanes: Mapping[str, Sequence[int]], columns: int = COLUMNS) -> Json | None:
    """``lanes``: times in nanoseconds by the name of their kind.

    Returns:
        ``first_ns``, ``last_ns``, ``columns`` (how many), ``lanes``: per name ``[[column, how
        many], ...]`` of the columns that are not empty. None without any event.
    """
    times = [at_ns for lane in lanes.values() for at_ns in lane]
    if not times:
        return None
    first, last = min(times), max(times)
    span = max(1, last - first)
    counted = {
        name: Counter(min(columns - 1, (at_ns - first) * columns // span) for at_ns in lane)
        for name, lane in lanes.items()
    }
    return {
        "first_ns": first,
        "last_ns": last,
        "columns": columns,
        "lanes": {name: sorted(counts.items()) for name, counts in counted.items()},
    }
