"""The compose file's services as they run together, and how tests ask them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import yaml
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from psycopg.rows import dict_row

from tests import components
from tests.contract import scenarios
from tests.demo_run import ROOT
from tests.http_client import CLIENT
from tests.integration.servers import Jaeger, eventually, get
from tests.integration.stack import Stack
from tests.postgres import Cluster

_DATA_SOURCES = ROOT / "dashboards/grafana/provisioning/datasources"


@dataclass
class Installation:
    """The stack, of which `process` and the Collector may be killed and started again."""

    stack: Stack
    database: Cluster
    parts: ExitStack
    pids: dict[str, int]

    @property
    def jaeger(self) -> Jaeger:
        return Jaeger(self.stack.url("jaeger", 4318), self.stack.url("jaeger", 16686))

    def send(self, request: ExportTraceServiceRequest) -> None:
        """To the Collector's front door; raises unless it acknowledges."""
        response = CLIENT.post(
            f"{self.stack.url('otelcol', 4318)}/v1/traces",
            content=request.SerializeToString(),
            headers={"content-type": "application/x-protobuf"},
        )
        response.raise_for_status()

    def ask(self, path: str, **parameters: str) -> Any:
        response = get(f"{self.stack.url('serve', 4319)}/api/v1{path}", **parameters)
        assert response is not None, path
        return response.json()

    def graphs(self) -> dict[str, int]:
        """Operations of each graph."""
        return {graph["graph_id"]: graph["operations"] for graph in self.ask("/graphs")}

    def has(self, name: str) -> bool:
        """Every operation of a scenario is in its graph, and no other."""
        expected = scenarios.expected(name)
        return self.graphs().get(expected["graph_id"]) == expected["operations_in_file"]

    def accepted(self) -> float:
        """Spans that `process` has taken."""
        return self._counted("process", "memtrace_receiver_accepted_total{")

    def read_back(self) -> float:
        """Verdicts that `work` has seen in Jaeger."""
        return self._counted("work", 'memtrace_readback_total{result="visible"')

    def _counted(self, service: str, beginning: str) -> float:
        page = get(f"{self.stack.url(service, 4319)}/metrics")
        assert page is not None
        lines = [line for line in page.text.splitlines() if line.startswith(beginning)]
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines)

    def end(self, service: str, how: signal.Signals) -> None:
        os.kill(self.pids[service], how)

    def start(self, service: str) -> None:
        started = self.stack.collector() if service == "otelcol" else self.stack.role(service)
        self.pids[service] = self.parts.enter_context(started)

    def as_grafana(self) -> psycopg.Connection[dict[str, Any]]:
        """A connection as Grafana makes it: its role, its password, its database."""
        source = yaml.safe_load((_DATA_SOURCES / "postgresql.yaml").read_text())
        (given,) = source["datasources"]
        file = given["secureJsonData"]["password"].removeprefix("$__file{").removesuffix("}")
        secret = self.stack.here("grafana", file)
        url = (
            f"postgresql://{given['user']}@127.0.0.1:{self.stack.port('postgres', 5432)}/"
            f"{given['jsonData']['database']}"
        )
        password = Path(secret).read_text().strip()
        return psycopg.connect(url, password=password, row_factory=dict_row)

    def report(self, statement: str) -> list[dict[str, Any]]:
        """Rows as Grafana gets them."""
        with self.as_grafana() as connection:
            return connection.execute(statement.encode()).fetchall()


@contextmanager
def running_installation(folder: Path) -> Iterator[Installation]:
    stack = Stack(folder)
    with ExitStack() as parts:
        parts.enter_context(stack.prometheus())
        database = parts.enter_context(stack.database())
        parts.enter_context(stack.server("jaeger", components.jaeger()))
        installed = Installation(stack, database, parts, {})
        for service in ("process", "work", "serve", "otelcol"):
            installed.start(service)
        eventually(lambda: get(f"{stack.url('jaeger', 13133)}/status"), "Jaeger's health")
        yield installed
        for service in installed.pids:  # together: each takes its time
            installed.end(service, signal.SIGTERM)
