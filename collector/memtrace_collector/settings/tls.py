"""Settings of transport security."""

from __future__ import annotations

from dataclasses import dataclass

from memtrace_collector.settings.checks import check


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsConfig:
    """PEM files for every port; empty: no TLS."""

    certificate: str = ""
    """The server's certificate, with those between it and its authority."""
    key: str = ""
    client_ca: str = ""
    """Who sends spans shows a certificate of this authority."""

    @property
    def is_on(self) -> bool:
        return bool(self.certificate)

    def validate(self) -> None:
        check("tls.certificate, tls.key", bool(self.certificate) == bool(self.key), "both")
        check("tls.client_ca", self.is_on or not self.client_ca, "tls.certificate as well")


NO_TLS = TlsConfig()
