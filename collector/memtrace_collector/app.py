"""Wiring: settings -> parts, and the order in which they start and stop.

Built back to front (what sends on before what receives) and stopped front to back, so that
whatever was acknowledged has somewhere to go and is drained on the way out. What is not
drained in time is still in the log and in the outbox, and goes on at the next start.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import logging
import os
import time
from collections.abc import Callable, Iterator
from types import TracebackType

from memtrace_collector import gauges
from memtrace_collector.api import server as api
from memtrace_collector.api.owner import Owner, owned
from memtrace_collector.api.questions import Json
from memtrace_collector.api.service import Service, Work
from memtrace_collector.attribution.worker import Worker
from memtrace_collector.config import Config, store_folder
from memtrace_collector.core import Core, record_reader
from memtrace_collector.errors import UnreachableError
from memtrace_collector.exporter.otlp import OtlpDestination
from memtrace_collector.exporter.outbox import OutboxSender
from memtrace_collector.invariant_watch import InvariantWatch
from memtrace_collector.metrics import NULL_METRICS, Metrics
from memtrace_collector.processor.forwarder import Forwarder
from memtrace_collector.receiver.server import Listen, ListenError, ReceiverServer
from memtrace_collector.stage import Stage
from memtrace_collector.telemetry import Telemetry

logger = logging.getLogger(__name__)

DRAIN_SECONDS = 5.0
DESTINATION = "default"
FORWARD_CURSOR = f"forward:{DESTINATION}"
_POLL_SECONDS = 0.02
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared with, never bound


@contextlib.contextmanager
def open_service(config: Config) -> Iterator[Service]:
    """The questions over a folder that the caller owns, for one command."""
    core = Core(store_folder(config.store), config, NULL_METRICS)
    with contextlib.closing(core):
        core.project()
        yield _service(core, _worker(core, config, NULL_METRICS), core.project)


class App:
    """`memtrace-otel up`: a context manager; inside it everything runs.

    Raises on entering:
        MemtraceError: a port is taken, the folder is in use or damaged.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._folder = store_folder(config.store)
        self._addresses: Json = {}
        self._stages: list[Stage] = []

    def addresses(self) -> Json:
        """Where it listens: ``otlp_grpc``, ``otlp_http``, ``api``; with pid, store, forward."""
        return self._addresses

    def __enter__(self) -> App:
        with contextlib.ExitStack() as parts:
            self._start(parts)
            self._parts = parts.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._parts.close()

    def _start(self, parts: contextlib.ExitStack) -> None:
        config = self._config
        ownership = parts.enter_context(owned(self._folder, "up"))
        telemetry = Telemetry(importlib.metadata.version("memtrace-otel"))
        parts.callback(telemetry.close)
        core = Core(self._folder, config, telemetry)
        parts.callback(self._close, core)
        watch = InvariantWatch(core.facts, telemetry)
        self._run(parts, Stage("invariants", watch.run))
        gauges.install(telemetry, core, watch, FORWARD_CURSOR if config.forward.url else None)
        if config.forward.url:
            self._start_forwarding(parts, core, telemetry)
        worker = _worker(core, config, telemetry)
        self._run(parts, Stage("worker", worker.run))
        projector = Stage("projector", core.projector.run)
        self._run(parts, projector)
        parts.callback(_drain, "projection", lambda: core.facts.cursor() >= core.log.end)
        service = _service(core, worker, core.wait_projected)
        http = self._start_api(parts, service, telemetry, projector)
        receiver = ReceiverServer(core.ingest, _listen(config))
        with _listening():
            receiver.start()
        parts.callback(receiver.stop)
        self._addresses = self._bound(receiver, http)
        ownership.announce(Owner(os.getpid(), "up", _local_url(http.address)))

    def _run(self, parts: contextlib.ExitStack, stage: Stage) -> None:
        stage.start()
        self._stages.append(stage)
        parts.callback(stage.stop)

    def _close(self, core: Core) -> None:
        """Close the folder, unless a stage still works in it: then the process ends first."""
        if any(stage.is_alive for stage in self._stages):
            core.log.close()
        else:
            core.close()

    def _start_forwarding(
        self, parts: contextlib.ExitStack, core: Core, telemetry: Telemetry
    ) -> None:
        forward = self._config.forward
        destination = parts.enter_context(
            contextlib.closing(OtlpDestination(DESTINATION, forward.url))
        )
        sender = OutboxSender(core.cases, [destination], metrics=telemetry)
        self._run(parts, Stage("outbox", sender.run))
        parts.callback(_drain, "outbox", lambda: not core.cases.outbox_due(time.time_ns(), 1))
        forwarder = Forwarder(
            core.log_folder,
            core.facts,
            record_reader(self._config),
            destination,
            values=forward.values,
            wait=core.log.wait,
            metrics=telemetry,
        )
        self._run(parts, Stage("forwarder", forwarder.run))
        parts.callback(
            _drain, "forwarding", lambda: core.facts.cursor(FORWARD_CURSOR) >= core.log.end
        )

    def _start_api(
        self,
        parts: contextlib.ExitStack,
        service: Service,
        telemetry: Telemetry,
        projector: Stage,
    ) -> api.ApiServer:
        server = self._config.server
        app = api.build(
            service,
            telemetry,
            lambda: "" if projector.is_alive else "the projector does not run",
            host=server.host,
            max_request_bytes=server.max_request_bytes,
        )
        http = api.ApiServer(app, server.host, server.api_port)
        http.start()
        parts.callback(http.stop)
        return http

    def _bound(self, receiver: ReceiverServer, http: api.ApiServer) -> Json:
        host = _in_url(self._config.server.host)
        return {
            "pid": os.getpid(),
            "store": str(self._folder),
            "otlp_grpc": f"{host}:{receiver.grpc_port}",
            "otlp_http": f"http://{host}:{receiver.http_port}",
            "api": f"http://{host}:{http.address[1]}",
            "forward": self._config.forward.url,
        }


def _worker(core: Core, config: Config, metrics: Metrics) -> Worker:
    return Worker(
        core.facts,
        core.cases,
        profile=config.forward.profile,
        write_back=bool(config.forward.url),
        quotes=config.forward.values,
        interval_seconds=config.attribution.interval_seconds,
        metrics=metrics,
    )


def _service(core: Core, worker: Worker, settle: Callable[[], None]) -> Service:
    work = Work(core.append, settle, worker.run_once, core.request_at)
    return Service(core.facts, core.cases, work)


def _drain(what: str, done: Callable[[], bool]) -> None:
    """Wait until ``done``, for a while; what is left goes on at the next start."""
    deadline = time.monotonic() + DRAIN_SECONDS
    while not done():
        if time.monotonic() >= deadline:
            logger.warning("%s is not finished; it goes on at the next start", what)
            return
        time.sleep(_POLL_SECONDS)


@contextlib.contextmanager
def _listening() -> Iterator[None]:
    try:
        yield
    except ListenError as error:
        raise UnreachableError(f"{error}; choose another --grpc-port or --http-port") from None


def _listen(config: Config) -> Listen:
    server = config.server
    return Listen(server.host, server.grpc_port, server.http_port)


def _local_url(address: tuple[str, int]) -> str:
    """Where a command on this machine finds the API."""
    host, port = address
    return f"http://{_in_url(_ANY.get(host, host))}:{port}"


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
