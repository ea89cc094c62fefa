"""Orders to erase, where several processors share the facts: each owner of a log rewrites its own.

An order names the logs that were known when it was given. Who owns one of them carries the order
out in its log, then confirms, with what it found; once all have, the order no longer says what it
was about. What comes in while one is open may go with it. An owner whose log tells of more that
goes whole than the order says gives an order that follows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

FOLLOWING = "+"
"""Between the id of an order and the rest of the id of one that follows it."""


class Erasure(NamedTuple):
    """An order that is not carried out in every log yet."""

    order_id: str
    tenant: str
    graph_id: str | None
    """None: everything of the tenant."""
    given_ns: int
    targets: tuple[str, ...] = ()
    """Traces, responses and conversations in which only this graph has operations: the spans of
    one trace may stand in several logs."""


@runtime_checkable
class ErasureOrders(Protocol):
    """The part of a fact store that several logs feed, whichever tenant it is bound to."""

    def order_erasure(self, erasure: Erasure) -> None:
        """Have every log that feeds this store rewritten by its owner; giving an order again
        changes nothing."""
        ...

    def open_erasures(self) -> list[Erasure]:
        """The orders that this store's log is still to be rewritten for, the oldest first."""
        ...

    def confirm_erasure(self, order_id: str, report: Mapping[str, object]) -> None:
        """This store's log holds nothing any more of what the order is about.

        Args:
            report: what its owner found, as JSON; it names nothing that was erased.
        """
        ...

    def leave_out(self, order_id: str, log_id: str) -> None:
        """The log exists no more: neither the order nor one that follows it waits for it."""
        ...

    def erasure_waits_for(self, order_id: str) -> list[str]:
        """The ids of the logs whose owners have not confirmed the order, or one that follows it;
        empty: it is done."""
        ...

    def erasure_reports(self, order_id: str) -> list[tuple[str, dict[str, Any]]]:
        """What the owners reported that have confirmed, also of orders that follow, with the ids
        of their logs."""
        ...
