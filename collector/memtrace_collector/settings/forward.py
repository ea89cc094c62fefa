"""Settings of where everything goes on to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from memtrace_collector.errors import ConfigError
from memtrace_collector.settings.checks import check, check_endpoint, check_url
from memtrace_collector.settings.profiles import PROFILES

HEADERS_VARIABLE = "MEMTRACE_FORWARD_HEADERS"
"""Where headers for the destination are read from, and only there: they are secrets."""
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)=([\x20-\x7e]*)")
_ASKED = [name for name, profile in PROFILES.items() if profile.query]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardConfig:
    """Where spans and verdicts go on to: an OTLP endpoint (a Collector, Jaeger, Tempo)."""

    url: str = ""
    ca: str = ""
    """PEM file of who signed the destination's certificate; empty: whom the system trusts."""
    values: bool = False
    """Send ``memtrace.values`` (captured content) on as well."""
    profile: str = "jaeger"
    """What kind of destination it is, of ``PROFILES``: what it takes, and how."""
    query_url: str = ""
    """Where the destination answers what it has; empty: nobody asks whether verdicts arrived."""

    def validate(self) -> None:
        check("forward.profile", self.profile in PROFILES, " or ".join(PROFILES))
        if self.url:
            check_url("forward.url", self.url)
        if self.query_url:
            check_endpoint("forward.query_url", self.query_url, "http://localhost:16686")
            check(
                "forward.profile",
                bool(PROFILES[self.profile].query),
                f"{' or '.join(_ASKED)}, whose API forward.query_url is",
            )


def headers_for(environment: Mapping[str, str]) -> dict[str, str]:
    """Headers to send with every request, ``name=value,name=value``, percent-encoded values.

    Raises:
        ConfigError: they are written in another way.
    """
    items = [item for item in environment.get(HEADERS_VARIABLE, "").split(",") if item.strip()]
    headers = {}
    for number, item in enumerate(items, 1):
        name, equals, value = item.strip().partition("=")
        match = _HEADER.fullmatch(f"{name.strip()}{equals}{unquote(value.strip())}")
        if match is None:
            # what stands there is a secret, and is not repeated
            raise ConfigError(f"{HEADERS_VARIABLE}: expected name=value,… at item {number}")
        headers[match[1]] = match[2]
    return headers
