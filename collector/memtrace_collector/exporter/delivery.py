"""What a destination made of one request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["delivered", "retry", "refused"]


@dataclass(frozen=True, slots=True)
class Delivery:
    """The result of one attempt.

    ``refused``: sending the same bytes again cannot help (bad request, partial success).
    ``rejected``: spans or log records that a partial success left out, where it says so.
    ``retry_after_s``: the destination's own wish, in seconds.
    ``is_too_large``: refused for its size; parts of it may be taken.
    ``is_not_offered``: refused because it takes nothing of that signal, or not at that address.
    """

    outcome: Outcome
    message: str = ""
    retry_after_s: float | None = None
    rejected: int = 0
    is_too_large: bool = False
    is_not_offered: bool = False


DELIVERED = Delivery("delivered")
