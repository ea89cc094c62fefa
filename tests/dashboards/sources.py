"""The data sources of the dashboards, as Grafana asks them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import psycopg
import psycopg.rows

from tests.dashboards.grafana import Window
from tests.http_client import CLIENT
from tests.memtrace_collector.running import Up

READER = "memtrace_reader"
"""The role of Grafana; it exists before the tables do, as in the compose file."""


def rows(database: str, statement: str) -> list[dict[str, Any]]:
    """What PostgreSQL answers, by column."""
    with psycopg.connect(database, row_factory=psycopg.rows.dict_row) as reader:
        return list(reader.execute(statement.encode()).fetchall())


@dataclass(frozen=True)
class Monitored:
    """What the dashboards' data sources are."""

    prometheus: str
    database: str
    """URL, as Grafana's role."""
    serving: Up
    deployed: float = 0.0
    """When the worker was started anew, in seconds since 1970."""

    def query(self, expression: str, at: float | None = None) -> list[dict[str, Any]]:
        """What was at a moment, in seconds since 1970, or is now."""
        return list(self._ask("query", query=expression, time=time.time() if at is None else at))

    def query_range(self, expression: str, window: Window) -> list[dict[str, Any]]:
        """What was in the minute until the end of ``window``, one value every second."""
        start = window.end - 60
        asked = {"start": start, "end": window.end, "step": 1}
        return list(self._ask("query_range", query=expression, **asked))

    def label_values(self, selector: str, label: str) -> list[str]:
        found: list[str] = self._ask(f"label/{label}/values", **{"match[]": selector})
        return found

    def rows(self, statement: str) -> list[dict[str, Any]]:
        return rows(self.database, statement)

    def exemplars(self, expression: str) -> list[dict[str, Any]]:
        now = time.time()
        asked = {"start": now - 300, "end": now}
        return list(self._ask("query_exemplars", query=expression, **asked))

    def rules(self) -> list[dict[str, Any]]:
        """The groups of alerts, and how they are."""
        return list(self._ask("rules")["groups"])

    def _ask(self, path: str, **parameters: Any) -> Any:
        response = CLIENT.get(f"{self.prometheus}/api/v1/{path}", params=parameters)
        assert response.status_code == 200, response.text
        data = response.json()["data"]
        return data["result"] if isinstance(data, dict) and "result" in data else data
