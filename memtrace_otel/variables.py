"""References to variable versions: pure functions, no I/O, no OpenTelemetry.

A variable version is one immutable value; its reference is ``<kind>:<id>@<version>``
(DESIGN section 3.1). Digests are HMAC-SHA-256 under a :class:`DigestKey`, or plain SHA-256
when asked for; versions are comparable only under the same key.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from memtrace_otel import canonical_json, semconv

MAX_ID_BYTES = 200
_WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680"
    + "".join(map(chr, range(0x2000, 0x200B)))
    + "\u2028\u2029\u202f\u205f\u3000"
)
"""The Unicode property White_Space; ``str.strip`` would also take U+001C to U+001F."""
_ESCAPED_IN_ID = re.compile(
    r"[%@\x00-\x20\x7f-\x9f\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_OPAQUE_ID = re.compile(
    r"[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}"  # UUID
    r"|[0-9]{1,20}"
    r"|[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}"  # ULID
    r"|[0-9a-fA-F]{24}"  # ObjectId
)


class VariableRef(NamedTuple):
    """A parsed reference. ``str()`` gives the wire form."""

    kind: str
    id: str
    version: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}@{self.version}"

    @property
    def record(self) -> str:
        """``kind:id``: the record whose version this is."""
        return f"{self.kind}:{self.id}"


class Variable:
    """A reference together with the content it stands for (``None``: not known here).

    Equal when reference and content are.
    """

    __slots__ = ("_content", "_ref")

    def __init__(self, ref: str, content: object = None) -> None:
        self._ref = ref
        self._content = content

    @property
    def ref(self) -> str:
        """The reference in its wire form."""
        return self._ref

    @property
    def content(self) -> object:
        """The content; ``None`` when it is not known here."""
        return self._content

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Variable):
            return NotImplemented
        return self.ref == other.ref and self.content == other.content

    def __hash__(self) -> int:
        return hash(self.ref)

    def __repr__(self) -> str:
        return f"Variable({self.ref!r})"

    def __str__(self) -> str:
        return self.ref


def parse(reference: str) -> VariableRef:
    """Split a reference at its first ``:`` and last ``@``.

    Raises:
        ValueError: the text is not ``<kind>:<id>@<version>`` with a known kind.

    """
    kind, colon, rest = reference.partition(":")
    identifier, at, version = rest.rpartition("@")
    if not (colon and at and identifier and version) or kind not in semconv.KINDS:
        raise ValueError(f"not a variable reference (<kind>:<id>@<version>): {reference[:80]!r}")
    return VariableRef(kind, identifier, version)


def record_of(reference: str) -> str:
    """``kind:id`` of a reference, without validating it."""
    return reference.rpartition("@")[0] or reference


def version_of(reference: str) -> str:
    """The version part of a reference, without validating it."""
    return reference.rpartition("@")[2]


def text_version(version: str) -> str:
    """The text digest of a version, without its state: equal texts compare equal."""
    return version.partition("~")[0]


def clean_text(text: str) -> str:
    """The form that is digested: lone surrogates replaced, NFC, no outer White_Space."""
    if text.isascii():
        return text.strip(_WHITE_SPACE)
    return unicodedata.normalize("NFC", _SURROGATE.sub("\ufffd", text)).strip(_WHITE_SPACE)


def content_bytes(content: object) -> bytes:
    """UTF-8 of a text's clean form; a value that is not one text is its RFC 8785 JSON."""
    text = clean_text(content) if isinstance(content, str) else canonical_json.dumps(content)
    return text.encode()


@dataclass(frozen=True, slots=True)
class DigestKey:
    """The key under which versions are made; ``secret=None`` is ``plain`` SHA-256.

    ``name`` is what travels in ``memtrace.lineage``: 8 hex digits of the key's own SHA-256.
    """

    secret: bytes | None

    @property
    def name(self) -> str:
        if self.secret is None:
            return semconv.KEY_PLAIN
        return hashlib.sha256(self.secret).hexdigest()[:8]

    def digest(self, content: object) -> str:
        """64 hex digits over :func:`content_bytes`."""
        data = content_bytes(content)
        if self.secret is None:
            return hashlib.sha256(data).hexdigest()
        return hmac.digest(self.secret, data, "sha256").hex()


PLAIN = DigestKey(None)


def state_digest(state: Mapping[str, object]) -> str:
    """6 hex digits for what else changes a record's meaning (validity, tags, status …)."""
    return hashlib.sha256(canonical_json.dumps(dict(state)).encode()).hexdigest()[:6]


opaque = _OPAQUE_ID.fullmatch
"""Matches a UUID, ULID, ObjectId or integer: what cannot hold a user's text."""


def is_opaque(identifier: str) -> bool:
    """Whether an id cannot hold a user's text (see :data:`opaque`)."""
    return opaque(identifier) is not None


def encode_id(identifier: str, key: DigestKey) -> str:
    """Percent-encode what would break a reference; digest an id over 200 bytes."""
    identifier = _SURROGATE.sub("\ufffd", identifier)
    encoded = _ESCAPED_IN_ID.sub(
        lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), identifier
    )
    if not encoded or len(encoded.encode()) > MAX_ID_BYTES:
        return key.digest(identifier)[:32]
    return encoded


def library_id(system: str, identifier: object, key: DigestKey, store: str = "") -> str:
    """An id that a library made: ``system[:store]:id``, digested unless it is opaque."""
    text = str(identifier)
    part = text if is_opaque(text) else key.digest(text)[:32]
    return encode_id(f"{system}:{store}:{part}" if store else f"{system}:{part}", key)


def make(
    kind: str,
    content: object,
    *,
    key: DigestKey,
    id: str | None = None,
    state: Mapping[str, object] | None = None,
) -> VariableRef:
    """The reference of ``content``: declared ``id``, else the content digest as id."""
    digest = key.digest(content)
    version = f"{digest[:12]}~{state_digest(state)}" if state else digest[:12]
    return VariableRef(kind, digest[:32] if id is None else encode_id(id, key), version)


def deleted(kind: str, id: str, key: DigestKey) -> VariableRef:
    """The tombstone of a record."""
    return VariableRef(kind, encode_id(id, key), semconv.DELETED_VERSION)


def unknown(kind: str, id: str, key: DigestKey) -> VariableRef:
    """Whichever version of the record was current: nobody could see it."""
    return VariableRef(kind, encode_id(id, key), semconv.UNKNOWN_VERSION)
