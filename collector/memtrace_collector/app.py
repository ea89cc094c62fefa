"""Wiring: settings -> parts, and the order in which they start and stop.

Built back to front (what sends on before what receives) and stopped front to back, so that
whatever was acknowledged has somewhere to go and is drained on the way out. What is not
drained in time is still in the log and in the outbox, and goes on at the next start.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import time
from collections.abc import Callable, Iterator
from types import TracebackType

from memtrace_collector.api import server as api
from memtrace_collector.api.questions import Json, Replaying
from memtrace_collector.api.service import Service, Work
from memtrace_collector.attribution.judge import Judge
from memtrace_collector.attribution.work.worker import Worker, WorkerSettings
from memtrace_collector.attribution.writeback import WriteBack
from memtrace_collector.config import Config, store_folder
from memtrace_collector.errors import UnreachableError
from memtrace_collector.exporter.otlp import OtlpDestination
from memtrace_collector.exporter.outbox import OutboxSender
from memtrace_collector.processor.forwarder import Forwarder, Stores
from memtrace_collector.receiver.server import Listen, ListenError, ReceiverServer
from memtrace_collector.runtime import gauges
from memtrace_collector.runtime.data_folder import DataFolder
from memtrace_collector.runtime.invariant_flags import InvariantFlags
from memtrace_collector.runtime.invariant_watch import InvariantWatch
from memtrace_collector.runtime.judges import Judges
from memtrace_collector.runtime.owner import Owner, owned
from memtrace_collector.runtime.projecting import Apart, record_reader
from memtrace_collector.runtime.replaying import Replays
from memtrace_collector.runtime.stage import Deadline, Stage, drain
from memtrace_collector.settings.attribution import AttributionConfig
from memtrace_collector.telemetry.metrics import NULL_METRICS, Metrics
from memtrace_collector.telemetry.prometheus import Telemetry

STOP_SECONDS = 4.0
"""From the moment nothing more comes in; what is not finished then goes on at the next start."""
JOIN_SECONDS = 1.0
"""Of these, kept for the stages to stop."""
DESTINATION = "default"
FORWARD_CURSOR = f"forward:{DESTINATION}"
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared with, never bound


@contextlib.contextmanager
def open_service(config: Config) -> Iterator[Service]:
    """The questions over a folder that the caller owns, for one command."""
    data = DataFolder(store_folder(config.store), config, NULL_METRICS)
    with (
        contextlib.closing(data),
        contextlib.closing(Judges(config, store_folder(config.store), NULL_METRICS)) as judges,
        contextlib.closing(Replays(data, config)) as replays,
    ):
        data.project()
        worker = _worker(data, config, replays.usual(judges.named()), NULL_METRICS)
        yield _service(data, judges, replays, worker)


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
        self._stop_by = Deadline(STOP_SECONDS)

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
        data = DataFolder(self._folder, config, telemetry, Apart)
        parts.callback(self._close, data.close)
        parts.callback(data.log.close)
        kinds = config.attribution.flag_invariants
        flagging = InvariantFlags(data.facts, kinds, data.append, telemetry)
        watch = InvariantWatch(data.facts, telemetry, report=flagging.flag)
        self._run(parts, Stage("invariants", watch.run))
        gauges.install(telemetry, data, watch, FORWARD_CURSOR if config.forward.url else None)
        if config.forward.url:
            self._start_forwarding(parts, data, telemetry)
        judges = Judges(config, self._folder, telemetry)
        parts.callback(self._close, judges.close)
        replays = Replays(data, config)
        parts.callback(self._close, replays.close)
        worker = _worker(data, config, replays.usual(judges.named()), telemetry)
        self._run(parts, Stage("worker", worker.run))
        parts.callback(lambda: data.projection.stop(self._to_drain()))
        service = _service(data, judges, replays, worker)
        http = self._start_api(parts, service, telemetry, data.projection.missing)
        receiver = ReceiverServer(data.ingest, _listen(config))
        with _listening():
            receiver.start()
        parts.callback(receiver.stop)
        self._addresses = self._bound(receiver, http)
        ownership.announce(Owner(os.getpid(), "up", _local_url(http.address)))

    def _run(self, parts: contextlib.ExitStack, stage: Stage) -> None:
        stage.start()
        self._stages.append(stage)
        parts.callback(lambda: stage.stop(self._stop_by.left()))

    def _drain(self, parts: contextlib.ExitStack, what: str, done: Callable[[], bool]) -> None:
        """On the way out wait until ``done``, leaving time for the stages to stop."""
        parts.callback(lambda: drain(what, done, self._to_drain()))

    def _to_drain(self) -> float:
        """Seconds."""
        return max(0.0, self._stop_by.left() - JOIN_SECONDS)

    def _close(self, close: Callable[[], None]) -> None:
        """Close, unless a stage still works with it: then the process ends first."""
        if not any(stage.is_alive for stage in self._stages):
            close()

    def _start_forwarding(
        self, parts: contextlib.ExitStack, data: DataFolder, telemetry: Telemetry
    ) -> None:
        forward = self._config.forward
        destination = OtlpDestination(DESTINATION, forward.url)
        parts.callback(self._close, destination.close)
        sender = OutboxSender(data.cases, [destination], metrics=telemetry)
        self._run(parts, Stage("outbox", sender.run))
        self._drain(
            parts,
            "outbox",
            lambda: sender.is_held_up or not data.cases.outbox_due(time.time_ns(), 1),
        )
        forwarder = Forwarder(
            data.log_folder,
            Stores(data.facts, data.cases),
            record_reader(self._config),
            destination,
            values=forward.values,
            wait=data.log.wait,
            metrics=telemetry,
        )
        self._run(parts, Stage("forwarder", forwarder.run))
        self._drain(
            parts,
            "forwarding",
            lambda: forwarder.is_held_up or data.cases.cursor(FORWARD_CURSOR) >= data.log.end,
        )

    def _start_api(
        self,
        parts: contextlib.ExitStack,
        service: Service,
        telemetry: Telemetry,
        missing: Callable[[], str],
    ) -> api.ApiServer:
        server = self._config.server
        app = api.build(
            service,
            telemetry,
            missing,
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


def _worker(data: DataFolder, config: Config, judge: Judge, metrics: Metrics) -> Worker:
    return Worker(
        data.facts,
        data.cases,
        judge=judge,
        target=_write_back(config),
        settings=_worker_settings(config.attribution),
        ready=_caught_up(data),
        metrics=metrics,
    )


def _worker_settings(config: AttributionConfig) -> WorkerSettings:
    return WorkerSettings(
        interval_seconds=config.interval_seconds,
        settle_seconds=config.settle_seconds,
        max_attempts=config.max_attempts,
        cases_per_minute=config.cases_per_minute,
        concurrency=config.concurrency,
    )


def _caught_up(data: DataFolder) -> Callable[[], bool]:
    """Whether everything is projected that was on disk at the start: half a graph misleads."""
    end = data.log.end
    return lambda: data.facts.cursor() >= end


def _write_back(config: Config) -> WriteBack | None:
    forward = config.forward
    return WriteBack(profile=forward.profile, quotes=forward.values) if forward.url else None


def _service(
    data: DataFolder,
    judges: Judges,
    replays: Replays,
    worker: Worker,
) -> Service:
    def attribute(
        method: str, graph_id: str, evidence: bool, replay: Replaying | None
    ) -> list[Json]:
        judge = judges.named(method)
        if replay is None:
            return worker.run_once(graph_id, evidence, replays.usual(judge))
        with replays.asked(replay.runs, replay.model) as replayed:
            return worker.run_once(graph_id, evidence, replayed(judge))

    work = Work(data.append, data.project, attribute, data.request_at)
    return Service(data.facts, data.cases, work)


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
