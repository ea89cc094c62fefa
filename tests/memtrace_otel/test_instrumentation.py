"""Switching instrumentations on and off from code."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint

import pytest
from opentelemetry.instrumentation.instrumentor import BaseInstrumentor

import memtrace_otel
from memtrace_otel import instrumentation

CALLS: list[str] = []


class Working(BaseInstrumentor):
    def instrumentation_dependencies(self) -> list[str]:
        return []

    def _instrument(self, **options: object) -> None:
        CALLS.append("on")

    def _uninstrument(self, **options: object) -> None:
        CALLS.append("off")


class Broken(BaseInstrumentor):
    def instrumentation_dependencies(self) -> list[str]:
        return []

    def _instrument(self, **options: object) -> None:
        raise RuntimeError("broken")

    def _uninstrument(self, **options: object) -> None:
        raise RuntimeError("broken")


def offer(monkeypatch: pytest.MonkeyPatch, **targets: str) -> None:
    """Make these the installed entry points; targets are names of this module."""
    monkeypatch.setitem(sys.modules, "offered", sys.modules[__name__])
    points = [
        EntryPoint(name, f"{module}:{target}", "opentelemetry_instrumentor")
        for name, path in targets.items()
        for module, _, target in [path.partition(":")]
    ]
    monkeypatch.setattr(instrumentation, "entry_points", lambda group: points)


def test_only_this_distributions_instrumentations_are_switched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    CALLS.clear()
    offer(monkeypatch, memtrace_stub="offered:Working", other="offered:Broken")
    memtrace_otel.instrument()
    memtrace_otel.instrument()
    assert CALLS == ["on"]
    memtrace_otel.uninstrument()
    memtrace_otel.uninstrument()
    assert CALLS == ["on", "off"]


def test_a_broken_or_missing_instrumentation_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch,
    internal_errors_are_swallowed: None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    CALLS.clear()
    offer(
        monkeypatch,
        memtrace_absent="not_installed_library:Instrumentor",
        memtrace_broken="offered:Broken",
        memtrace_stub="offered:Working",
    )
    memtrace_otel.instrument()
    assert "on" in CALLS
    assert "instrument memtrace_broken failed" in caplog.text
    assert "absent" not in caplog.text
    memtrace_otel.uninstrument()
