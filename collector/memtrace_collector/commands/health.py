"""The checks behind `doctor`: each looks at one thing and says what it found and what to do."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import socket
import sqlite3
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from memtrace_collector.access.directory import read_directory
from memtrace_collector.access.tls import check_files
from memtrace_collector.config import Config, is_database
from memtrace_collector.errors import EXIT_UNREACHABLE, MemtraceError
from memtrace_collector.log import reader
from memtrace_collector.log.position import START
from memtrace_collector.runtime.logless import LoglessData
from memtrace_collector.runtime.owner import (
    LOCK_FILE,
    Owner,
    Ownership,
    read_owner,
    try_own,
)
from memtrace_collector.runtime.stores import report_readers
from memtrace_collector.store import queue

OK, WARNING, FINDING, UNREACHABLE, DAMAGED = "ok", "warning", "finding", "unreachable", "damaged"
STATES = (OK, WARNING, FINDING, UNREACHABLE, DAMAGED)
"""From good to bad."""

PACKAGES = (
    "memtrace-otel", "opentelemetry-api", "opentelemetry-sdk", "opentelemetry-proto", "protobuf",
    "grpcio", "uvicorn", "starlette", "httpx", "networkx",
)  # fmt: skip
CASES = "cases.db"
DATABASES = ("facts.db", "facts.values.db", "facts.text.db", CASES)
WAL_RESET_FIXED = (3, 51, 3)
_CONNECT_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Check:
    """``state`` is one of :data:`STATES`."""

    name: str
    state: str
    says: str


def run(config: Config, environment: Mapping[str, str]) -> Iterator[Check]:
    """Every check, in the order in which they are shown."""
    yield _python()
    yield from _packages()
    yield _sqlite(sqlite3.sqlite_version_info)
    if is_database(config.store):
        yield from _shared_store(config.store)
    else:
        yield from _store(Path(config.store))
    yield from _access(config)
    log = environment.get("MEMTRACE_LOG") if is_database(config.store) else config.store
    yield from _ports(config, read_owner(Path(log)) if log else None)
    yield from _beyond(config)
    if environment.get("OPENAI_BASE_URL"):
        yield _endpoint("model", environment["OPENAI_BASE_URL"])
    yield _digest_key(environment)


def _python() -> Check:
    says = f"{platform.python_implementation()} {platform.python_version()} at {sys.executable}"
    return Check("python", OK, says)


def _packages() -> Iterator[Check]:
    installed = {name: _version(name) for name in PACKAGES}
    for name, version in installed.items():
        hint = 'not installed: pip install "memtrace-otel[collector]"'
        yield Check(name, OK if version else FINDING, version or hint)


def _version(package: str) -> str:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(package)
    return ""


def _sqlite(version: tuple[int, int, int]) -> Check:
    text = ".".join(map(str, version))
    if version >= WAL_RESET_FIXED:
        return Check("sqlite", OK, text)
    return Check(
        "sqlite",
        WARNING,
        f"{text} has the WAL-reset bug (fixed in 3.51.3); one connection writes and checkpoints "
        "here, which keeps clear of it: let no other program write to the store",
    )


def _shared_store(url: str) -> Iterator[Check]:
    try:
        with contextlib.closing(LoglessData(url)) as data:
            graphs = len(data.facts.graphs())
        readers = report_readers(url)
    except MemtraceError as error:
        state = UNREACHABLE if error.exit_code == EXIT_UNREACHABLE else FINDING
        yield Check("store", state, str(error))
        return
    yield Check("store", OK, f"the database answers; it holds {graphs} graphs")
    if readers:
        yield Check("report views", OK, f"read by {', '.join(readers)}")
    else:
        hint = "SELECT memtrace_report.allow('…') lets a role in, for the dashboards"
        yield Check("report views", WARNING, f"nobody but their owner may read them; {hint}")


def _store(folder: Path) -> Iterator[Check]:
    if not folder.exists():
        yield Check("store", OK, f"{folder} does not exist yet; it is made on first use")
        return
    if not folder.is_dir() or not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        yield Check("store", FINDING, f"{folder} is not a folder that can be read and written")
        return
    yield _owner(folder)
    yield _log(folder / "log")
    for name in DATABASES:
        if (folder / name).exists():
            yield _database(folder / name)
    if (folder / CASES).exists():
        yield from _flagged_answers(folder / CASES)
        yield from _undelivered(folder / CASES)


def _owner(folder: Path) -> Check:
    if not (folder / LOCK_FILE).exists():
        return Check("store", OK, f"{folder} is not in use")
    try:
        ownership = try_own(folder)
    except MemtraceError as error:
        return Check("store", FINDING, str(error))
    note = read_owner(folder)
    if isinstance(ownership, Ownership):
        ownership.release()
        stale = f"; process {note.pid} left without a goodbye" if note else ""
        return Check("store", OK, f"{folder} is not in use{stale}")
    who = f"memtrace-otel {note.command} (process {note.pid})" if note else "another process"
    return Check("store", OK, f"{folder} is in use by {who}")


def _log(folder: Path) -> Check:
    if not folder.exists():
        return Check("log", OK, "empty")
    damages: list[reader.Damage] = []
    try:
        records = sum(1 for _ in reader.read(folder, START, damages.append))
    except OSError as error:
        return Check("log", DAMAGED, f"{folder} cannot be read: {error}")
    if damages:
        first = damages[0]
        lost = sum(damage.size for damage in damages)
        return Check(
            "log",
            DAMAGED,
            f"{lost} bytes in {len(damages)} places cannot be read, first in segment "
            f"{first.position.segment} at offset {first.position.offset} ({first.reason}); "
            f"{records} requests are intact; restore {folder} from a backup to have the rest",
        )
    return Check("log", OK, f"{records} requests, all intact")


def _database(path: Path) -> Check:
    try:
        uri = f"{path.resolve().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as connection:
            (result,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        result = str(error)
    if result == "ok":
        return Check(path.name, OK, f"{path.stat().st_size} bytes, intact")
    hint = (
        "restore it from a backup"
        if path.name == CASES
        else "remove it: it is rebuilt from the log"
    )
    return Check(path.name, DAMAGED, f"{path}: {result}; {hint}")


def _flagged_answers(path: Path) -> Iterator[Check]:
    """Nothing where the file cannot be read, which the check of the file says."""
    name = "flagged answers"
    try:
        uri = f"{path.resolve().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as connection:
            rows = connection.execute("SELECT state, count(*) FROM task GROUP BY state")
            counts = dict.fromkeys(queue.STATES, 0) | dict(rows.fetchall())
    except sqlite3.Error:
        return
    says = ", ".join(f"{counts[state]} {state.replace('_', ' ')}" for state in queue.STATES)
    if counts[queue.SET_ASIDE]:
        hint = "`memtrace-otel verdicts --set-aside` says why, `attribute` tries them again"
        yield Check(name, FINDING, f"{says}; {hint}")
    else:
        yield Check(name, OK, says)


def _undelivered(path: Path) -> Iterator[Check]:
    """Nothing where all is delivered, or where the file cannot be read."""
    try:
        uri = f"{path.resolve().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as connection:
            statement = "SELECT count(*) FROM outbox WHERE state = 'abandoned'"
            (count,) = connection.execute(statement).fetchone()
    except sqlite3.Error:
        return
    if count:
        hint = "`memtrace-otel verdicts --undelivered` says why, `--redeliver` sends them again"
        yield Check("verdicts sent on", FINDING, f"{count} were not taken; {hint}")


def _access(config: Config) -> Iterator[Check]:
    """Who may come in, in numbers: no name of a token is told."""
    if not config.auth.is_on:
        yield Check("authentication", OK, f"off: who reaches {config.server.host} may ask")
    else:
        try:
            directory = read_directory(Path(config.auth.tokens_file))
        except MemtraceError as error:
            yield Check("authentication", FINDING, str(error))
        else:
            expired = sum(not grant.holds(time.time()) for grant in directory.tokens.values())
            says = (
                f"{len(directory.tokens)} tokens ({expired} expired) and "
                f"{len(directory.certificates)} certificates of {len(directory.tenants())} tenants"
            )
            yield Check("authentication", OK, says)
    if config.tls.is_on:
        try:
            check_files(config.tls)
        except MemtraceError as error:
            yield Check("tls", FINDING, str(error))
        else:
            yield Check("tls", OK, config.tls.certificate)


def _ports(config: Config, owner: Owner | None) -> Iterator[Check]:
    server = config.server
    for name in ("grpc_port", "http_port", "api_port"):
        port = getattr(server, name)
        state, says = OK, f"{server.host}:{port} is free"
        if port and not _is_free(server.host, port):
            ours = owner is not None and owner.api and _answers(owner.api)
            state = OK if ours else FINDING
            says = f"{server.host}:{port} is taken" + (
                f", with memtrace-otel {owner.command} running (process {owner.pid})"
                if ours and owner
                else f"; end what holds it or choose another --{name.replace('_', '-')}"
            )
        yield Check(name.replace("_", " "), state, says)


def _is_free(host: str, port: int) -> bool:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        socket.create_server((host, port), family=family).close()
    except OSError:
        return False
    return True


def _beyond(config: Config) -> Iterator[Check]:
    """Where things go on to, and whether the page can link there."""
    for name, url in (
        ("forward", config.forward.url),
        ("forward query", config.forward.query_url),
        ("telemetry", config.telemetry.otlp_url),
    ):
        if url:
            yield _endpoint(name, url)
    if config.explorer.trace_url:
        yield Check("links to traces", OK, config.explorer.trace_url)
    elif config.forward.url:
        says = "explorer.trace_url is not set: nothing on the page leads to where traces are"
        yield Check("links to traces", WARNING, says)


def _endpoint(name: str, url: str) -> Check:
    if _answers(url):
        return Check(name, OK, f"{url} accepts connections")
    return Check(name, UNREACHABLE, f"{url} does not accept connections; is it running?")


def _answers(url: str) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        with socket.create_connection((parts.hostname or "", port), _CONNECT_SECONDS):
            return True
    except (OSError, ValueError):
        return False


def _digest_key(environment: Mapping[str, str]) -> Check:
    name = "digest key"
    if environment.get("MEMTRACE_DIGEST_KEY") == "plain":
        return Check(name, WARNING, "plain: digests of short texts can be guessed")
    if environment.get("MEMTRACE_DIGEST_KEY"):
        return Check(name, OK, "from MEMTRACE_DIGEST_KEY")
    given = environment.get("MEMTRACE_DIGEST_KEY_FILE")
    state_folder = Path(environment.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    path = Path(given) if given else state_folder / "memtrace-otel" / "digest.key"
    if not path.exists():
        if given:
            return Check(name, FINDING, f"{path} (MEMTRACE_DIGEST_KEY_FILE) does not exist")
        return Check(name, OK, f"{path} does not exist yet; agents make it on first use")
    if not os.access(path, os.R_OK):
        return Check(name, FINDING, f"{path} cannot be read by this user")
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        return Check(name, FINDING, f"{path} is readable by others: chmod 600 {path}")
    return Check(name, OK, f"{path}, readable by you only")
