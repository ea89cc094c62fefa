"""mem0ai 1.x and 2.x, ``Memory`` and ``AsyncMemory``: every operation with its lineage.

Public methods become operations; what happens inside them is seen at mem0's inner methods and at
the methods of a memory's parts, whose classes are wrapped when a memory is first used. The
library's behaviour does not change: nothing is added to any class, calls and results pass
through as they are, and mem0 is not imported before the program does so itself (it reads its
settings from the environment while it is imported).
"""

from __future__ import annotations

import functools
import importlib
import inspect
import logging
import sys
import threading
import weakref
from collections.abc import Callable, Collection, Mapping
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any, NamedTuple

import wrapt
from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined]  # upstream ignores its whole module

from memtrace_otel import runtime
from memtrace_otel.guard import guard, guarded
from memtrace_otel.instrumentors import mem0_search, mem0_stages
from memtrace_otel.instrumentors.mem0_add_v1 import AddV1
from memtrace_otel.instrumentors.mem0_add_v2 import AddV2
from memtrace_otel.instrumentors.mem0_replies import ReplyReader
from memtrace_otel.instrumentors.mem0_shells import (
    Arguments,
    InCallersContext,
    Observation,
    Opener,
    async_shell,
    offered,
    sync_shell,
)
from memtrace_otel.instrumentors.mem0_stages import Library

logger = logging.getLogger("memtrace_otel")

MODULE = "mem0.memory.main"
MAJORS = (1, 2)
CLASSES = ("Memory", "AsyncMemory")
PUBLIC = ("add", "search", "get_all", "get", "update", "delete", "delete_all")
INNER = {
    "_add_to_vector_store": "pipeline",
    "_create_memory": "create",
    "_update_memory": "change",
    "_delete_memory": "remove",
}
"""Inner methods and the seam that each of them is."""
POOLED = (
    "_add_to_vector_store",
    "_add_to_graph",
    "_search_vector_store",
    "_get_all_from_vector_store",
)
"""Inner methods that ``Memory`` of 1.x hands to a thread pool."""
PARTS: Mapping[str, Mapping[str, str | None]] = {
    "llm": {"generate_response": "model"},
    "vector_store": {
        "search": "search",
        "get": "get",
        "insert": "insert",
        "update": "update",
        "delete": "delete",
    },
    "reranker": {"rerank": "rerank"},
    "db": {"get_last_messages": "last_messages"},
    "graph": {"search": None, "get_all": None},
}
"""Attributes of a memory, their methods, and the seam that each of these is. Without one it is
only run in its caller's context: ``Memory`` of 1.x hands it to a thread pool."""


class Replacement(NamedTuple):
    """An attribute of a class that was replaced."""

    owner: type
    name: str
    original: Any
    replacement: Any


class Mem0Instrumentor(BaseInstrumentor):  # type: ignore[misc]  # the base class is untyped
    """Instruments mem0ai; see the module. ``instrument(tracer_provider=…)`` is optional."""

    def instrumentation_dependencies(self) -> Collection[str]:
        return ("mem0ai >= 1, < 3",)

    def _instrument(self, **kwargs: Any) -> None:
        library = installed()
        if library is None:
            return
        if kwargs.get("tracer_provider") is not None:
            runtime.configure(tracer_provider=kwargs["tracer_provider"])
        _patches.enable(library)

    def _uninstrument(self, **_kwargs: Any) -> None:
        _patches.disable()


def installed() -> Library | None:
    """The installed mem0, if this module knows that version."""
    try:
        text = version("mem0ai")
    except PackageNotFoundError:
        logger.debug("memtrace_otel: mem0ai is not installed; it is not instrumented")
        return None
    first = text.partition(".")[0]
    major = int(first) if first.isdecimal() else 0
    if major not in MAJORS:
        logger.info("memtrace_otel: mem0ai %s is not supported (1.x and 2.x are)", text)
        return None
    return Library(text, major)


