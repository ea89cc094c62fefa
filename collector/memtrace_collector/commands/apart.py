"""`process`, `work` and `serve`: the parts of `up` as separate processes.

They share one store, and a folder belongs to one owner; so they need a database, which comes
with a later version. The commands exist so that asking for them is answered.
"""

from __future__ import annotations

import click

from memtrace_collector.commands.options import store_option
from memtrace_collector.errors import NotInThisVersionError


def _apart(name: str, does: str) -> click.Command:
    @click.command(
        name,
        help=f"{does} only (needs a postgresql:// store; not in this version).\n\n"
        f"\b\nExample:\n  memtrace-otel {name} --store postgresql://db/memtrace",
    )
    @store_option
    def refuse(store: str) -> None:
        raise NotInThisVersionError(
            f"{name} shares one store with other processes, which needs postgresql:// and comes "
            f"with a later version (given: {store}); `memtrace-otel up` does all three in one "
            "process"
        )

    return refuse


process = _apart("process", "Receive and project")
work = _apart("work", "Attribute flagged answers")
serve = _apart("serve", "Serve the API and the page")
