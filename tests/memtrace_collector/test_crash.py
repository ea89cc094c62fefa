"""SIGKILL of `up` while spans are coming in: what was acknowledged is there, once."""

from __future__ import annotations

import json
import random
import signal
import threading
from pathlib import Path
from typing import Any

import httpx

from tests.memtrace_collector.running import VECTORS, Up, eventually, start_up

KILLS = 4
GRAPH = "user:crash"
FLAGGED = "memtrace.flagged"
REQUESTS_BETWEEN_KILLS = (15, 60)


def request(number: int) -> bytes:
    """The spans of one vector, unflagged, as the ``number``-th turn of one owner."""
    text = (VECTORS / "omission.otlp.json").read_text()
    document: dict[str, Any] = json.loads(text.replace("user:omission", GRAPH))
    for resource in document["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                span["traceId"] = f"{number:08x}{span['traceId'][8:]}"
                span["attributes"] = [a for a in span["attributes"] if a["key"] != FLAGGED]
    return json.dumps(document).encode()


def spans_of(body: bytes) -> set[tuple[str, str]]:
    document = json.loads(body)
    return {
        (span["traceId"], span["spanId"])
        for resource in document["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    }


def ingest_until_killed(up: Up, first: int, kill_after: int) -> tuple[list[int], int]:
    """Send requests until the process dies; those acknowledged, and the next number."""
    acknowledged: list[int] = []
    killer = threading.Thread(target=_kill_when, args=(up, acknowledged, kill_after))
    killer.start()
    number = first
    while True:
        try:
            response = up.post(request(number))
        except httpx.TransportError:
            break
        assert response.status_code == 200
        acknowledged.append(number)
        number += 1
    killer.join()
    return acknowledged, number


def _kill_when(up: Up, acknowledged: list[int], count: int) -> None:
    eventually(lambda: len(acknowledged) >= count, "enough requests before the kill")
    up.stop(signal.SIGKILL)


def test_every_acknowledged_span_survives_kills_once_and_the_graph_is_the_same(
    tmp_path: Path,
) -> None:
    chance = random.Random(20261121)
    store = tmp_path / "killed"
    sent: list[int] = []
    number = 0
    for _ in range(KILLS):
        up = start_up(store)
        acknowledged, number = ingest_until_killed(
            up, number, chance.randint(*REQUESTS_BETWEEN_KILLS)
        )
        sent += acknowledged
    up = start_up(store)
    for repeated in sorted({number, *sent[-3:]}):
        # the request that was cut off, and some that were not: a sender that retries
        assert up.post(request(repeated)).status_code == 200
    sent = sorted({*sent, number})
    expected = {key for each in sent for key in spans_of(request(each))}
    eventually(lambda: _count(up) >= len(expected), "the projection of everything")
    found = json.loads(
        httpx.get(
            f"{up.addresses['api']}/api/v1/graph",
            params={"graph": GRAPH, "format": "json"},
            timeout=60,
        ).text
    )
    survived = [(item["traceId"], item["spanId"]) for item in found["operations"]]
    assert len(survived) == len(set(survived))
    assert expected <= set(survived)
    disturbed = up.ask("/hash", graph=GRAPH)["hash"]
    assert up.stop() == 0

    calm = start_up(tmp_path / "calm")
    for each in sent:
        assert calm.post(request(each)).status_code == 200
    eventually(lambda: _count(calm) == len(survived), "the projection of the undisturbed run")
    assert calm.ask("/hash", graph=GRAPH)["hash"] == disturbed
    assert calm.stop() == 0


def _count(up: Up) -> int:
    return sum(graph["operations"] for graph in up.ask("/graphs"))
