"""The file that says who is who: tokens and certificate names -> tenants, and their limits.

YAML or JSON, readable by its owner only::

    tokens:
      sha256:<64 hex digits>: acme            # the digest of a token
      sha256:<64 hex digits>: {tenant: acme, expires: 2027-01-01T00:00:00Z}
      a-long-secret-text: globex              # or the token itself
      sha256:<64 hex digits>: {scope: metrics}  # reads /metrics and nothing else
    certificates:
      agent.acme.example: acme                # a subject alternative name, or the common name
    limits:
      acme: {requests_in_flight: 8, bytes_per_second: 10000000}

No error made here repeats a line of the file: it would put a secret into a log.
"""

from __future__ import annotations

import hashlib
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any, NoReturn

import yaml

from memtrace_collector.errors import ConfigError

MAX_ENTRIES = 10_000
MIN_TOKEN_CHARS = 16
METRICS = "metrics"
_SECTIONS = ("tokens", "certificates", "limits")
_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_DIGEST = re.compile(r"sha256:([0-9a-fA-F]{64})")


@dataclass(frozen=True, slots=True)
class Grant:
    """What a token is good for."""

    tenant: str
    """Empty: only ``/metrics`` may be read."""
    expires: float | None = None
    """Seconds since the Unix epoch."""

    def holds(self, now: float) -> bool:
        return self.expires is None or now < self.expires


@dataclass(frozen=True, slots=True)
class Limits:
    """What one tenant may take up; 0: no limit of its own."""

    requests_in_flight: int = 0
    bytes_per_second: int = 0


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Directory:
    """Who is who. ``tokens`` is keyed by SHA-256 digests: no token is kept."""

    tokens: Mapping[bytes, Grant] = field(default_factory=dict, repr=False)
    certificates: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, Limits] = field(default_factory=dict)

    def tenants(self) -> frozenset[str]:
        """Everybody who may come in."""
        granted = {grant.tenant for grant in self.tokens.values() if grant.tenant}
        return frozenset(granted | set(self.certificates.values()))


def read_directory(path: Path) -> Directory:
    """The directory in a file.

    Raises:
        ConfigError: it cannot be read, others can read it, or an entry is wrong; says which by
            its number, never by its text.
    """
    check_private("auth.tokens_file", path)
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        _refuse(path, "cannot be read as text")
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        _refuse(path, f"is not YAML{f' (line {mark.line + 1})' if mark else ''}")
    if not isinstance(document, dict) or not set(document) <= set(_SECTIONS):
        _refuse(path, f"is not a mapping with {', '.join(_SECTIONS)}")
    tokens, certificates, limits = (_section(path, document, name) for name in _SECTIONS)
    if not tokens and not certificates:
        _refuse(path, "names neither a token nor a certificate, so nobody could come in")
    return Directory(
        tokens=dict(_token(path, n, *item) for n, item in enumerate(tokens.items(), 1)),
        certificates={
            name: _tenant(path, f"certificates, entry {n}", tenant)
            for n, (name, tenant) in enumerate(certificates.items(), 1)
        },
        limits={
            _tenant(path, f"limits, entry {n}", tenant): _limits(path, n, given)
            for n, (tenant, given) in enumerate(limits.items(), 1)
        },
    )


def check_private(setting: str, path: Path) -> None:
    """Raise ConfigError unless ``path`` is a file that only its owner can read."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise ConfigError(f"{setting}: {path}: {error.strerror}") from None
    if not stat.S_ISREG(mode):
        raise ConfigError(f"{setting}: {path} is not a file")
    if stat.S_IMODE(mode) & 0o077:
        raise ConfigError(f"{setting}: others can read {path}: chmod 600 {path}")


def _section(path: Path, document: Mapping[str, Any], name: str) -> dict[str, Any]:
    section = document.get(name) or {}
    if not isinstance(section, dict) or not all(isinstance(key, str) for key in section):
        _refuse(path, f"{name} is not a mapping of texts (quote what is all digits)")
    if len(section) > MAX_ENTRIES:
        _refuse(path, f"{name} has more than {MAX_ENTRIES} entries")
    return section


def _token(path: Path, number: int, key: str, granted: object) -> tuple[bytes, Grant]:
    where = f"tokens, entry {number}"
    digest = _DIGEST.fullmatch(key)
    if digest is None and (key.startswith("sha256:") or len(key) < MIN_TOKEN_CHARS):
        _refuse(
            path,
            f"{where}: neither sha256: with 64 hex digits nor a token of at least "
            f"{MIN_TOKEN_CHARS} characters",
        )
    found = bytes.fromhex(digest[1]) if digest else hashlib.sha256(key.encode()).digest()
    return found, _grant(path, where, granted)


def _grant(path: Path, where: str, granted: object) -> Grant:
    if not isinstance(granted, dict):
        return Grant(_tenant(path, where, granted))
    if not set(granted) <= {"tenant", "expires", "scope"}:
        _refuse(path, f"{where}: knows tenant, expires and scope")
    expires = _moment(path, where, granted.get("expires"))
    if granted.get("scope") == METRICS and "tenant" not in granted:
        return Grant("", expires)
    if "scope" in granted:
        _refuse(path, f"{where}: scope is {METRICS}, without a tenant")
    return Grant(_tenant(path, where, granted.get("tenant")), expires)


def _tenant(path: Path, where: str, name: object) -> str:
    if not isinstance(name, str) or not _TENANT.fullmatch(name):
        _refuse(path, f"{where}: a tenant is named by 1 to 64 letters, digits, . _ or -")
    return name


def _moment(path: Path, where: str, given: object) -> float | None:
    if given is None:
        return None
    moment = given
    if isinstance(given, str):
        try:
            moment = datetime.fromisoformat(given.replace("Z", "+00:00"))
        except ValueError:
            moment = None
    if isinstance(moment, date) and not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day, tzinfo=timezone.utc)
    if not isinstance(moment, datetime):
        _refuse(path, f"{where}: expires is no time such as 2027-01-01T00:00:00Z")
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return moment.timestamp()


def _limits(path: Path, number: int, given: object) -> Limits:
    names = ("requests_in_flight", "bytes_per_second")
    if (
        not isinstance(given, dict)
        or not set(given) <= set(names)
        or not all(type(value) is int and value >= 0 for value in given.values())
    ):
        _refuse(path, f"limits, entry {number}: {' and '.join(names)} are whole numbers")
    return Limits(**given)


def _refuse(path: Path, what: str) -> NoReturn:
    raise ConfigError(f"auth.tokens_file: {path}: {what}")
