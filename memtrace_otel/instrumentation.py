"""Switching this distribution's instrumentations on and off from code."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

from opentelemetry.instrumentation.instrumentor import (  # type: ignore[attr-defined]  # the whole module says "type: ignore"
    BaseInstrumentor,
)

from memtrace_otel.guard import guard, logger

_GROUP = "opentelemetry_instrumentor"
_PREFIX = "memtrace_"


def _entry_points() -> list[EntryPoint]:
    return [point for point in entry_points(group=_GROUP) if point.name.startswith(_PREFIX)]


def _instrumentor(point: EntryPoint) -> BaseInstrumentor | None:
    try:
        instrumentor: BaseInstrumentor = point.load()()
    except ImportError as error:
        logger.debug("memtrace_otel: %s is not available: %s", point.name, error)
        return None
    return instrumentor


def instrument() -> None:
    """Switch on every instrumentation of this distribution whose library is installed.

    The same as running the program under ``opentelemetry-instrument``. Calling it twice is
    harmless.
    """
    for point in _entry_points():
        with guard(f"instrument {point.name}"):
            instrumentor = _instrumentor(point)
            if instrumentor is not None and not instrumentor.is_instrumented_by_opentelemetry:
                instrumentor.instrument()


def uninstrument() -> None:
    """Restore everything that :func:`instrument` or zero-code instrumentation replaced."""
    for point in _entry_points():
        with guard(f"uninstrument {point.name}"):
            instrumentor = _instrumentor(point)
            if instrumentor is not None and instrumentor.is_instrumented_by_opentelemetry:
                instrumentor.uninstrument()
