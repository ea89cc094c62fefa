from __future__ import annotations

from collections.abc import Iterator

import pytest

from memtrace_otel import guard, testing
from memtrace_otel.testing import Spans


@pytest.fixture(autouse=True)
def internal_errors_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMTRACE_RAISE_INTERNAL", "1")
    monkeypatch.setattr(guard, "_reported", set())


@pytest.fixture
def internal_errors_are_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEMTRACE_RAISE_INTERNAL")


@pytest.fixture
def spans() -> Iterator[Spans]:
    with testing.capture() as captured:
        yield captured
