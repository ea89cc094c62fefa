"""Erasing where several processes share one database, each with a log of its own.

Whoever erases orders it, takes the rows out of the database at once and waits: every owner of a
log carries the order out there (see :mod:`memtrace_collector.runtime.erasing`), which takes out
what its log still brought in, and says what it found. An owner that does not run carries it out
when it does.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from memtrace_collector.errors import WrongUseError
from memtrace_collector.log.control import Erase
from memtrace_collector.processor.erasing import only_of
from memtrace_collector.runtime.erase_proof import Searched, known_operations
from memtrace_collector.runtime.erasing import FORWARDED, Tell
from memtrace_collector.store.erasures import FOLLOWING, Erasure, ErasureOrders
from memtrace_collector.telemetry.metrics import NULL_METRICS, Metrics
from memtrace_collector.telemetry.passes import Passes

Json = dict[str, Any]

WAIT_SECONDS = 60.0
NOT_CONFIRMED = "logs that have not confirmed"
NOTE = (
    f"{FORWARDED}; PostgreSQL keeps the bytes of deleted rows in its files until they are written "
    "over or VACUUM FULL runs, and in its write-ahead log until that is recycled; what a running "
    "`work` remembers of a model's answers goes when it ends"
)
_LOOK_SECONDS = 1.0
_POLL_SECONDS = 0.1
_REFERENCES = 1_000
_SINCE = "facts that came in since"
_COUNTED = "operations"
"""Whose number is that of the database before anything went: several would count the same."""
_REPORTED = ("erased", "searched", "left", "elsewhere")


class CarryingOut(Protocol):
    """See :class:`~memtrace_collector.runtime.erasing.Eraser`."""

    def carry_out(self, order: Erase, targets: Collection[str] = ..., tell: Tell = ...) -> Json: ...
    def resume(self) -> Json | None: ...


class OrderedErasing:
    """Carries out in one log what is ordered for all; makes the log known as it is made."""

    def __init__(
        self, orders: ErasureOrders, eraser: CarryingOut, metrics: Metrics = NULL_METRICS
    ) -> None:
        self._orders = orders
        self._eraser = eraser
        self._metrics = metrics
        orders.open_erasures()  # before anything is in the log: else an order could miss it

    def run(self, stop: threading.Event) -> None:
        """Carry out what is ordered until ``stop``."""
        passes = Passes(
            "an order to erase could not be carried out; it is tried again",
            "memtrace.erase.failures",
            self._metrics,
            pause_seconds=_LOOK_SECONDS,
        )
        passes.run(self._pass, stop)

    def _pass(self) -> float:
        self.run_once()
        return _LOOK_SECONDS

    def run_once(self) -> int:
        """How many orders were carried out."""
        found = self._orders.open_erasures()
        for each in found:
            order = Erase(each.tenant, each.graph_id or "", each.order_id)
            tell = functools.partial(self._follow, each)
            result = self._eraser.carry_out(order, each.targets, tell)
            report = {name: result[name] for name in _REPORTED}
            self._orders.confirm_erasure(each.order_id, report)
        self._eraser.resume()
        return len(found)

    def _follow(self, order: Erasure, targets: Collection[str]) -> None:
        """Order the rest where this log tells of more than was projected at the order."""
        more = tuple(sorted(set(targets).difference(order.targets)))
        if more:
            what = hashlib.sha256("\n".join(more).encode()).hexdigest()[:16]
            order_id = f"{order.order_id}{FOLLOWING}{what}"
            self._orders.order_erasure(order._replace(order_id=order_id, targets=more))


class _Known(NamedTuple):
    """What the database says before anything goes; of one graph also what it is known by."""

    operations: int
    targets: tuple[str, ...] = ()
    references: tuple[str, ...] = ()


@dataclass(slots=True)
class _Found:
    """What all of them erased and found, by place."""

    erased: Counter[str]
    searched: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    elsewhere: Counter[str] = field(default_factory=Counter)
    logs: set[str] = field(default_factory=set)

    def add(self, log_id: str, report: Mapping[str, Mapping[str, int]]) -> None:
        """What the owner of a log reported; nothing for a log that is gone."""
        if not report:
            return
        self.erased.update({name: n for name, n in report["erased"].items() if name != _COUNTED})
        self.searched.update(report["searched"])
        self.logs.add(log_id)
        for place, count in report["left"].items():
            self.left[f"log {log_id}: {place}"] += count
        for place, count in report["elsewhere"].items():
            self.elsewhere[f"log {log_id}: {place}"] += count


def erase_everywhere(
    data: Searched,
    graph_id: str,
    *,
    seconds: float = WAIT_SECONDS,
    gone: Collection[str] = (),
    say: Callable[[list[str]], None] = lambda _: None,
) -> Json:
    """Erase a graph of the tenant or, with an empty name, all of the tenant's, in every log.

    Args:
        seconds: how long to wait for the owners of the logs.
        gone: ids of logs that exist no more: they are not waited for.
        say: told for which logs it waits, whenever that changes.

    Returns what the folders' erasure returns, with ``unconfirmed``: the ids of logs whose owners
    have not carried it out in time; they count as ``left``.

    Raises:
        WrongUseError: the store takes no such orders.
        UnreachableError: the database went away; what was ordered stays ordered.
    """
    orders = data.facts
    if not isinstance(orders, ErasureOrders):
        raise WrongUseError("this store belongs to one folder: erase through its owner")
    name = graph_id or None
    known = _known(data, graph_id)
    order = Erasure(uuid.uuid4().hex, data.tenant, name, time.time_ns(), known.targets)
    orders.order_erasure(order)
    data.facts.erase(name)
    cases = data.cases.erase(name)
    waiting = _wait(orders, order.order_id, seconds, gone, say)
    found = _Found(Counter({_COUNTED: known.operations, **cases._asdict()}))
    for log_id, report in orders.erasure_reports(order.order_id):
        found.add(log_id, report)
    _look(data, graph_id, known, found, bool(waiting))
    found.left[NOT_CONFIRMED] = len(waiting)
    return {
        "tenant": data.tenant,
        "graph_id": graph_id,
        "erased": dict(found.erased),
        "searched": {**found.searched, "logs": len(found.logs)},
        "left": dict(+found.left),
        "elsewhere": dict(+found.elsewhere),
        "unconfirmed": waiting,
        "note": NOTE,
    }


def _wait(
    orders: ErasureOrders,
    order_id: str,
    seconds: float,
    gone: Collection[str],
    say: Callable[[list[str]], None],
) -> list[str]:
    """The logs that have not confirmed in time."""
    deadline = time.monotonic() + seconds
    said: list[str] = []
    while waiting := orders.erasure_waits_for(order_id):
        for log_id in set(gone).intersection(waiting):
            orders.leave_out(order_id, log_id)
        waiting = [log_id for log_id in waiting if log_id not in gone]
        if time.monotonic() >= deadline:
            break
        if waiting and waiting != said:
            say(waiting)
            said = waiting
        time.sleep(_POLL_SECONDS)
    return waiting


def _look(data: Searched, graph_id: str, known: _Known, found: _Found, is_waiting: bool) -> None:
    """Ask the stores. What is there once every owner has found nothing came in since."""
    operations = known_operations(data, graph_id)
    if operations:
        if is_waiting:
            found.left["facts"] += operations
        else:
            found.elsewhere[_SINCE] += operations
        return
    found.erased.update(data.cases.erase(graph_id or None)._asdict())  # judged meanwhile
    found.left.update(
        flags=len(data.facts.flags(graph_id or None)),
        values=len(data.facts.values(graph_id, known.references)),
        verdicts=len(data.cases.verdicts(graph_id or None, history=True)),
        cases=len(data.cases.queued(graph_id)),
    )


def _known(data: Searched, graph_id: str) -> _Known:
    count = known_operations(data, graph_id)
    if not graph_id:
        return _Known(count)
    targets: set[str] = set()
    references: list[str] = []
    for operation in data.facts.all_operations(graph_id):
        targets.update(operation.flag_targets)
        references += itertools.islice(operation.outputs, _REFERENCES - len(references))
    only = only_of(graph_id, targets, data.facts)
    return _Known(count, tuple(sorted(only)), tuple(references))
