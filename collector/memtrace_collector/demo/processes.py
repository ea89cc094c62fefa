"""Child processes of the demo: started with a log file, ended by their own process id."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from memtrace_collector.errors import UnreachableError

START_SECONDS = 30.0
STOP_SECONDS = 45.0
"""Longer than `up` takes to drain what it has taken."""
_TAIL_LINES = 15


@contextmanager
def server(
    name: str, command: Sequence[str], environment: Mapping[str, str], log: Path
) -> Iterator[str]:
    """Run a server for as long as the context lasts; gives the first line that it prints.

    Raises:
        UnreachableError: it ended, or said nothing within ``START_SECONDS``.
    """
    process = _start(command, environment, log)
    try:
        yield _first_line(name, process, log)
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout:
            process.stdout.close()


def run_to_end(
    name: str,
    command: Sequence[str],
    environment: Mapping[str, str],
    log: Path,
    progress: Callable[[str], None],
) -> None:
    """Run a program to its end; each line that it prints goes to ``progress``.

    Raises:
        UnreachableError: it failed; the message ends with the tail of its log.
    """
    process = _start(command, environment, log)
    try:
        with process:
            for line in process.stdout or ():
                progress(line.rstrip())
    except BaseException:
        process.kill()
        raise
    if process.returncode:
        raise UnreachableError(_failure(name, process.returncode, log))


def _start(
    command: Sequence[str], environment: Mapping[str, str], log: Path
) -> subprocess.Popen[str]:
    with log.open("w") as errors:
        return subprocess.Popen(  # noqa: S603 - this interpreter and scripts of this package
            command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
        )


def _first_line(name: str, process: subprocess.Popen[str], log: Path) -> str:
    lines: list[str] = []
    stream = process.stdout
    if stream is None:
        raise UnreachableError(f"{name} has no output to read its address from")
    waiting = threading.Thread(target=lambda: lines.append(stream.readline()), daemon=True)
    waiting.start()
    waiting.join(START_SECONDS)
    if lines and lines[0]:
        return lines[0].strip()
    raise UnreachableError(_failure(name, process.poll(), log))


def _failure(name: str, code: int | None, log: Path) -> str:
    state = "did not start in time" if code is None else f"ended with exit code {code}"
    tail = "\n".join(log.read_text("utf-8", "replace").splitlines()[-_TAIL_LINES:])
    return f"{name} {state}; the end of {log}:\n{tail}"
