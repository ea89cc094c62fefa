"""What the tests of several views need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memtrace_collector.store.sqlite_cases import SqliteCaseStore


@pytest.fixture
def cases(tmp_path: Path) -> Iterator[SqliteCaseStore]:
    """A store without verdicts."""
    store = SqliteCaseStore(tmp_path / "cases.db")
    yield store
    store.close()
