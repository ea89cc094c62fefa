"""Digests of content under one key, fast enough for the host's hot path. No I/O.

Gives what :meth:`variables.DigestKey.digest` gives; keyed hash states are prepared once, and
recent texts are remembered, because a value is met again at each step that it passes.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Generic, TypeVar

from memtrace_otel import variables
from memtrace_otel.variables import DigestKey

if TYPE_CHECKING:
    from hashlib import _Hash

K = TypeVar("K")
V = TypeVar("V")

_BLOCK = 64
_MAX_CACHED_CHARS = 1_000
_GENERATION = 2_048


class Recent(Generic[K, V]):
    """A bounded mapping that forgets what was neither set nor found lately.

    Two generations of at most ``size`` entries each; no lock, because a lost update only costs
    a recomputation.
    """

    __slots__ = ("_old", "_size", "_young")

    def __init__(self, size: int) -> None:
        self._size = size
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        value = self._young.get(key)
        if value is None:
            value = self._old.get(key)
            if value is not None:
                self.set(key, value)
        return value

    def set(self, key: K, value: V) -> None:
        young = self._young
        young[key] = value
        if len(young) > self._size:
            self._old = young
            self._young = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)


class Digests:
    """Digests and encoded ids under one key."""

    __slots__ = ("_ids", "_inner", "_outer", "_texts", "key", "key_name")

    def __init__(self, key: DigestKey) -> None:
        self.key = key
        self.key_name = key.name
        self._inner, self._outer = _states(key.secret)
        self._texts: Recent[str, str] = Recent(_GENERATION)
        self._ids: Recent[object, str] = Recent(_GENERATION)

    def digest(self, content: object) -> str:
        """The first 32 of the 64 hex digits of the content's digest."""
        if type(content) is not str or len(content) > _MAX_CACHED_CHARS:
            return self._digest(variables.content_bytes(content))
        known = self._texts.get(content)
        if known is None:
            known = self._digest(variables.clean_text(content).encode())
            self._texts.set(content, known)
        return known

    def library_id(self, system: str, identifier: object, store: str) -> str:
        """:func:`variables.library_id`, remembered."""
        if type(identifier) is not str:
            return variables.library_id(system, identifier, self.key, store)
        name = (system, store, identifier)
        known = self._ids.get(name)
        if known is None:
            known = variables.library_id(system, identifier, self.key, store)
            self._ids.set(name, known)
        return known

    def declared_id(self, identifier: str) -> str:
        """:func:`variables.encode_id`, remembered."""
        known = self._ids.get(identifier)
        if known is None:
            known = variables.encode_id(identifier, self.key)
            self._ids.set(identifier, known)
        return known

    def _digest(self, data: bytes) -> str:
        inner = self._inner.copy()
        inner.update(data)
        if self._outer is None:
            return inner.hexdigest()[:32]
        outer = self._outer.copy()
        outer.update(inner.digest())
        return outer.hexdigest()[:32]


def _states(secret: bytes | None) -> tuple[_Hash, _Hash | None]:
    """HMAC's two hash states after the key block (RFC 2104); plain SHA-256 has only one."""
    if secret is None:
        return hashlib.sha256(), None
    if len(secret) > _BLOCK:
        secret = hashlib.sha256(secret).digest()
    block = secret.ljust(_BLOCK, b"\0")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block))
    return inner, hashlib.sha256(bytes(byte ^ 0x5C for byte in block))
