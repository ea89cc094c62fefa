"""When the interpreter looks for cycles, in processes that live long."""

from __future__ import annotations

import gc

_THRESHOLDS = (20_000, 20, 20)
"""By default 700 new objects are enough. A walk or a batch keeps tens of thousands, and each look
goes through them again: that was a third of a walk and an eighth of projecting."""


def collect_rarely() -> None:
    """Look for cycles less often, and never again through what is there now: called once, when
    everything is loaded. Operations hold no cycles."""
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
