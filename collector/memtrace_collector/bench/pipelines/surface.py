"""How one case's program is set up: what varies between users of a library, drawn by the seed.

The same case has the same surface in its clean and in its planted run.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace

from memtrace_collector.bench.planned import PlannedCase


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """One draw. ``k``: how many records a search delivers at least."""

    raw: bool = False
    """Records are the words as they were said, not facts rewritten from them."""
    decides: bool = False
    """A decision stands between the extraction and the write."""
    declares_answer: bool = False
    """The program records its answer itself; else the instrumented client's call is the answer."""
    two_extractions: bool = False
    """An episode is told first, and the facts are extracted of it."""
    staged_search: bool = False
    """Separate searches are fused and reranked; else one index does it all."""
    second_round: bool = False
    """The search is repeated with another query."""
    rewrites: bool = False
    """The user's question is rewritten before the search."""
    segmented: bool = False
    """Messages are cut into segments as they enter."""
    expires: bool = False
    """Records have a lifetime."""
    consolidates: bool = False
    """Old records are summarised into one."""
    background: bool = False
    """A manager behind the agent writes its memory, not the model's own tool calls."""
    dated: bool = True
    """Records and prompts say when what they hold was said."""
    blind_puts: bool = False
    """A record's key comes from its topic, so that a write cannot know what it replaces."""
    k: int = 5


_SHARES = {
    "raw": 0.35,
    "decides": 0.6,
    "declares_answer": 0.6,
    "two_extractions": 0.3,
    "staged_search": 0.5,
    "second_round": 0.3,
    "rewrites": 0.3,
    "segmented": 0.3,
    "expires": 0.3,
    "consolidates": 0.3,
    "background": 0.4,
    "blind_puts": 0.3,
}


def surface(case: PlannedCase, needs: Mapping[str, Mapping[str, bool]]) -> Surface:
    """The surface of ``case``: drawn, but for what its faults need to happen at all.

    Args:
        case: seeds the draw by its question.
        needs: kind of fault -> fields of the surface that it needs, and their values.
    """
    chance = random.Random(f"surface {case.dialogue} {case.question.id}")  # noqa: S311 - repeatable on purpose, no secret
    drawn = {name: chance.random() < share for name, share in _SHARES.items()}
    drawn["segmented"] = drawn["segmented"] and not drawn["raw"]
    for planting in case.plantings:
        drawn.update(needs.get(planting.kind, {}))
    return replace(Surface(**drawn), k=chance.randint(4, 7))
