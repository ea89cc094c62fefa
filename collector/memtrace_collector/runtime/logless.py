"""The stores of a database for a process that has no log: it reads and judges."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NoReturn

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memtrace_collector.errors import NotFoundError, WrongUseError
from memtrace_collector.graph.facts import DEFAULT_TENANT
from memtrace_collector.log.position import LogPosition
from memtrace_collector.runtime.erasing_together import erase_everywhere
from memtrace_collector.runtime.stores import open_cases, open_facts

_NO_LOG = (
    "this needs a log, which commands on a postgresql:// store have not: send spans to a "
    "`memtrace-otel process`, ask the API of a `memtrace-otel serve`"
)


class LoglessData:
    """Implements :class:`~memtrace_collector.runtime.data.Data`; :meth:`close` when done."""

    def __init__(self, url: str) -> None:
        """Open the database.

        Raises:
            WrongUseError: the driver is not installed.
            UnreachableError: nobody answers there.
        """
        self.tenant = DEFAULT_TENANT
        self.facts = open_facts(None, url)
        self.cases = open_cases(None, url)

    def close(self) -> None:
        self.facts.close()
        self.cases.close()

    def for_tenant(self, tenant: str) -> LoglessData:
        data = copy.copy(self)
        data.tenant = tenant
        data.facts = self.facts.for_tenant(tenant)
        data.cases = self.cases.for_tenant(tenant)
        return data

    def project(self) -> None:
        """Others do."""

    def catching_up(self) -> Callable[[], bool]:
        """Nobody here knows of a backlog."""
        return lambda: True

    def append(self, body: bytes, signal: str) -> NoReturn:  # noqa: ARG002 - see Data
        raise WrongUseError(_NO_LOG)

    def erase(self, graph_id: str) -> dict[str, Any]:
        """See :func:`~memtrace_collector.runtime.erasing_together.erase_everywhere`."""
        return erase_everywhere(self, graph_id)

    def request_at(self, position: LogPosition) -> ExportTraceServiceRequest:
        raise NotFoundError(f"{_NO_LOG}; the request at {tuple(position)} is in another's log")
