"""Settings of who may come in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from memtrace_collector.errors import ConfigError
from memtrace_collector.settings.checks import check, is_loopback
from memtrace_collector.settings.server import ServerConfig
from memtrace_collector.settings.tls import TlsConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthConfig:
    """A file of tokens, certificates and tenants (``access/directory.py``); empty: nobody is
    asked."""

    tokens_file: str = ""

    @property
    def is_on(self) -> bool:
        return bool(self.tokens_file)

    @property
    def path(self) -> Path | None:
        return Path(self.tokens_file) if self.tokens_file else None


def check_exposure(server: ServerConfig, auth: AuthConfig, tls: TlsConfig) -> None:
    """Raise ConfigError when other hosts could come in unasked, or overhear a token."""
    check(
        "tls.client_ca",
        auth.is_on or not tls.client_ca,
        "auth.tokens_file as well: its `certificates` say whose tenant a certificate is",
    )
    if server.allow_remote or is_loopback(server.host):
        return
    if not auth.is_on:
        raise ConfigError(
            f"server.host: {server.host} can be reached from other hosts, and nothing here "
            "asks who is calling; keep 127.0.0.1, give auth.tokens_file with tls.certificate, or "
            "say --allow-remote when the network itself is closed"
        )
    if not tls.is_on:
        raise ConfigError(
            f"server.host: {server.host} can be reached from other hosts, and tokens would cross "
            "the network in the clear; give tls.certificate and tls.key, or say --allow-remote "
            "when what stands in front encrypts"
        )
