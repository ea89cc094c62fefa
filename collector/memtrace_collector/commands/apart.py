"""`process`, `work` and `serve`: the parts of `up` as separate processes.

They share one store, and a folder belongs to one owner; so they need a database, which comes
with a later version. The commands exist so that asking for them is answered.
"""

from __future__ import annotations

from typing import NoReturn

import click

from memtrace_collector.commands.options import store_option
from memtrace_collector.errors import NotInThisVersionError


@click.command()
@store_option
def process(store: str) -> None:
    """Receive and project only (needs a postgresql:// store; not in this version).

    \b
    Example:
      memtrace-otel process --store postgresql://db/memtrace
    """
    _refuse("process", store)


@click.command()
@store_option
def work(store: str) -> None:
    """Attribute flagged answers only (needs a postgresql:// store; not in this version).

    \b
    Example:
      memtrace-otel work --store postgresql://db/memtrace
    """
    _refuse("work", store)


@click.command()
@store_option
def serve(store: str) -> None:
    """Serve the API and the page only (needs a postgresql:// store; not in this version).

    \b
    Example:
      memtrace-otel serve --store postgresql://db/memtrace
    """
    _refuse("serve", store)


def _refuse(command: str, store: str) -> NoReturn:
    raise NotInThisVersionError(
        f"{command} shares one store with other processes, which needs postgresql:// and comes "
        f"with a later version (given: {store}); `memtrace-otel up` does all three in one process"
    )
