"""When the interpreter looks for cycles, in processes that live long."""

from __future__ import annotations

import gc

_THRESHOLDS = (20_000, 20, 20)
"""Of the default's 700, one walk back through a large graph reaches hundreds: each looks through
all that the walk has found so far, which was a third of its time."""


def collect_rarely() -> None:
    """Called once, when everything was loaded: what is there by now is never looked through
    again. Operations and what leads from one to the next hold no cycles."""
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
