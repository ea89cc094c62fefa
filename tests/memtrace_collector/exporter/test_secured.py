"""A destination that is trusted by its certificate and asks for a header."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from memtrace_collector.errors import ConfigError
from memtrace_collector.exporter.delivery import DELIVERED
from memtrace_collector.runtime.destination import open_destination
from memtrace_collector.settings.forward import HEADERS_VARIABLE, ForwardConfig, headers_for

SECRET = "Bearer a,b=c"
WRITTEN = "authorization=Bearer%20a%2Cb%3Dc , x-tenant=one"


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Certificate and key of 127.0.0.1, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a destination")])
    now = datetime.datetime.now(datetime.timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("pem")
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return folder / "certificate.pem", folder / "key.pem"


@contextmanager
def https(pem: tuple[Path, Path], seen: list[dict[str, str]]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            seen.append({name.lower(): value for name, value in self.headers.items()})
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    class Quiet(HTTPServer):
        def handle_error(self, *_: object) -> None:
            """A client that does not trust us hangs up."""

    server = Quiet(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pem)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def grpcs(pem: tuple[Path, Path], seen: list[dict[str, str]]) -> Iterator[str]:
    class Handler(grpc.GenericRpcHandler):
        def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
            seen.append({str(key): str(value) for key, value in details.invocation_metadata})
            return grpc.unary_unary_rpc_method_handler(lambda body, context: b"")

    certificate, key = pem
    with ThreadPoolExecutor(1) as pool:
        server = grpc.server(pool, handlers=[Handler()])
        credentials = grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())])
        port = server.add_secure_port("127.0.0.1:0", credentials)
        server.start()
        try:
            yield f"grpcs://127.0.0.1:{port}"
        finally:
            server.stop(0).wait()


@pytest.mark.parametrize("serve", [https, grpcs])
def test_a_destination_of_our_own_authority_gets_its_headers(
    pem: tuple[Path, Path], serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(HEADERS_VARIABLE, WRITTEN)
    caplog.set_level("DEBUG")
    seen: list[dict[str, str]] = []
    with serve(pem, seen) as url:
        forward = ForwardConfig(url=url, ca=str(pem[0]))
        destination = open_destination("test", forward)
        assert destination.send("traces", b"") == DELIVERED
        destination.close()
    assert (seen[0]["authorization"], seen[0]["x-tenant"]) == (SECRET, "one")
    assert "Bearer" not in caplog.text + repr(forward) + repr(destination)


def test_a_destination_that_nobody_vouches_for_is_sent_nothing(pem: tuple[Path, Path]) -> None:
    seen: list[dict[str, str]] = []
    with https(pem, seen) as url:
        destination = open_destination("test", ForwardConfig(url=url))
        assert destination.send("traces", b"").outcome == "retry"
        destination.close()
    assert seen == []


@pytest.mark.parametrize("text", ["Bearer secret", "=secret", "a b=secret", "x=a%0Asecret"])
def test_malformed_headers_are_refused_without_repeating_them(text: str) -> None:
    with pytest.raises(ConfigError, match="at item 2") as raised:
        headers_for({HEADERS_VARIABLE: f"a=b,{text}"})
    assert "secret" not in str(raised.value)


def test_without_the_variable_there_are_no_headers() -> None:
    assert headers_for({}) == headers_for({HEADERS_VARIABLE: ""}) == {}


def test_a_file_of_authorities_that_is_none_is_a_clear_error(tmp_path: Path) -> None:
    for name, content in (("missing.pem", None), ("other.pem", "not a certificate")):
        path = tmp_path / name
        if content is not None:
            path.write_text(content)
        with pytest.raises(ConfigError, match=r"forward\.ca"):
            open_destination("test", ForwardConfig(url="https://127.0.0.1:1", ca=str(path)))