class Patches:
    """What is replaced in mem0's classes, and how to put it back. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._library: Library | None = None
        self._generation = 0
        self._hooked = False
        self._replaced: list[Replacement] = []
        self._known_parts: dict[str, weakref.WeakSet[type]] = {}

    def enable(self, library: Library) -> None:
        """Wrap mem0's classes: now if it is imported, else as soon as it is."""
        with self._lock:
            self._library = library
            if self._hooked:
                module = sys.modules.get(MODULE)
                if module is not None:
                    self.wrap(module)
                return
            self._hooked = True
        wrapt.register_post_import_hook(self.wrap, MODULE)

    def disable(self) -> None:
        """Put everything back; what somebody else wrapped again passes calls through."""
        with self._lock:
            self._library = None
            self._generation += 1
            for owner, name, original, replacement in reversed(self._replaced):
                if vars(owner).get(name) is replacement:
                    setattr(owner, name, original)
            self._replaced.clear()
            self._known_parts.clear()

    @guarded
    def wrap(self, module: ModuleType) -> None:
        """Wrap the classes of ``mem0.memory.main``."""
        with self._lock:
            library = self._library
            if library is None or self._replaced:
                return
            reader = ReplyReader(importlib.import_module("mem0.memory.utils"))
            openers = public_openers(library, reader)
            for owner in (getattr(module, name) for name in CLASSES):
                for name in PUBLIC:
                    self._replace(owner, name, self._public(openers[name]))
                for name, seam in INNER.items():
                    self._replace(owner, name, offered(seam), pooled=name in POOLED)
                for name in POOLED:
                    if name not in INNER:
                        self._replace(owner, name, None, pooled=True)

    def _public(self, opener: Opener) -> Opener:
        generation = self._generation

        def open_public(memory: Any, arguments: Arguments) -> Observation | None:
            if generation != self._generation or runtime.get().provider() is None:
                return None
            self._wrap_parts(memory)
            return opener(memory, arguments)

        return open_public

    def _wrap_parts(self, memory: object) -> None:
        for part, methods in PARTS.items():
            kind = type(getattr(memory, part, None))
            if kind not in self._known_parts.get(part, ()):
                self._wrap_part(part, kind, methods)

    def _wrap_part(self, part: str, kind: type, methods: Mapping[str, str | None]) -> None:
        with self._lock:
            self._known_parts.setdefault(part, weakref.WeakSet()).add(kind)
            for name, seam in methods.items():
                owner = next((base for base in kind.__mro__ if name in vars(base)), None)
                if owner is not None:
                    opener = offered(seam, part) if seam else None
                    with guard(f"mem0 {part}.{name}"):  # a class may not allow it
                        self._replace(owner, name, opener, pooled=seam is None)

    def _replace(
        self, owner: type, name: str, opener: Opener | None, *, pooled: bool = False
    ) -> None:
        original = vars(owner).get(name)
        if not inspect.isroutine(original) or any(
            (entry.owner, entry.name) == (owner, name) for entry in self._replaced
        ):
            return
        replacement: Any = original
        if opener is not None:
            shell = async_shell if inspect.iscoroutinefunction(original) else sync_shell
            replacement = wrapt.FunctionWrapper(original, shell(opener))
        if pooled:
            replacement = InCallersContext(replacement)
        setattr(owner, name, replacement)
        self._replaced.append(Replacement(owner, name, original, replacement))


def public_openers(library: Library, reader: ReplyReader) -> dict[str, Opener]:
    """What each public method becomes."""
    add = AddV1 if library.major == 1 else AddV2
    with_library: dict[str, Callable[..., Observation | None]] = {
        "search": mem0_search.SearchStage,
        "get_all": mem0_search.ReadStage,
        "get": mem0_search.GetObservation,
        "update": mem0_stages.update,
        "delete": mem0_stages.delete,
        "delete_all": mem0_stages.DeleteAllStage,
    }
    openers: dict[str, Opener] = {
        name: functools.partial(_open_with, make, library) for name, make in with_library.items()
    }
    openers["add"] = lambda memory, arguments: add(memory, library, reader, arguments)
    return openers


def _open_with(
    make: Callable[..., Observation | None], library: Library, memory: object, arguments: Arguments
) -> Observation | None:
    return make(memory, library, arguments)


_patches = Patches()
