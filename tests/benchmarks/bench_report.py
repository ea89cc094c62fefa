"""How long the SQL of the Failures dashboard takes over many verdicts.

    python -m tests.benchmarks.bench_report                      # 100,000 cases: half a minute

Every tenth case has a second revision; a body of 14 hops has about 8 kB. The verdicts are there
before the views are made, as after an upgrade; every statement of the dashboard then runs as its
role, over all of them and over one day: the median of three, with a connection of its own each.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any

import psycopg

from memtrace_collector.store.postgres import keys
from memtrace_collector.store.postgres.cases import PostgresCaseStore
from memtrace_collector.store.postgres.cases_schema import CASES
from memtrace_collector.store.postgres.database import Database
from tests.dashboards import grafana, sources
from tests.dashboards.choices import SQL, chosen, from_rows
from tests.dashboards.grafana import Window
from tests.dashboards.sources import READER
from tests.postgres import Cluster

_LAST = datetime(2026, 11, 22, tzinfo=timezone.utc)
_DAY = 86_400.0
_SECONDS_APART = 20
_TYPES = ["bytea", "text", "int8", "bytea", "text", "text", "text", "text", "bytea"]
_KINDS = 2 * ("evidence", "extraction", "decision", "write", "retrieval", "assembly", "answer")


def verdict(case: int, revision: int) -> dict[str, Any]:
    """As one is stored, with a path whose fourth hop is decisive."""
    created = (_LAST - timedelta(seconds=case * _SECONDS_APART)).isoformat()
    return {
        "id": f"{case:032x}", "revision": revision, "created": created,
        "graph_id": f"user:{case % 1000}", "answer": _span(case), "stage": "update",
        "error_type": "overwritten", "decisive": [_span(case + 3)], "score": 0.9,
        "method": "rules", "explanation": "e" * 400, "lineage": "complete", "absence": "proven",
        "path": [_hop(case + n, kind, n == 3) for n, kind in enumerate(_KINDS)],
        "evidence": [{"says": "s" * 300} for _ in range(4)], "case_trace": f"{case:032x}",
    }  # fmt: skip


def _hop(number: int, kind: str, is_decisive: bool) -> dict[str, Any]:
    return {
        "kind": kind, "outcome": "kept", "span": _span(number), "service": f"s{number % 7}",
        "system": "mem0", "operation": "update_memory", "time_ns": 1_763_700_000_000_000_000,
        "record": "mem:mem0:r", "versions": [f"mem:mem0:{number}@a1b2c3d4e5f6"],
        "says": "s" * 120, "decisive": is_decisive,
    }  # fmt: skip


def _span(number: int) -> dict[str, str]:
    return {"traceId": f"{number:032x}", "spanId": f"{number:016x}"}


def _rows(cases: int) -> Iterator[tuple[Any, ...]]:
    for case in range(cases):
        for revision in (1, 2) if case % 10 == 0 else (1,):
            said = verdict(case, revision)
            key = (b"default", said["id"], revision, keys.wide_key(said["graph_id"]))
            label = (said["stage"], said["error_type"], said["method"])
            yield (*key, said["created"], *label, json.dumps(said).encode())


def fill(url: str, cases: int) -> float:
    """Seconds that making the views took over what is there."""
    Database(url, CASES).close()
    into = "COPY memtrace.verdict FROM STDIN (FORMAT BINARY)"
    with psycopg.connect(url) as connection, connection.cursor().copy(into) as copy:
        copy.set_types(_TYPES)
        for row in _rows(cases):
            copy.write_row(row)
    began = time.perf_counter()
    PostgresCaseStore(url).close()
    made = time.perf_counter() - began
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ANALYZE memtrace.verdict")
    return made


def _milliseconds(ask: partial[list[dict[str, Any]]]) -> float:
    found = []
    for _ in range(3):
        began = time.perf_counter()
        ask()
        found.append(1_000 * (time.perf_counter() - began))
    return statistics.median(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cases", type=int, default=100_000)
    options = parser.parse_args()
    cluster = Cluster(shared_buffers="256MB")
    try:
        cluster.execute(f"CREATE ROLE {READER} LOGIN")
        url = cluster.new_database()
        print(f"{options.cases:,} cases; views made in {fill(url, options.cases):.1f} s\n")
        ask = partial(sources.rows, url.replace("//test@", f"//{READER}@"))
        board = grafana.dashboard("failures")
        end = _LAST.timestamp()
        print("| panel | over all, ms | over a day, ms |\n|---|---|---|")
        windows = (Window(end - 10_000 * _DAY, end), Window(end - _DAY, end))
        said = chosen(board, from_rows(ask, windows[0]))
        for target in [each for each in board.targets if each.source == SQL]:
            times = [
                _milliseconds(partial(ask, grafana.sql(target.text, said, window)))
                for window in windows
            ]
            print(f"| {target.panel} | {times[0]:.0f} | {times[1]:.0f} |")
    finally:
        cluster.close()


if __name__ == "__main__":
    main()
