"""The end of a process: what is still open is ended, then its sequence (DESIGN section 3.3)."""

from __future__ import annotations

import atexit
from collections.abc import Callable

from opentelemetry.context import Context
from opentelemetry.trace import TracerProvider

from memtrace_otel import packing, runtime, semconv
from memtrace_otel.guard import guard, guarded

_provider: TracerProvider | None = None
_endings: list[Callable[[], None]] = []


def expect(provider: TracerProvider) -> None:
    """See to it that operations sent to ``provider`` are followed by a farewell.

    Exit handlers run last in, first out, and the SDK registered its own when the provider was
    made: registered now, ours still finds it open.
    """
    global _provider  # noqa: PLW0603  # exit handlers are per process, too
    if provider is not _provider:
        _provider = provider
        _register()


def before(ending: Callable[[], None]) -> None:
    """Call ``ending`` when the process exits, while operations can still be counted."""
    _endings.append(ending)
    _register()


def _register() -> None:
    atexit.unregister(_at_exit)
    atexit.register(_at_exit)


def _at_exit() -> None:
    for ending in _endings:
        with guard("ending what is open"):
            ending()
    say()


@guarded
def say() -> None:
    """Say that this process's sequence has no later number."""
    state = runtime.get()
    provider = state.provider()
    if provider is None or not state.sequence.started:
        return
    span = state.tracer(provider).start_span(
        semconv.SPAN_NAMES[semconv.STEP_FAREWELL],
        context=Context(),
        attributes={
            semconv.MEMTRACE_SCHEMA_VERSION: semconv.SCHEMA_VERSION,
            semconv.MEMTRACE_STEP: semconv.STEP_FAREWELL,
        },
    )
    lineage = {semconv.SEQ: state.sequence.next(), semconv.KEY: state.digests.key_name}
    span.set_attribute(semconv.MEMTRACE_LINEAGE, packing.dumps(lineage))
    span.end()
    state.sequence.renew()
