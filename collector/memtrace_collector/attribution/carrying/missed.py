"""What could have been read for an answer and was not. Pure."""

from __future__ import annotations

from memtrace_collector.attribution.carrying.carriers import Sought
from memtrace_collector.attribution.carrying.once import once


@once
def current_carriers(sought: Sought) -> tuple[str, ...]:
    """The carriers that could have been read."""
    return sought.among(sought.view.current_versions)


@once
def missed_carriers(sought: Sought) -> tuple[str, ...]:
    """Carriers that no read brought; those made from the evidence where there are any."""
    if sought.reached:
        return ()
    missed = [ref for ref in current_carriers(sought) if ref not in sought.view.delivered]
    return tuple(ref for ref in missed if ref in sought.kin) or tuple(missed)
