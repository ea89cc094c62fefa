"""A verdict that its destination does not take is seen, and can be sent again."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.memtrace_collector.running import (
    DEADLINE_SECONDS,
    VECTORS,
    Up,
    command,
    environment,
    eventually,
    start_up,
)
from tests.sinks import sink


@contextmanager
def up_forwarding_to(folder: Path, url: str) -> Iterator[Up]:
    up = start_up(folder / "store", "--forward", url)
    try:
        up.post((VECTORS / "overwritten.otlp.json").read_bytes()).raise_for_status()
        yield up
    finally:
        up.stop()


def verdicts(folder: Path, *arguments: str) -> str:
    line = command("verdicts", "--store", str(folder / "store"), *arguments)
    done = subprocess.run(
        line,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        env=environment(),
        check=True,
    )
    return done.stdout


@pytest.mark.fault("F22", "F38")
def test_what_is_refused_for_ever_is_listed_counted_and_sent_again_as_it_was(
    tmp_path: Path,
) -> None:
    with sink(400) as refusing, up_forwarding_to(tmp_path, refusing.url) as up:
        eventually(lambda: len(up.ask("/undelivered")) == 4, "four rows given up")
        refused = refusing.bodies[:]
        rows = json.loads(verdicts(tmp_path, "--undelivered", "--format", "json"))
        assert {row["error"] for row in rows} == {"HTTP 400"}
        assert verdicts(tmp_path, "--undelivered").count("HTTP 400") == 4
        metrics = httpx.get(f"{up.addresses['api']}/metrics").text
        assert 'memtrace_outbox_depth{state="abandoned"} 4.0' in unlabelled(metrics)
        refusing.status = 200
        refusing.bodies.clear()
        assert verdicts(tmp_path, "--redeliver") == "4 deliveries are due again\n"
        eventually(lambda: len(refusing.bodies) >= 4, "all of them sent again")
        assert set(refusing.bodies) <= set(refused), "byte for byte"
        eventually(lambda: up.ask("/undelivered") == [], "nothing is left undelivered")


@pytest.mark.fault("F36")
def test_no_redirect_of_a_destination_is_followed(tmp_path: Path) -> None:
    with (
        sink() as elsewhere,
        sink(307, elsewhere.url) as redirecting,
        up_forwarding_to(tmp_path, redirecting.url) as up,
    ):
        eventually(lambda: len(up.ask("/undelivered")) == 4, "four rows given up")
        assert redirecting.bodies and elsewhere.bodies == []


def unlabelled(metrics: str) -> str:
    """Without what every line says of its scope."""
    lines = (line for line in metrics.splitlines() if line.startswith("memtrace_outbox_depth{"))
    return "\n".join(
        f'memtrace_outbox_depth{{state="{line.split("state=")[1].split(chr(34))[1]}"}} '
        f"{line.rpartition(' ')[2]}"
        for line in lines
    )
