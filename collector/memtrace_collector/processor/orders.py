"""Carrying out the control records of a log in the store that is filled from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from memtrace_collector.log.control import read_erase
from memtrace_collector.log.format import LogRecord
from memtrace_collector.store.base import ErasedFacts


class ErasingStore(Protocol):
    """The part of :class:`~memtrace_collector.store.base.FactStore` that is needed here."""

    def for_tenant(self, tenant: str) -> ErasingStore: ...

    def erase(self, graph_id: str | None) -> ErasedFacts: ...


def obeying(store: ErasingStore) -> Callable[[LogRecord], None]:
    """What the projector calls for each control record; doing it twice does no harm.

    Raises (when called):
        ValueError: the record is no order that can be read.
    """

    def obey(record: LogRecord) -> None:
        order = read_erase(record)
        if order is not None:
            store.for_tenant(order.tenant).erase(order.graph_id or None)

    return obey
