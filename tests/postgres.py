"""A PostgreSQL cluster of one's own: made in a temporary folder, ended with the test run."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests import components

_SERVER_USER = "postgres"
_START_SECONDS = 30.0
_USUAL_PORT = 5432
_CONFIG = """
listen_addresses = '{addresses}'
port = {port}
unix_socket_directories = '{folder}'
fsync = {fsync}
shared_buffers = {shared_buffers}
max_wal_size = 2GB
autovacuum_naptime = 10s
log_min_messages = fatal
"""
_EMPTY = """
DO $$ DECLARE name text; BEGIN
  FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'memtrace'
     AND tablename NOT IN ('migration', 'counter')
  LOOP EXECUTE format('DELETE FROM memtrace.%I', name); END LOOP;
END $$
"""


class Cluster:
    """A server on a socket in its folder; nobody else can reach it.

    Args:
        durable: writes reach the disk, as in production; tests do without.
        initdb: how it is made; by default whoever reaches it is trusted.
        password: of its superuser, ``test``.
        port: of TCP on loopback, as well; None: the socket alone.
    """

    def __init__(
        self,
        *,
        durable: bool = False,
        shared_buffers: str = "64MB",
        initdb: Sequence[str] = ("--auth=trust",),
        password: str = "",
        port: int | None = None,
    ) -> None:
        self._environment = {**os.environ, "PGPASSWORD": password}
        self._binaries = components.postgresql()
        self.folder = Path(tempfile.mkdtemp(prefix="memtrace-pg-"))
        self._data = self.folder / "data"
        self._numbers = itertools.count()
        self._shared: str | None = None
        self._own(self.folder)
        secret = self.folder / "superuser"
        secret.write_text(f"{password}\n")
        how = [*initdb, *([f"--pwfile={secret}"] if password else [])]
        self._run("initdb", "-D", str(self._data), "-U", "test", "-E", "UTF8", "-N", *how)
        config = _CONFIG.format(
            folder=self.folder,
            fsync="on" if durable else "off",
            shared_buffers=shared_buffers,
            addresses="127.0.0.1" if port else "",
            port=port or _USUAL_PORT,
        )
        with (self._data / "postgresql.conf").open("a") as file:
            file.write(config)
        self.connection = {
            **self._environment,
            "PGHOST": str(self.folder),
            "PGPORT": str(port or _USUAL_PORT),
            "PATH": f"{self._binaries}:{os.environ['PATH']}",
        }
        """What libpq's programs need in their environment to reach it by its socket."""
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start the server and return when it answers."""
        command = [*_as_server_user(), str(self._binaries / "postgres"), "-D", str(self._data)]
        self._process = subprocess.Popen(
            command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            if time.monotonic() > deadline:
                raise TimeoutError(f"PostgreSQL in {self.folder} does not start")
            time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End the server: SIGINT ends its sessions first, SIGQUIT is a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(timeout=_START_SECONDS)
            self._process = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def close(self) -> None:
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder)

    def url(self, database: str) -> str:
        return f"postgresql://test@/{database}?host={self.folder}"

    def execute(self, statement: str, database: str = "postgres") -> None:
        """Run one statement."""
        where = ("-h", str(self.folder), "-U", "test", "-d", database)
        self._run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", *where, "-c", statement)

    def new_database(self, template: str = "template1") -> str:
        """The URL of a new database, a copy of ``template``."""
        name = f"test_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.url(name)

    def emptied_database(self) -> str:
        """The URL of one database that tests use one after the other: to make one for each
        takes longer than most of them."""
        if self._shared is None:
            self._shared = self.new_database()
        self.execute(_EMPTY, _database(self._shared))
        return self._shared

    def _answers(self) -> bool:
        command = [str(self._binaries / "pg_isready"), "-q", "-h", str(self.folder)]
        return subprocess.run(command, env=self.connection, check=False).returncode == 0

    def _run(self, program: str, *arguments: str) -> None:
        command = [*_as_server_user(), str(self._binaries / program), *arguments]
        subprocess.run(
            command,
            cwd=self.folder,
            env=self._environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def _own(self, folder: Path) -> None:
        if os.geteuid() == 0:
            user = pwd.getpwnam(_SERVER_USER)
            os.chown(folder, user.pw_uid, user.pw_gid)


def _as_server_user() -> list[str]:
    """The server refuses to run as root; and it ends with us, however we end."""
    if shutil.which("setpriv") is None:
        return []
    if os.geteuid() != 0:
        return ["setpriv", "--pdeathsig=QUIT"]
    who = [f"--reuid={_SERVER_USER}", f"--regid={_SERVER_USER}", "--clear-groups"]
    return ["setpriv", "--pdeathsig=QUIT", *who]


def _database(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[2]
