"""Digests of content under one key, fast enough for the host's hot path. No I/O.

Gives what :meth:`variables.DigestKey.digest` gives; keyed hash states are prepared once, and
recent references are remembered, because a value is met again at each step that it passes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar

from memtrace_otel import variables
from memtrace_otel.variables import DigestKey, opaque

if TYPE_CHECKING:
    from hashlib import _Hash

K = TypeVar("K")
V = TypeVar("V")

_BLOCK = 64
_MAX_CACHED_CHARS = 1_000
_REMEMBERED = 4_096
_MAX_PREFIX_BYTES = 100


Parts = tuple[str, object, object, str, str, Mapping[str, object] | None]
"""kind, content, id, system, store and state of a variable version.

With a system the id is the library's own, else a declared one; without an id the content digest
is the id."""


class Recent(Generic[K, V]):
    """A bounded mapping that forgets what was neither set nor found lately.

    Two generations of about ``size`` entries each; no lock, because a lost update only costs a
    recomputation. ``young`` and ``old`` may be used directly where a call is too dear.
    """

    __slots__ = ("_size", "old", "young")

    def __init__(self, size: int) -> None:
        self._size = size
        self.young: dict[K, V] = {}
        self.old: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """What was set for ``key``; found among the old, it is young again."""
        value = self.young.get(key)
        if value is None and self.old:
            value = self.old.get(key)
            if value is not None:
                self.set(key, value)
        return value

    def set(self, key: K, value: V) -> None:
        """Remember one entry."""
        self.young[key] = value
        if len(self.young) > self._size:
            self.turn()

    def set_all(self, keys: Iterable[K], value: V) -> None:
        """Remember the same value for many keys."""
        self.young.update(dict.fromkeys(keys, value))
        if len(self.young) > self._size:
            self.turn()

    def turn(self) -> None:
        """Let the young be the old, and forget those."""
        self.old = self.young
        self.young = {}

    def __len__(self) -> int:
        return len(self.young) + len(self.old)


class Digests:
    """Digests, ids and references under one key."""

    __slots__ = (
        "_ids",
        "_inner",
        "_outer",
        "_prefixes",
        "_references",
        "key",
        "key_name",
    )

    def __init__(self, key: DigestKey) -> None:
        self.key = key
        self.key_name = key.name
        self._inner, self._outer = _states(key.secret)
        self._references: dict[Parts, str] = {}
        self._ids: Recent[object, str] = Recent(_REMEMBERED // 2)
        self._prefixes: dict[tuple[str, str], str] = {}

    def reference(self, parts: Parts) -> str:
        """The reference of a variable version: :func:`variables.make` in its wire form."""
        _, content, identifier, _, _, state = parts
        if (
            type(content) is not str  # 1 and True are equal keys, and other values
            or not (identifier is None or type(identifier) is str)
            or state is not None
            or len(content) > _MAX_CACHED_CHARS
        ):
            return self._make(parts)
        known = self._references
        reference = known.get(parts)
        if reference is None:
            if len(known) >= _REMEMBERED:
                known.clear()
            known[parts] = reference = self._make(parts)
        return reference

    def _make(self, parts: Parts) -> str:
        kind, content, identifier, system, store, state = parts
        digest = self.digest(content)
        if identifier is None:
            name = digest
        elif system:
            prefix = self._prefixes.get((system, store))
            if prefix and type(identifier) is str and opaque(identifier):
                name = prefix + identifier
            else:
                name = self.library_id(system, identifier, store)
        else:
            name = self.declared_id(str(identifier))
        if state:
            return f"{kind}:{name}@{digest[:12]}~{variables.state_digest(state)}"
        return f"{kind}:{name}@{digest[:12]}"

    def digest(self, content: object) -> str:
        """The first 32 of the 64 hex digits of the content's digest."""
        hashed = self._inner.copy()
        hashed.update(variables.content_bytes(content))
        if self._outer is None:
            return hashed.hexdigest()[:32]
        keyed = self._outer.copy()
        keyed.update(hashed.digest())
        return keyed.hexdigest()[:32]

    def library_id(self, system: str, identifier: object, store: str) -> str:
        """:func:`variables.library_id`, quick for opaque ids."""
        text = str(identifier)
        if opaque(text):
            prefix = self._prefixes.get((system, store))
            if prefix is None:
                prefix = self._prefixes[system, store] = self._prefix(system, store)
                if len(self._prefixes) > _REMEMBERED:
                    self._prefixes.clear()
            if prefix:
                return prefix + text
        return self._remembered((system, store, text), self._library_id)

    def declared_id(self, identifier: str) -> str:
        """:func:`variables.encode_id`, remembered."""
        return self._remembered(identifier, self._declared_id)

    def _remembered(self, name: K, make: Callable[[K], str]) -> str:
        known = self._ids.get(name)
        if known is None:
            known = make(name)
            self._ids.set(name, known)
        return known

    def _library_id(self, name: tuple[str, str, str]) -> str:
        system, store, text = name
        return variables.library_id(system, text, self.key, store)

    def _declared_id(self, identifier: str) -> str:
        return variables.encode_id(identifier, self.key)

    def _prefix(self, system: str, store: str) -> str:
        """What stands before an opaque id, encoded; empty when the whole may be too long."""
        plain = f"{system}:{store}:" if store else f"{system}:"
        prefix = variables.encode_id(plain, self.key)
        fits = max(len(plain.encode("utf-8", "replace")), len(prefix.encode())) <= _MAX_PREFIX_BYTES
        return prefix if fits else ""


def _states(secret: bytes | None) -> tuple[_Hash, _Hash | None]:
    """HMAC's two hash states after the key block (RFC 2104); plain SHA-256 has only one."""
    if secret is None:
        return hashlib.sha256(), None
    if len(secret) > _BLOCK:
        secret = hashlib.sha256(secret).digest()
    block = secret.ljust(_BLOCK, b"\0")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block))
    return inner, hashlib.sha256(bytes(byte ^ 0x5C for byte in block))
