"""What the attributes of our metrics may say: closed sets, and names that senders choose.

The sets repeat what other packages define, which this one must not know; a test compares them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

OTHER = "other"
"""Whatever is not among the values of an attribute."""
UNKNOWN = "unknown"
"""A system that its sender does not name."""


@dataclass(frozen=True, slots=True)
class Names:
    """Values that senders choose: the first ``limit`` that look like the name of a program."""

    limit: int
    pattern: re.Pattern[str] = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+/ -]{0,63}")
    """Without ``:`` and ``@``: ids of graphs and of people have them, names of programs do not."""


Values: TypeAlias = "frozenset[str] | Names"


def one_of(values: str) -> frozenset[str]:
    """A closed set: its values, separated by white space."""
    return frozenset(values.split())


MAX_SYSTEMS = 30
SYSTEM = Names(MAX_SYSTEMS)
STEP = one_of(
    "add ingest extract decide create update delete consolidate rewrite retrieve rerank assemble"
    " answer judge flag farewell"
)
SIGNAL = one_of("traces logs")
STAGE = one_of("ingest extraction update deletion retrieval assembly response not_memory unknown")
TYPE = one_of(
    "never_told lost_at_ingest wrong_graph omission distortion invented not_stored not_updated"
    " overwritten merged_wrong compacted_away wrongly_deleted not_deleted not_searched wrong_scope"
    " bad_query not_retrieved ranked_out stale_retrieved cut_from_context garbled_in_context"
    " wrong_abstention distracted wrong_reasoning ignored_context hallucinated bad_reference"
    " bad_judge unrelated insufficient_evidence"
)
METHOD = one_of("rules model agent human")
MISSING = one_of("gap sampled cut no_content unseen_writer clock retention")
INVARIANT = one_of("stale zombie foreign lost_write flapping empty_retrieval")
DROPPED = one_of("threshold limit rerank dedup expired budget filter other")
LINEAGE = one_of("complete inexact ambiguous incomplete")
DELIVERY = one_of("delivered retry refused")
REPLAY = one_of(
    "confirmed refuted reproduced not_reproduced not_deterministic inconclusive partly"
    " not_replayable"
)
CODE = one_of(
    "INVALID_ARGUMENT NOT_FOUND RESOURCE_EXHAUSTED UNIMPLEMENTED UNAVAILABLE UNAUTHENTICATED"
)
STOPPED = frozenset(("case budget", "run budget", "time", "unreachable"))
