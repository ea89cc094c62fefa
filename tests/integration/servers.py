"""Real servers for tests, and what they answer; each is ended by its own process id."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx

from tests import components
from tests.demo_run import COMMAND, ROOT
from tests.http_client import CLIENT
from tests.ports import free_port

DEADLINE_SECONDS = 60.0

Result = TypeVar("Result")


def eventually(probe: Callable[[], Result | None], what: str) -> Result:
    """The first result of ``probe`` that is not None (or False); fails after the deadline."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        found = probe()
        if found:
            return found
        assert time.monotonic() < deadline, f"not seen within {DEADLINE_SECONDS:.0f} s: {what}"
        time.sleep(0.05)


@contextmanager
def running(command: list[str], log: Path, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A server process, ended on leaving; its standard error is in ``log``."""
    with log.open("w") as errors:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def get(url: str, **parameters: str) -> httpx.Response | None:
    """The response, or None when there is none or it is an error."""
    try:
        response = CLIENT.get(url, params=parameters, timeout=10)
    except httpx.TransportError:
        return None
    return response if response.is_success else None


@dataclass(frozen=True)
class Up:
    """A running ``memtrace-otel up``."""

    addresses: dict[str, Any]

    def get(self, path: str, **parameters: str) -> Any:
        response = CLIENT.get(f"{self.addresses['api']}/api/v1{path}", params=parameters)
        response.raise_for_status()
        return response.json()

    def post(self, path: str, body: dict[str, Any]) -> Any:
        response = CLIENT.post(f"{self.addresses['api']}/api/v1{path}", json=body)
        response.raise_for_status()
        return response.json()

    def send(self, request: bytes, content_type: str = "application/x-protobuf") -> None:
        """One OTLP trace request over HTTP."""
        response = CLIENT.post(
            f"{self.addresses['otlp_http']}/v1/traces",
            content=request,
            headers={"content-type": content_type},
        )
        response.raise_for_status()


@contextmanager
def up(folder: Path, *arguments: str) -> Iterator[Up]:
    """``memtrace-otel up`` on free ports over ``folder``."""
    ports = ["--grpc-port", "0", "--http-port", "0", "--api-port", "0"]
    command = [*COMMAND, "up", "--store", str(folder), *ports, "--format", "json", *arguments]
    log = folder.with_name(f"{folder.name}.log")
    with running(command, log) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, log.read_text()
        yield Up(json.loads(line))


@dataclass(frozen=True)
class Jaeger:
    """A running Jaeger v2."""

    otlp_http: str
    query: str
    pid: int = 0

    def trace(self, trace_id: str) -> dict[str, Any] | None:
        """The trace in the form of the page's own API, None when it is not there."""
        response = get(f"{self.query}/api/traces/{trace_id}")
        return response.json()["data"][0] if response else None

    def span(self, trace_id: str, span_id: str) -> dict[str, Any] | None:
        trace = self.trace(trace_id)
        return next((s for s in trace["spans"] if s["spanID"] == span_id), None) if trace else None

    def spans_named(self, trace_id: str, name: str) -> list[dict[str, Any]]:
        trace = self.trace(trace_id)
        return [s for s in trace["spans"] if s["operationName"] == name] if trace else []

    def placed(self, trace_id: str) -> list[tuple[str, str, int, int]]:
        """Every span of a trace, by what names and places it."""
        trace = self.trace(trace_id)
        return sorted(
            (span["spanID"], span["operationName"], span["startTime"], span["duration"])
            for span in (trace["spans"] if trace else ())
        )

    def verdict_span(self, answer: dict[str, str]) -> dict[str, Any]:
        """The only one that says a verdict below an answer."""
        found = self.spans_named(answer["traceId"], "memtrace.attribution")
        (only,) = [span for span in found if parent(span) == answer]
        return only


def send(jaeger: Jaeger, request: bytes) -> None:
    """One OTLP trace request over HTTP, straight to it."""
    CLIENT.post(
        f"{jaeger.otlp_http}/v1/traces",
        content=request,
        headers={"content-type": "application/x-protobuf"},
    ).raise_for_status()


def tags(span: dict[str, Any]) -> dict[str, Any]:
    """Of a span in the form of the page's own API."""
    return {tag["key"]: tag["value"] for tag in span["tags"]}


def links(span: dict[str, Any]) -> list[dict[str, str]]:
    """Where a span's links lead; its parent is no link."""
    return [
        {"traceId": ref["traceID"], "spanId": ref["spanID"]}
        for ref in span["references"]
        if ref["refType"] != "CHILD_OF"
    ]


def parent(span: dict[str, Any]) -> dict[str, str] | None:
    found = [ref for ref in span["references"] if ref["refType"] == "CHILD_OF"]
    return {"traceId": found[0]["traceID"], "spanId": found[0]["spanID"]} if found else None


@contextmanager
def jaeger_server(
    folder: Path, *, on_disk: Path | None = None, max_traces: int | None = None
) -> Iterator[Jaeger]:
    """Jaeger with the configuration of this repository, its log in ``folder``.

    ``on_disk``: keeps its traces there, and not in memory, where there is room for ``max_traces``
    or as many as the configuration says.
    """
    ports = {
        name: f"127.0.0.1:{free_port()}"
        for name in ("QUERY_HTTP", "QUERY_GRPC", "OTLP_GRPC", "OTLP_HTTP", "HEALTH")
    }
    environment = {f"JAEGER_{name}": address for name, address in ports.items()}
    if max_traces is not None:
        environment["JAEGER_MAX_TRACES"] = str(max_traces)
    command = [str(components.jaeger()), "--config", "dashboards/jaeger.yaml"]
    if on_disk is not None:
        command += ["--config", "dashboards/jaeger-badger.yaml"]
        environment["JAEGER_BADGER"] = str(on_disk)
    with running(command, folder / "jaeger.log", **environment) as process:
        found = Jaeger(f"http://{ports['OTLP_HTTP']}", f"http://{ports['QUERY_HTTP']}", process.pid)
        eventually(lambda: get(f"{found.query}/api/services"), "Jaeger's API")
        yield found
