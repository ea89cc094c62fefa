"""Making variables: what an operation reads and produces, by kind.

Each function returns at once; the reference is worked out when something first needs it, so
that a program without an SDK pays for no digest. Content that is not a text is digested as its
RFC 8785 JSON; it is read when the reference is first needed, so give a copy of what may change
before that.
"""

from __future__ import annotations

from collections.abc import Mapping

from memtrace_otel import runtime, semconv
from memtrace_otel.digests import Parts
from memtrace_otel.variables import Variable

_new = object.__new__
"""Makes a variable without the second call that a constructor is: programs without an SDK make
as many variables as others, and must hardly notice."""


class DeferredVariable(Variable):
    """A variable whose reference is worked out on first use.

    Attributes:
        known_ref: the reference, once worked out; else empty.
        parts: what it is made of.
    """

    __slots__ = ("known_ref", "parts")
    known_ref: str
    parts: Parts

    @property
    def ref(self) -> str:
        if not self.known_ref:
            self.known_ref = runtime.get().digests.reference(self.parts)
        return self.known_ref

    @property
    def content(self) -> object:
        return self.parts[1]


class DeferredRecord(Variable):
    """A record of a library at a version that has no content: deleted, or not visible."""

    __slots__ = ("_id", "_store", "_system", "_version")

    def __init__(self, id: object, system: str, store: str, version: str) -> None:
        super().__init__("")
        self._id = id
        self._system = system
        self._store = store
        self._version = version

    @property
    def ref(self) -> str:
        return self._ref or self._resolve()

    def _resolve(self) -> str:
        name = runtime.get().digests.library_id(self._system, self._id, self._store)
        self._ref = ref = f"{semconv.KIND_MEMORY}:{name}@{self._version}"
        return ref


def _variable(kind: str, content: object, id: str | None) -> Variable:
    variable = _new(DeferredVariable)
    variable.known_ref = ""
    variable.parts = (kind, content, id, "", "", None)
    return variable


def message(content: object, id: str | None = None) -> Variable:
    """A message or document given to the system; ``id`` is taken as it is."""
    return _variable(semconv.KIND_MESSAGE, content, id)


def fact(content: object, id: str | None = None) -> Variable:
    """An extracted candidate fact, or text that a decision authored."""
    return _variable(semconv.KIND_FACT, content, id)


def memory(
    content: object,
    id: object,
    *,
    system: str,
    store: str = "",
    state: Mapping[str, object] | None = None,
) -> Variable:
    """A stored memory record with this content.

    Args:
        content: the record's text, or a JSON-like value.
        id: the library's own id of the record; digested unless it is opaque.
        system: the library, as in ``memtrace.system``.
        store: name of the store, where ids are unique only inside one.
        state: what else changes the record's meaning (validity, expiry, tags, status).
    """
    variable = _new(DeferredVariable)
    variable.known_ref = ""
    variable.parts = (semconv.KIND_MEMORY, content, id, system, store, state)
    return variable


def deleted_memory(id: object, *, system: str, store: str = "") -> Variable:
    """The tombstone of a memory record: what deleting it produces."""
    return DeferredRecord(id, system, store, semconv.DELETED_VERSION)


def unknown_memory(id: object, *, system: str, store: str = "") -> Variable:
    """A memory record at whichever version was current: nobody could see it."""
    return DeferredRecord(id, system, store, semconv.UNKNOWN_VERSION)


def document(content: object, id: object = None, *, system: str = "", store: str = "") -> Variable:
    """An indexed chunk; ``id`` is the library's with ``system``, else taken as it is."""
    variable = _new(DeferredVariable)
    variable.known_ref = ""
    variable.parts = (semconv.KIND_DOCUMENT, content, id, system, store, None)
    return variable


def query(content: object, id: str | None = None) -> Variable:
    """A question: the user's, or a rewritten one."""
    return _variable(semconv.KIND_QUERY, content, id)


def context(content: object, id: str | None = None) -> Variable:
    """An assembled prompt or context."""
    return _variable(semconv.KIND_CONTEXT, content, id)


def answer(content: object, id: str | None = None) -> Variable:
    """What the model answered: one per choice."""
    return _variable(semconv.KIND_ANSWER, content, id)


def prompt(content: object, id: str | None = None) -> Variable:
    """A prompt template."""
    return _variable(semconv.KIND_PROMPT, content, id)
