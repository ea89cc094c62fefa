"""Transport security as the servers here take it."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from memtrace_collector.errors import ConfigError
from memtrace_collector.settings.tls import TlsConfig

_PEM_END = "-----END CERTIFICATE-----\n"
CERTIFICATE_NAMES = "memtrace.certificate_names"
"""Where a request's scope holds the names in the client's certificate."""


class CertificateProtocol(HttpToolsProtocol):
    """HTTP/1.1 that tells the application who the client's certificate was made for."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        tls = transport.get_extra_info("ssl_object")
        names = certificate_names(tls.getpeercert() if tls else None)
        app: Any = self.app

        async def with_names(scope: Any, receive: Any, send: Any) -> None:
            scope[CERTIFICATE_NAMES] = names
            await app(scope, receive, send)

        self.app = with_names


def certificate_names(certificate: Any) -> tuple[str, ...]:
    """Subject alternative names (DNS, URI, e-mail), then common names, of a certificate that
    the handshake has verified; the form is that of :meth:`ssl.SSLSocket.getpeercert`."""
    if not certificate:
        return ()
    alternative = [value for _, value in certificate.get("subjectAltName", ())]
    fields = [field for part in certificate.get("subject", ()) for field in part]
    return (*alternative, *(value for name, value in fields if name == "commonName"))


def uvicorn_options(tls: TlsConfig, *, needs_certificate: bool) -> dict[str, Any]:
    """What ``uvicorn.Config`` is given; nothing without TLS.

    ``needs_certificate``: where clients of :attr:`TlsConfig.client_ca` are known, one without a
    certificate does not get through the handshake; else it may show a token instead.
    """
    if not tls.is_on:
        return {}
    options: dict[str, Any] = {"ssl_certfile": tls.certificate, "ssl_keyfile": tls.key}
    if tls.client_ca:
        required = ssl.CERT_REQUIRED if needs_certificate else ssl.CERT_OPTIONAL
        options |= {"ssl_ca_certs": tls.client_ca, "ssl_cert_reqs": required}
        options["http"] = CertificateProtocol
    return options


def check_files(tls: TlsConfig) -> None:
    """Raise ConfigError when the files are not what they should be."""
    if not tls.is_on:
        return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(tls.certificate, tls.key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"tls.certificate, tls.key: {tls.certificate} and {tls.key} are not a certificate "
            f"and its key in PEM: {error.strerror or error}"
        ) from None
    if tls.client_ca:
        try:
            context.load_verify_locations(tls.client_ca)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(
                f"tls.client_ca: {tls.client_ca} holds no certificate in PEM: "
                f"{error.strerror or error}"
            ) from None


def client_context(certificate: str) -> ssl.SSLContext:
    """For a client that knows the server's certificate (PEM) itself: that and no other is
    trusted, whatever name the server is reached by."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=certificate)
    return context


def certificate_text(tls: TlsConfig) -> str:
    """The server's own certificate, the first in its file, PEM; empty without TLS."""
    if not tls.is_on:
        return ""
    own, end, _ = Path(tls.certificate).read_text(encoding="ascii").partition(_PEM_END)
    return own + end
