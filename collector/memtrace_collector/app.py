"""Wiring: settings -> parts, and the order in which they start and stop.

Built back to front (what sends on before what receives) and stopped front to back, so that
whatever was acknowledged has somewhere to go and is drained on the way out. What is not
drained in time is still in the log and in the outbox, and goes on at the next start.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
from collections.abc import Callable, Iterator
from types import TracebackType

from memtrace_collector.access import owner_token
from memtrace_collector.access.authentication import DEFAULT_TENANT, Authenticator
from memtrace_collector.access.tls import certificate_text, check_files
from memtrace_collector.api import server as api
from memtrace_collector.api.questions import Json
from memtrace_collector.api.service import Service
from memtrace_collector.config import Config, store_folder
from memtrace_collector.errors import UnreachableError
from memtrace_collector.exporter.outbox import OutboxSender
from memtrace_collector.processor.forwarder import Forwarder, Stores
from memtrace_collector.receiver.limits import Limits
from memtrace_collector.receiver.server import Listen, ListenError, ReceiverServer
from memtrace_collector.runtime import gauges
from memtrace_collector.runtime.data_folder import DataFolder
from memtrace_collector.runtime.destination import open_destination
from memtrace_collector.runtime.judges import Judges
from memtrace_collector.runtime.owner import Owner, owned
from memtrace_collector.runtime.projecting import Apart, record_reader
from memtrace_collector.runtime.stage import Deadline, Stage, drain
from memtrace_collector.runtime.tenants import Tenants
from memtrace_collector.settings.tls import TlsConfig
from memtrace_collector.telemetry.metrics import NULL_METRICS
from memtrace_collector.telemetry.prometheus import Telemetry

STOP_SECONDS = 4.0
"""From the moment nothing more comes in; what is not finished then goes on at the next start."""
JOIN_SECONDS = 1.0
"""Of these, kept for the stages to stop."""
DESTINATION = "default"
FORWARD_CURSOR = f"forward:{DESTINATION}"
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared with, never bound


@contextlib.contextmanager
def open_service(config: Config, tenant: str = DEFAULT_TENANT) -> Iterator[Service]:
    """A tenant's questions over a folder that the caller owns, for one command."""
    data = DataFolder(store_folder(config.store), config, NULL_METRICS)
    with (
        contextlib.closing(data),
        contextlib.closing(Judges(config, store_folder(config.store), NULL_METRICS)) as judges,
        contextlib.closing(Tenants(data, config, judges, NULL_METRICS, lambda: ())) as tenants,
    ):
        data.project()
        yield tenants.of(tenant).service


class App:
    """`memtrace-otel up`: a context manager; inside it everything runs.

    Raises on entering:
        MemtraceError: a port is taken, the folder is in use or damaged.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._folder = store_folder(config.store)
        self._addresses: Json = {}
        self._known: Authenticator | None = None
        self._stages: list[Stage] = []
        self._stop_by = Deadline(STOP_SECONDS)

    def reload(self) -> None:
        """Read again who may come in; happens by itself when the file changes."""
        if self._known is not None:
            self._known.reload()

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
        check_files(config.tls)
        ownership = parts.enter_context(owned(self._folder, "up"))
        telemetry = Telemetry(importlib.metadata.version("memtrace-otel"))
        parts.callback(telemetry.close)
        key = owner_token.new_key()
        known = Authenticator(config.auth.path, key, metrics=telemetry)
        self._known = known
        data = DataFolder(self._folder, config, telemetry, Apart, known)
        parts.callback(self._close, data.close)
        parts.callback(data.log.close)
        judges = Judges(config, self._folder, telemetry)
        parts.callback(self._close, judges.close)
        tenants = Tenants(data, config, judges, telemetry, known.tenants)
        parts.callback(self._close, tenants.close)
        gauges.install(telemetry, data, tenants, FORWARD_CURSOR if config.forward.url else None)
        self._run(parts, Stage("invariants", tenants.watch))
        if config.forward.url:
            self._start_forwarding(parts, data, tenants, telemetry)
        self._run(parts, Stage("worker", tenants.work))
        parts.callback(lambda: data.projection.stop(self._to_drain()))
        http = self._start_api(parts, tenants, telemetry, data.projection.missing)
        limits = Limits(connections=config.server.max_connections)
        receiver = ReceiverServer(data.ingest, _listen(config), limits)
        with _listening():
            receiver.start()
        parts.callback(receiver.stop)
        self._addresses = self._bound(receiver, http)
        url = _local_url(http.address, config.tls)
        ownership.announce(Owner(os.getpid(), "up", url, key, certificate_text(config.tls)))

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
        self,
        parts: contextlib.ExitStack,
        data: DataFolder,
        tenants: Tenants,
        telemetry: Telemetry,
    ) -> None:
        forward = self._config.forward
        destination = open_destination(DESTINATION, forward)
        parts.callback(self._close, destination.close)
        sender = OutboxSender(tenants.outboxes, destination, metrics=telemetry)
        self._run(parts, Stage("outbox", sender.run))
        self._drain(parts, "outbox", lambda: sender.is_held_up or sender.is_empty())
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
        tenants: Tenants,
        telemetry: Telemetry,
        missing: Callable[[], str],
    ) -> api.ApiServer:
        server = self._config.server
        app = api.build(
            lambda tenant: tenants.of(tenant).service,
            telemetry,
            missing,
            host=server.host,
            max_request_bytes=server.max_request_bytes,
            authenticator=self._known,
        )
        http = api.ApiServer(app, server.host, server.api_port, tls=self._config.tls)
        http.start()
        parts.callback(http.stop)
        return http

    def _bound(self, receiver: ReceiverServer, http: api.ApiServer) -> Json:
        host, scheme = _in_url(self._config.server.host), _scheme(self._config.tls)
        return {
            "pid": os.getpid(),
            "store": str(self._folder),
            "otlp_grpc": f"{host}:{receiver.grpc_port}",
            "otlp_http": f"{scheme}://{host}:{receiver.http_port}",
            "api": f"{scheme}://{host}:{http.address[1]}",
            "forward": self._config.forward.url,
        }


@contextlib.contextmanager
def _listening() -> Iterator[None]:
    try:
        yield
    except ListenError as error:
        raise UnreachableError(f"{error}; choose another --grpc-port or --http-port") from None


def _listen(config: Config) -> Listen:
    server = config.server
    return Listen(server.host, server.grpc_port, server.http_port, config.tls)


def _local_url(address: tuple[str, int], tls: TlsConfig) -> str:
    """Where a command on this machine finds the API."""
    host, port = address
    return f"{_scheme(tls)}://{_in_url(_ANY.get(host, host))}:{port}"


def _scheme(tls: TlsConfig) -> str:
    return "https" if tls.is_on else "http"


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
