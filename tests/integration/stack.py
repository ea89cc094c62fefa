"""The services of ``docker-compose.yml`` as processes of this machine.

Commands, environments and configuration files are those of the compose file. What an engine
would do differently is translated, and nothing else: names of services become loopback ports,
mounted files and volumes become paths here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests import components
from tests.demo_run import COMMAND, ROOT
from tests.integration.servers import eventually, get, running
from tests.ports import free_port
from tests.postgres import Cluster

COMPOSE: Mapping[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: Mapping[str, Mapping[str, Any]] = COMPOSE["services"]
_NAMED = re.compile(rf"\b({'|'.join(SERVICES)}):(\d+)\b")
_ANYWHERE = re.compile(r"\b0\.0\.0\.0:(\d+)\b")
_NOT_KNOWN_HERE = ("--web.enable-otlp-receiver",)
"""Arguments that the image knows and Debian's Prometheus does not yet."""


@dataclass
class Stack:
    """``folder`` holds volumes and logs. A service's port stays the same over its restarts."""

    folder: Path
    _ports: dict[tuple[str, int], int] = field(default_factory=dict)

    def port(self, service: str, port: int) -> int:
        """Where ``service:port`` of the compose network is found here."""
        return self._ports.setdefault((service, port), free_port())

    def url(self, service: str, port: int) -> str:
        return f"http://127.0.0.1:{self.port(service, port)}"

    def environment(self, service: str) -> dict[str, str]:
        """What the compose file sets; what it takes from the shell is left out."""
        given = SERVICES[service].get("environment", {})
        return {
            name: self.here(service, str(value))
            for name, value in given.items()
            if value is not None
        }

    def arguments(self, service: str) -> list[str]:
        return [
            self.here(service, argument)
            for argument in SERVICES[service]["command"]
            if argument not in _NOT_KNOWN_HERE
        ]

    def here(self, service: str, text: str) -> str:
        """``text`` of the compose file, with what it means on this machine."""
        text = _NAMED.sub(lambda m: self._address(m[1], m[2]), text)
        text = _ANYWHERE.sub(lambda m: self._address(service, m[1]), text)
        text = text.replace("@postgres/", f"@127.0.0.1:{self.port('postgres', 5432)}/")
        for inside, outside in self._mounts(service):
            text = re.sub(rf"(?<![\w.]){re.escape(inside)}(?=/|$)", str(outside), text)
        return text

    def rewritten(self, path: str) -> Path:
        """A copy of a configuration file that names servers by their addresses here."""
        text = _NAMED.sub(lambda m: self._address(m[1], m[2]), (ROOT / path).read_text())
        copy = self.folder / Path(path).name
        copy.write_text(text)
        return copy

    def _address(self, service: str, port: str) -> str:
        return f"127.0.0.1:{self.port(service, int(port))}"

    def _mounts(self, service: str) -> list[tuple[str, Path]]:
        """Paths in the container and here, the longest first."""
        mounts = [volume.split(":")[:2] for volume in SERVICES[service].get("volumes", [])]
        pairs = [(inside, self._source(source)) for source, inside in mounts]
        if "memtrace" in SERVICES[service]["image"]:
            pairs.append(("/etc/memtrace/memtrace.yaml", self.folder / "memtrace.yaml"))
        return sorted(pairs, key=lambda pair: -len(pair[0]))

    def _source(self, source: str) -> Path:
        if source.startswith("./"):
            return ROOT / source
        path = self.folder / source
        path.mkdir(exist_ok=True)
        return path

    @contextmanager
    def server(
        self, service: str, binary: Path, arguments: Sequence[str] | None = None
    ) -> Iterator[None]:
        """A server that is one program; ``arguments``: others than the compose file's."""
        command = [str(binary), *(self.arguments(service) if arguments is None else arguments)]
        with running(command, self._log(service), **self.environment(service)):
            yield

    @contextmanager
    def role(self, service: str) -> Iterator[int]:
        """`process`, `work` or `serve`, ready; gives its process id."""
        ports = [("--api-port", 4319)]
        if service == "process":
            ports += [("--http-port", 4318), ("--grpc-port", 4317)]
        self.rewritten("collector/memtrace.yaml")
        command = [*COMMAND, *self.arguments(service), "--host", "127.0.0.1"]
        for option, port in ports:
            command += [option, str(self.port(service, port))]
        with running(command, self._log(service), **self.environment(service)) as process:
            api = self.url(service, 4319)
            eventually(lambda: get(f"{api}/readyz") or _ended(process), f"{service} ready")
            assert process.poll() is None, self._log(service).read_text()
            yield process.pid

    @contextmanager
    def collector(self, *arguments: str) -> Iterator[int]:
        """The Collector, ready; gives its process id. ``arguments``: besides the compose file's."""
        changed = {
            "OTELCOL_DECISION_WAIT": "1s",
            "OTELCOL_METRICS_HOST": "127.0.0.1",
            "OTELCOL_METRICS_PORT": str(self.port("otelcol", 8888)),
        }
        command = [str(components.otelcol()), *self.arguments("otelcol"), *arguments]
        environment = {**self.environment("otelcol"), **changed}
        with running(command, self._log("otelcol"), **environment) as process:
            eventually(lambda: get(self.url("otelcol", 13133)), "the Collector's health")
            yield process.pid

    @contextmanager
    def prometheus(self) -> Iterator[None]:
        """Prometheus, which asks every second; it takes five until it asks for the first time."""
        configuration = self.rewritten("dashboards/prometheus.yml")
        configuration.write_text(configuration.read_text().replace("interval: 5s", "interval: 1s"))
        shutil.copy(ROOT / "dashboards" / "prometheus" / "alerts.yml", self.folder)
        arguments = [f"--config.file={configuration}", *self.arguments("prometheus")[1:]]
        arguments.append(f"--web.listen-address={self._address('prometheus', '9090')}")
        with self.server("prometheus", components.prometheus(), arguments):
            yield

    def prepare(self) -> Path:
        """Run the service of that name; gives the folder of the passwords."""
        service = SERVICES["prepare"]
        command = ["sh", self.here("prepare", service["entrypoint"][1]), *self.arguments("prepare")]
        environment = {**os.environ, **self.environment("prepare")}
        if os.geteuid() == 0:
            capabilities = ",".join(f"+{name.lower()}" for name in service["cap_add"])
            bounds = [f"--bounding-set=-all,{capabilities}", "--inh-caps=-all", "--no-new-privs"]
            command = ["setpriv", *bounds, *command]
        else:  # only root can give files away
            (self.folder / "chown").write_text("#!/bin/sh\n")
            (self.folder / "chown").chmod(0o755)
            environment["PATH"] = f"{self.folder}:{environment['PATH']}"
        subprocess.run(command, env=environment, check=True, timeout=30)
        return self.folder / "secrets"

    def _log(self, service: str) -> Path:
        return self.folder / f"{service}.log"

    @contextmanager
    def database(self) -> Iterator[Cluster]:
        """PostgreSQL, made as the entry point of its image makes it: ``initdb`` with the compose
        file's arguments, then the script that is mounted."""
        service, secrets = SERVICES["postgres"], self.prepare()
        _point_here(secrets / "memtrace.pgpass", self.port("postgres", 5432))
        cluster = Cluster(
            initdb=service["environment"]["POSTGRES_INITDB_ARGS"].split(),
            password=(secrets / "postgres.superuser").read_text().strip(),
            port=self.port("postgres", 5432),
        )
        try:
            environment = {**cluster.connection, **self.environment("postgres")}
            script = self.here("postgres", "/docker-entrypoint-initdb.d/database.sh")
            subprocess.run(
                [script], env={**environment, "POSTGRES_USER": "test"}, check=True, timeout=60
            )
            yield cluster
        finally:
            cluster.close()


def _ended(process: subprocess.Popen[str]) -> bool:
    return process.poll() is not None


def _point_here(passwords: Path, port: int) -> None:
    text = passwords.read_text()
    passwords.write_text(text.replace("postgres:5432:", f"127.0.0.1:{port}:"))
