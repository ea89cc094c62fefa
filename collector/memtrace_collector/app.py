"""Wiring: settings -> parts, and the order in which they start and stop.

Built back to front (what sends on before what receives) and stopped front to back, so that
whatever was acknowledged has somewhere to go and is drained on the way out. What is not
drained in time is still in the log and in the outbox, and goes on at the next start.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType

from memtrace_collector.access import owner_token
from memtrace_collector.access.authentication import DEFAULT_TENANT, Authenticator
from memtrace_collector.access.tls import certificate_text, check_files
from memtrace_collector.api import server as api
from memtrace_collector.api.listening import ApiServer
from memtrace_collector.api.questions import Json
from memtrace_collector.api.service import Service
from memtrace_collector.config import Config, is_database, store_folder
from memtrace_collector.errors import UnreachableError
from memtrace_collector.exporter.outbox import OutboxSender, tell_nobody
from memtrace_collector.processor.forwarder import Forwarder, Stores
from memtrace_collector.receiver.limits import Limits
from memtrace_collector.receiver.server import Listen, ListenError, ReceiverServer
from memtrace_collector.runtime import gauges
from memtrace_collector.runtime.data_folder import DataFolder
from memtrace_collector.runtime.destination import open_destination, open_readback
from memtrace_collector.runtime.judges import Judges
from memtrace_collector.runtime.keeping import log_retention
from memtrace_collector.runtime.logless import LoglessData
from memtrace_collector.runtime.owner import Owner, owned
from memtrace_collector.runtime.projecting import Apart, record_reader
from memtrace_collector.runtime.roles import UP, Role
from memtrace_collector.runtime.stage import Deadline, Stage, drain
from memtrace_collector.runtime.tenants import ONLY_WORKER, Tenants
from memtrace_collector.runtime.text_indexing import TextIndexing
from memtrace_collector.settings.tls import TlsConfig
from memtrace_collector.telemetry.metrics import NULL_METRICS
from memtrace_collector.telemetry.telemetry import Telemetry

STOP_SECONDS = 4.0
"""From the moment nothing more comes in; what is not finished then goes on at the next start."""
JOIN_SECONDS = 1.0
"""Of these, kept for the stages to stop."""
DESTINATION = "default"
FORWARD_CURSOR = f"forward:{DESTINATION}"
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared with, never bound


@contextlib.contextmanager
def open_service(config: Config, tenant: str = DEFAULT_TENANT) -> Iterator[Service]:
    """A tenant's questions over a database, or a folder that the caller owns, for one command."""
    with contextlib.ExitStack() as parts:
        if is_database(config.store):
            folder = Path(parts.enter_context(tempfile.TemporaryDirectory()))
            data: DataFolder | LoglessData = LoglessData(config.store)
        else:
            folder = store_folder(config.store)
            data = DataFolder(folder, config, NULL_METRICS)
        parts.callback(data.close)
        judges = parts.enter_context(contextlib.closing(Judges(config, folder, NULL_METRICS)))
        tenants = Tenants(data, config, judges, NULL_METRICS, lambda: ())
        parts.callback(tenants.close)
        data.project()
        yield tenants.of(tenant).service


