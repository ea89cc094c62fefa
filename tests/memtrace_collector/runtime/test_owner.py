from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memtrace_collector.errors import StoreInUseError, WrongUseError
from memtrace_collector.runtime.owner import (
    NOTE_FILE,
    Owner,
    Ownership,
    own_or_ask,
    owned,
    read_owner,
    try_own,
)
from tests.memtrace_collector.running import environment

HOLD = """
import os, sys, time
from pathlib import Path
from memtrace_collector.runtime.owner import Owner, try_own
ownership = try_own(Path(sys.argv[1]))
ownership.announce(Owner(os.getpid(), "up", "http://127.0.0.1:1"))
print("held", flush=True)
time.sleep(60)
"""


def test_a_folder_has_one_owner_at_a_time(tmp_path: Path) -> None:
    first = try_own(tmp_path)
    assert first is not None
    assert try_own(tmp_path) is None
    first.release()
    second = try_own(tmp_path)
    assert second is not None
    second.release()


def test_the_note_goes_with_its_owner(tmp_path: Path) -> None:
    with owned(tmp_path, "up"):
        assert read_owner(tmp_path) == Owner(os.getpid(), "up")
    assert read_owner(tmp_path) is None


def test_the_note_of_a_killed_process_means_nothing(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "held\n"
    owner = own_or_ask(tmp_path, "graphs")
    assert owner == Owner(process.pid, "up", "http://127.0.0.1:1")
    process.kill()
    process.wait(10)
    assert (tmp_path / NOTE_FILE).exists()
    ownership = own_or_ask(tmp_path, "graphs")
    assert isinstance(ownership, Ownership)
    ownership.release()


def test_a_folder_held_without_an_api_is_named_with_its_holder(tmp_path: Path) -> None:
    with (
        owned(tmp_path, "import"),
        pytest.raises(StoreInUseError, match=f"memtrace-otel import .process {os.getpid()}"),
    ):
        own_or_ask(tmp_path, "graphs", wait_seconds=0.1)


def test_a_note_that_is_not_one_is_no_owner(tmp_path: Path) -> None:
    (tmp_path / NOTE_FILE).write_text('{"pid": "many"}')
    assert read_owner(tmp_path) is None


def test_a_file_in_the_folder_s_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("")
    with pytest.raises(WrongUseError, match="cannot use"):
        try_own(tmp_path / "store")
