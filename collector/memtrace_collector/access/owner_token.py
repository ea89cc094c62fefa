"""How commands on this machine identify themselves to the process that owns the folder.

``owner.json``, which only the owner of the files can read, holds a key that is new at each start.
Whoever can read it can read the folder itself, so a token made with it is good for any tenant.
The tenant stands in the token, under the key's seal: nothing that is not sealed names one.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

PREFIX = "memtrace-owner"
_KEY_BYTES = 32


def new_key() -> str:
    """A key, as text."""
    return secrets.token_hex(_KEY_BYTES)


def make(key: str, tenant: str) -> str:
    """The token with which the holder of ``key`` acts for ``tenant``."""
    return f"{PREFIX}:{tenant}:{_seal(key, tenant)}"


def tenant_of(key: str, token: str) -> str | None:
    """The tenant for whom the holder of ``key`` made this token; None: somebody else made it."""
    prefix, _, rest = token.partition(":")
    tenant, _, seal = rest.rpartition(":")
    if prefix != PREFIX or not key or not tenant:
        return None
    return tenant if hmac.compare_digest(seal.encode(), _seal(key, tenant).encode()) else None


def is_one(token: str) -> bool:
    """Whether a token claims to be made by the owner's key."""
    return token.startswith(f"{PREFIX}:")


def _seal(key: str, tenant: str) -> str:
    return hmac.new(key.encode(), tenant.encode(), hashlib.sha256).hexdigest()
