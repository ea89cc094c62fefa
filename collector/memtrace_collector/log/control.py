"""Control records: orders of the log's owner, in the order of the log. Pure.

A control record stands between the requests that it is about and those that come later, so
that everybody who reads the log, now or when it is projected anew, acts at the same place.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from memtrace_collector.log.format import LogRecord

_ERASE, _GRAPH, _DONE = "erase", "graph_id", "done"


@dataclass(frozen=True, slots=True)
class Erase:
    """Forget what came before this record: of one graph, or (empty ``graph_id``) of the tenant.

    ``order_id`` tells one order from another.
    """

    tenant: str
    graph_id: str
    order_id: str


def erase_record(order: Erase, time_ns: int) -> LogRecord:
    """The record that gives the order."""
    body = _body({_ERASE: order.order_id, _GRAPH: order.graph_id})
    return LogRecord(order.tenant, time_ns, "control", "json", body)


def carried_out(record: LogRecord, order: Erase) -> LogRecord:
    """``record``, as long as it was, once nothing of the graph is left that it would have to
    name: it orders nothing any more."""
    body = _body({_DONE: order.order_id}).ljust(len(record.body))
    return LogRecord(record.tenant, record.time_ns, "control", "json", body)


def read_erase(record: LogRecord) -> Erase | None:
    """The order in a control record; None for one that is carried out, or of a later release.

    Raises:
        ValueError: a control record that cannot be read.
    """
    if record.signal != "control":
        return None
    document = json.loads(record.body)
    if not isinstance(document, dict):
        raise ValueError("a control record is a JSON object")
    if _ERASE not in document:
        return None
    order_id, graph_id = document[_ERASE], document.get(_GRAPH)
    if not isinstance(order_id, str) or not isinstance(graph_id, str):
        raise ValueError("an order to erase has an id and names a graph, or all by an empty name")
    return Erase(record.tenant, graph_id, order_id)


def _body(document: dict[str, str]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()
