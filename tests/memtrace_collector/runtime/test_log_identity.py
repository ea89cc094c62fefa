from __future__ import annotations

from pathlib import Path

import pytest

from memtrace_collector.errors import DamagedError
from memtrace_collector.runtime.log_identity import FILE_NAME, log_identity


def test_a_log_keeps_its_id(tmp_path: Path) -> None:
    known = log_identity(tmp_path)
    assert [log_identity(tmp_path) for _ in range(3)] == [known] * 3
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_two_logs_have_two_ids(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    assert len(set(map(log_identity, folders))) == 2


def test_something_else_in_its_place_is_damage(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text("not an id")
    with pytest.raises(DamagedError, match=FILE_NAME):
        log_identity(tmp_path)
