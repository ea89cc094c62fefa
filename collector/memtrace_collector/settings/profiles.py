"""What is known of destinations: how each takes a verdict span in an old trace, and how long
texts may be. Pure.

A span is late when its trace ended over an hour ago. Stamped at its target it stands neatly in
the trace, where the destination still takes and finds it there; stamped now it is always taken,
and makes the trace look as long as the time between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Late = Literal["at_target", "now", "not_written"]
_HOUR_NS = 3_600_000_000_000
_DAY_NS = 24 * _HOUR_NS
LATE_NS = _HOUR_NS
"""Up to this age of its target every span is stamped there."""
_ON_ITS_WAY_NS = _HOUR_NS
"""How long before a limit a span is no longer stamped at its target: it is yet to be delivered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """How one kind of destination takes spans."""

    late: Late = "now"
    refused_after_ns: int | None = None
    """Older spans are rejected, dropped or no longer found by the id of their trace."""
    marker: bool = False
    """Whether a sign is put into the trace of the decisive operation, however old."""
    query: Literal["jaeger", "tempo", ""] = ""
    """By which API a trace can be read back; empty: none that is known here."""
    longest_text: int | None = None
    """Bytes of a text in a span that it takes: one longer text, and it refuses the whole request,
    as often as that comes. None: any."""

    def stamp(self, target_ns: int, now_ns: int) -> int | None:
        """When to stamp what belongs to a moment; None: it is not written."""
        age = now_ns - target_ns
        if age <= LATE_NS:
            return target_ns
        if self.late == "not_written":
            return None
        return target_ns if self.late == "at_target" and self.takes(age) else now_ns

    def takes(self, age_ns: int) -> bool:
        """Whether a span that old is taken, and found where it belongs."""
        limit = self.refused_after_ns
        return limit is None or age_ns < limit - _ON_ITS_WAY_NS


PROFILES: Mapping[str, Profile] = {
    # memory, Cassandra: found by trace id whatever the age; kept from when it is written
    "jaeger": Profile(late="at_target", marker=True, query="jaeger"),
    # service, name and value of an attribute are one key of at most 65,000 bytes
    "jaeger-badger": Profile(late="at_target", marker=True, query="jaeger", longest_text=60_000),
    # max_span_age: indices of older days are not searched for a trace id
    "jaeger-elasticsearch": Profile(
        late="at_target", refused_after_ns=72 * _HOUR_NS, marker=True, query="jaeger"
    ),
    # taken at any age, and never found by a search: a block covers the time of its arrival
    "tempo": Profile(query="tempo"),
    # ZO_INGEST_ALLOWED_UPTO
    "openobserve": Profile(late="at_target", refused_after_ns=5 * _HOUR_NS),
    "signoz": Profile(late="at_target", refused_after_ns=15 * _DAY_NS),
    # dropped without a word
    "logfire": Profile(late="at_target", refused_after_ns=_DAY_NS),
    "phoenix": Profile(late="at_target"),
    "langfuse": Profile(),
    # old spans of many days in one insert exceed max_partitions_per_insert_block
    "clickhouse": Profile(),
    # whatever stands behind it
    "collector": Profile(),
    "none": Profile(late="not_written"),
}
"""By the name that ``forward.profile`` has."""