class App:
    """`memtrace-otel up`, or a part of it: a context manager; inside it everything runs.

    Args:
        role: the parts.
        folder: of the log, where the store is a database; None: the store is the folder.

    Raises on entering:
        MemtraceError: a port is taken, the folder is in use or damaged, nobody answers where the
            store is.
    """

    def __init__(self, config: Config, role: Role = UP, folder: Path | None = None) -> None:
        self._config = config
        self._role = role
        self._folder = folder
        self._addresses: Json = {}
        self._known: Authenticator | None = None
        self._stages: list[Stage] = []
        self._stop_by = Deadline(STOP_SECONDS)

    def reload(self) -> None:
        """Read again who may come in; happens by itself when the file changes."""
        if self._known is not None:
            self._known.reload()

    def addresses(self) -> Json:
        """Where it listens: ``api``, and ``otlp_grpc``, ``otlp_http`` where it receives; with pid,
        store, forward."""
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
        config, role = self._config, self._role
        check_files(config.tls)
        telemetry = Telemetry(_version(), role.command, config.telemetry)
        parts.callback(telemetry.close)
        key = owner_token.new_key()
        known = Authenticator(config.auth.path, key, metrics=telemetry)
        self._known = known
        folder = self._folder_of_its_own(parts)
        ownership = parts.enter_context(owned(folder, role.command))
        logged = DataFolder(folder, config, telemetry, Apart, known) if role.has_log else None
        data = logged or LoglessData(config.store)
        parts.callback(self._close, data.close)
        if logged is not None:
            parts.callback(logged.log.close)
        judges = Judges(config, folder, telemetry)
        parts.callback(self._close, judges.close)
        tenants = Tenants(data, config, judges, telemetry, known.tenants)
        parts.callback(self._close, tenants.close)
        self._show(telemetry, logged, tenants)
        self._start_stages(parts, data, tenants, telemetry)
        missing = _nothing_missing
        if logged is not None:
            projection = logged.projection
            parts.callback(lambda: projection.stop(self._to_drain()))
            missing = projection.missing
        http = self._start_api(parts, tenants, telemetry, missing)
        self._addresses = self._bound(http)
        if logged is not None and role.receives:
            self._addresses |= self._start_receiver(parts, logged)
        url = _local_url(http.address, config.tls)
        ownership.announce(Owner(os.getpid(), role.command, url, key, certificate_text(config.tls)))

    def _show(self, telemetry: Telemetry, logged: DataFolder | None, tenants: Tenants) -> None:
        """What this process tells when it is scraped."""
        if logged is not None:
            gauges.install_log(telemetry, logged, forward_cursor(self._role, self._config))
        if self._role.works:
            gauges.install_work(telemetry, tenants)
        if self._role.watches:
            gauges.install_fleet(telemetry, tenants)

    def _folder_of_its_own(self, parts: contextlib.ExitStack) -> Path:
        """The folder of the log; without one, of what a model said, for as long as this runs."""
        if not self._role.has_log:
            return Path(parts.enter_context(tempfile.TemporaryDirectory()))
        return self._folder or store_folder(self._config.store)

    def _start_stages(
        self,
        parts: contextlib.ExitStack,
        data: DataFolder | LoglessData,
        tenants: Tenants,
        telemetry: Telemetry,
    ) -> None:
        """What works in the background, back to front."""
        if self._role.watches:
            self._run(parts, Stage("invariants", tenants.watch))
            self._run(parts, Stage("text index", TextIndexing(data.facts, telemetry).run))
        if isinstance(data, DataFolder):
            keeping = log_retention(
                data, self._config, telemetry, forward_cursor(self._role, self._config)
            )
            self._run(parts, Stage("retention", keeping.run))
            self._run(parts, Stage("erasing", data.erasing.run))
        if self._config.forward.url:
            self._start_sending(parts, data, tenants, telemetry)
        if self._role.works:
            self._run(parts, Stage("worker", tenants.work))

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

    def _start_sending(
        self,
        parts: contextlib.ExitStack,
        data: DataFolder | LoglessData,
        tenants: Tenants,
        telemetry: Telemetry,
    ) -> None:
        forward = self._config.forward
        destination = open_destination(DESTINATION, forward)
        parts.callback(self._close, destination.close)
        if self._role.works:
            only = "" if is_database(self._config.store) else ONLY_WORKER
            readback = open_readback(DESTINATION, forward, telemetry)
            if readback is not None:
                parts.callback(self._close, readback.close)
                self._run(parts, Stage("read-back", readback.run))
            sender = OutboxSender(
                tenants.outboxes,
                destination,
                name=only,
                delivered=readback.offer if readback else tell_nobody,
                metrics=telemetry,
            )
            self._run(parts, Stage("outbox", sender.run))
            self._drain(parts, "outbox", lambda: sender.is_held_up or sender.is_empty())
        if not self._role.receives or isinstance(data, LoglessData):
            return
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

    def _start_receiver(self, parts: contextlib.ExitStack, data: DataFolder) -> Json:
        """Where it listens."""
        config = self._config
        limits = Limits(connections=config.server.max_connections)
        receiver = ReceiverServer(data.ingest, _listen(config), limits)
        with _listening():
            receiver.start()
        parts.callback(receiver.stop)
        host = _in_url(config.server.host)
        return {
            "otlp_grpc": f"{host}:{receiver.grpc_port}",
            "otlp_http": f"{_scheme(config.tls)}://{host}:{receiver.http_port}",
        }

    def _start_api(
        self,
        parts: contextlib.ExitStack,
        tenants: Tenants,
        telemetry: Telemetry,
        missing: Callable[[], str],
    ) -> ApiServer:
        server = self._config.server
        app = api.build(
            lambda tenant: tenants.of(tenant).service,
            telemetry,
            missing,
            host=server.host,
            names=server.names,
            max_request_bytes=server.max_request_bytes,
            authenticator=self._known,
            trace_url=self._config.explorer.trace_url,
        )
        http = ApiServer(app, server.host, server.api_port, tls=self._config.tls)
        http.start()
        parts.callback(http.stop)
        return http

    def _bound(self, http: ApiServer) -> Json:
        host, scheme = _in_url(self._config.server.host), _scheme(self._config.tls)
        return {
            "pid": os.getpid(),
            "store": str(self._folder or self._config.store.rpartition("@")[2]),
            "api": f"{scheme}://{host}:{http.address[1]}",
            "forward": self._config.forward.url,
        }


def forward_cursor(role: Role, config: Config) -> str | None:
    """Up to where the log of a process was sent on; None for one that sends nothing on: what it
    keeps waits for nobody."""
    return FORWARD_CURSOR if role.receives and config.forward.url else None


def _nothing_missing() -> str:
    return ""


def _version() -> str:
    return importlib.metadata.version("memtrace-otel")


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
