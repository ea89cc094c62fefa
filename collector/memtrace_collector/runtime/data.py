"""What works on stores and a log needs of them, wherever they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memtrace_collector.log.position import LogPosition
from memtrace_collector.store.base import CaseStore, FactStore


class Data(Protocol):
    """Facts and cases of one tenant, and the log that new requests go into."""

    @property
    def tenant(self) -> str: ...
    @property
    def facts(self) -> FactStore: ...
    @property
    def cases(self) -> CaseStore: ...

    def for_tenant(self, tenant: str) -> Data:
        """The same for another tenant; one ``close`` closes it for all."""
        ...

    def append(self, body: bytes, signal: str) -> None:
        """Take a protobuf request; returns when it is on disk."""
        ...

    def project(self) -> None:
        """Return when everything that is on disk by now is projected."""
        ...

    def catching_up(self) -> Callable[[], bool]:
        """Asks whether everything is projected that was on disk at this call."""
        ...

    def request_at(self, position: LogPosition) -> ExportTraceServiceRequest:
        """The trace request that starts there in the log."""
        ...

    def erase(self, graph_id: str) -> dict[str, Any]:
        """Forget a graph, or (empty) the tenant, with proof."""
        ...
