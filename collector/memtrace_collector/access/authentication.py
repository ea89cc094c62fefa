"""Who is calling: what a client presents -> a caller with one tenant.

A client never names its tenant: no header and no attribute of a span counts, only what the
server's own file says about a token or a certificate.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import logging
import secrets
import threading
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from memtrace_collector.access import owner_token
from memtrace_collector.access.directory import (
    NO_LIMITS,
    Directory,
    Grant,
    Limits,
    read_directory,
)
from memtrace_collector.errors import ConfigError
from memtrace_collector.telemetry.metrics import NULL_METRICS, Metrics

logger = logging.getLogger(__name__)

DEFAULT_TENANT = "default"
LOOK_AGAIN_SECONDS = 1.0
DENIED = "not authenticated: send `authorization: Bearer TOKEN`"
"""The same for no, a wrong and an expired token: whoever tries tokens learns nothing."""


class Presented(NamedTuple):
    """What a client shows of itself, whichever door it uses."""

    authorization: str = ""
    """The header (or call metadata) of that name."""
    names: tuple[str, ...] = ()
    """Of its verified certificate: subject alternative names, then the common name."""


NOTHING = Presented()


class Caller(NamedTuple):
    """Somebody who was let in."""

    tenant: str
    """Empty: only metrics may be read."""
    is_operator: bool = False
    """Can read the folder's files anyway: the owner of the process."""
    reads_metrics: bool = False


class DeniedError(Exception):
    """The client did not show who it is."""

    def __init__(self) -> None:
        super().__init__(DENIED)


class Authenticator:
    """Maps what clients present to callers; follows changes of the file.

    Args:
        tokens_file: see :mod:`memtrace_collector.access.directory`; None: everybody who
            presents nothing better is the tenant ``default``.
        owner_key: of ``owner.json``; empty: no command on this machine is let in by it.
        wall: seconds since the Unix epoch.
        clock: seconds, monotonic.

    Raises:
        ConfigError: the file cannot be used.
    """

    def __init__(
        self,
        tokens_file: Path | None = None,
        owner_key: str = "",
        *,
        metrics: Metrics = NULL_METRICS,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file = tokens_file
        self._owner_key = owner_key
        self._metrics = metrics
        self._wall = wall
        self._clock = clock
        self._blind = secrets.token_bytes(32)
        self._looking = threading.Lock()
        self._seen = _version(tokens_file) if tokens_file else None
        self._directory = Directory()
        self._grants: Mapping[bytes, Grant] = {}
        if tokens_file:
            self._take(read_directory(tokens_file))
        self._look_at = clock() + LOOK_AGAIN_SECONDS

    @property
    def is_on(self) -> bool:
        """Whether clients have to show who they are."""
        return self._file is not None

    def tenants(self) -> Collection[str]:
        """Everybody who may come in, ``default`` included."""
        return self._directory.tenants() | {DEFAULT_TENANT}

    def limits_of(self, tenant: str) -> Limits:
        return self._directory.limits.get(tenant, NO_LIMITS)

    def authenticate(self, presented: Presented) -> Caller:
        """Who that is.

        Raises:
            DeniedError: nobody who is known, or a token that has expired, or a token and a
                certificate of different tenants.
        """
        self._follow()
        token = _token(presented.authorization)
        if token and owner_token.is_one(token):
            tenant = owner_token.tenant_of(self._owner_key, token)
            if tenant is None:
                raise DeniedError
            return Caller(tenant, is_operator=True, reads_metrics=True)
        if not self.is_on:
            return Caller(DEFAULT_TENANT, reads_metrics=True)
        shown = {
            tenant
            for name in presented.names
            if (tenant := self._directory.certificates.get(name)) is not None
        }
        if token:
            grant = self._grants.get(self._blinded(hashlib.sha256(token.encode()).digest()))
            if grant is None or not grant.holds(self._wall()):
                raise DeniedError
            if not grant.tenant:
                return Caller("", reads_metrics=True)
            shown.add(grant.tenant)
        if len(shown) != 1:
            raise DeniedError
        return Caller(shown.pop())

    def reload(self) -> None:
        """Look at the file again at the next call, also when it was looked at just now."""
        self._look_at = self._clock()
        self._seen = None

    def _follow(self) -> None:
        """Read the file again when it has changed; one that cannot be used changes nothing."""
        if self._file is None or self._clock() < self._look_at:
            return
        if not self._looking.acquire(blocking=False):
            return
        try:
            self._look_at = self._clock() + LOOK_AGAIN_SECONDS
            version = _version(self._file)
            if version == self._seen:
                return
            self._seen = version
            self._take(read_directory(self._file))
            logger.info("%s was read again", self._file)
        except ConfigError as error:
            self._metrics.add("memtrace.access.reload_failures", 1)
            logger.error("%s; who could come in before still can", error)
        finally:
            self._looking.release()

    def _take(self, directory: Directory) -> None:
        self._grants = {self._blinded(key): grant for key, grant in directory.tokens.items()}
        self._directory = directory

    def _blinded(self, digest: bytes) -> bytes:
        # Compared are digests under a key that nobody outside knows, so that the time which a
        # look-up takes says nothing about a token.
        return hmac.new(self._blind, digest, hashlib.sha256).digest()


def _version(file: Path) -> tuple[int, int, int, int]:
    try:
        status = file.stat()
    except OSError:
        return (0, 0, 0, 0)
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_mode)


def _token(authorization: str) -> str:
    """The bearer token; a browser sends it as the password of basic authentication."""
    scheme, _, rest = authorization.strip().partition(" ")
    if scheme.lower() == "bearer":
        return rest.strip()
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(rest, validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return ""
    return ""
