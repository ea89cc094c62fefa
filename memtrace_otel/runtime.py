"""The state of this process: configuration, key, indexes, tracer. One object, replaceable."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

from opentelemetry import trace
from opentelemetry.trace import Tracer, TracerProvider

from memtrace_otel import config as configuration
from memtrace_otel import digest_key
from memtrace_otel.config import Config
from memtrace_otel.content import Redactor
from memtrace_otel.digests import Digests
from memtrace_otel.guard import guard
from memtrace_otel.lineage import LineageIndex
from memtrace_otel.recent import DeferredValues
from memtrace_otel.sequence import ProcessSequence
from memtrace_otel.variables import DigestKey

SCOPE_NAME = "memtrace_otel"


class Runtime:
    """Everything that operations of one process share.

    Attributes:
        tracer_provider: where spans go; ``None``: OpenTelemetry's global provider.
        clock: nanoseconds since the epoch for span times; ``None``: the SDK's own clock.
    """

    def __init__(
        self,
        config: Config | None = None,
        *,
        tracer_provider: TracerProvider | None = None,
        clock: Callable[[], int] | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        self.config = config or configuration.from_environment()
        self.tracer_provider = tracer_provider
        self.clock = clock
        self.redactor = redactor
        self.lineage = LineageIndex()
        self.recent = DeferredValues()
        self.sequence = ProcessSequence()
        self._digests: Digests | None = None
        self._tracer: Tracer | None = None
        self._traced: TracerProvider | None = None
        with guard("tracer provider"):
            # Also loads the provider that OTEL_PYTHON_TRACER_PROVIDER may name.
            trace.get_tracer_provider()

    @property
    def digests(self) -> Digests:
        """Digests under this process's key; the first use may read or make the key file."""
        return self._digests or self._load_digests()

    def _load_digests(self) -> Digests:
        # Not functools.cached_property: before Python 3.12 its lock may be held across a fork.
        with _lock:
            if self._digests is None:
                self._digests = Digests(digest_key.load(self.config))
            return self._digests

    @property
    def key(self) -> DigestKey:
        """The key under which references are made."""
        return self.digests.key

    def provider(self) -> TracerProvider | None:
        """The provider in use; ``None`` when no SDK is configured."""
        if self.tracer_provider is not None:
            return self.tracer_provider
        # Asking through get_tracer_provider() costs a microsecond for an environment lookup,
        # a third of what an operation without SDK may take.
        provider: TracerProvider | None = getattr(trace, "_TRACER_PROVIDER", _ASK)
        return _ask() if provider is _ASK else provider

    def tracer(self, provider: TracerProvider) -> Tracer:
        """This package's tracer of ``provider``."""
        if self._tracer is None or self._traced is not provider:
            self._tracer = provider.get_tracer(SCOPE_NAME, distribution_version())
            self._traced = provider
        return self._tracer

    def service_name(self) -> str:
        """``service.name`` of the provider's resource, else of the environment."""
        resource = getattr(self.provider(), "resource", None)
        name = resource.attributes.get("service.name") if resource else None
        return str(name or self.config.service_name or "unknown_service")

    def after_fork(self) -> None:
        """Make this copy of a parent's state the child's own."""
        self.sequence.renew()
        self.recent = DeferredValues()  # the parent's lock may be held for ever


_ASK = trace.NoOpTracerProvider()
"""Marks a missing attribute, as no provider can be this object."""
_lock = threading.RLock()
_current: Runtime | None = None


def _ask() -> TracerProvider | None:
    provider = trace.get_tracer_provider()
    return None if isinstance(provider, trace.ProxyTracerProvider) else provider


def get() -> Runtime:
    """The runtime of this process, made on first use."""
    return _current or _make()


def _make() -> Runtime:
    global _current  # noqa: PLW0603  # the one place where process-wide state is kept
    with _lock:
        if _current is None:
            _current = Runtime()
        return _current


def install(runtime: Runtime | None) -> Runtime | None:
    """Replace the runtime (``None``: a new one on next use); returns the one before."""
    global _current
    with _lock:
        before, _current = _current, runtime
    return before


def configure(*, tracer_provider: TracerProvider | None) -> None:
    """Send operations to this provider instead of OpenTelemetry's global one."""
    get().tracer_provider = tracer_provider


def set_redactor(redactor: Redactor | None) -> None:
    """Let ``redactor(reference, text)`` decide what of each captured text leaves the process.

    It returns the text to send, or ``None`` to withhold it. A changed or withheld text is
    listed in ``cut``. When it raises, the text is withheld.
    """
    get().redactor = redactor


def distribution_version() -> str:
    """Version of the installed distribution."""
    try:
        return version("memtrace-otel")
    except PackageNotFoundError:
        return "0"


def _after_fork() -> None:
    global _lock  # noqa: PLW0603  # the parent's lock may have been held by another thread
    _lock = threading.RLock()
    if _current is not None:
        _current.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
