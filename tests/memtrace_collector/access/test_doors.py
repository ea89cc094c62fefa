"""Both doors ask who is sending, over real sockets."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import httpx
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memtrace_collector.access.authentication import DENIED, Authenticator
from memtrace_collector.access.throttle import Throttle
from memtrace_collector.log.format import LogRecord
from memtrace_collector.log.position import START, LogPosition
from memtrace_collector.log.reader import read
from memtrace_collector.log.segments import SegmentLog
from memtrace_collector.receiver.ingest import Ingest
from memtrace_collector.receiver.server import Listen, ReceiverServer
from memtrace_collector.receiver.tenants import by_credentials
from memtrace_collector.settings.tls import NO_TLS, TlsConfig
from tests.memtrace_collector.access.certificates import Authority, Pair
from tests.memtrace_collector.access.tokens import (
    ACME,
    EXPIRED,
    GLOBEX,
    SCRAPER,
    bearer,
    tokens_file,
)
from tests.memtrace_collector.running import eventually

METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
WRONG = [
    "",
    "Bearer",
    "Bearer wrong",
    f"Bearer {EXPIRED}",
    f"Bearer {SCRAPER}",
    ACME,
    "Bearer acme",
]
SPOOFED = {"x-scope-orgid": "globex", "x-memtrace-tenant": "globex", "tenant": "globex"}


class Door(NamedTuple):
    server: ReceiverServer
    folder: Path

    def tenants(self) -> list[str]:
        return [entry.record.tenant for entry in read(self.folder, START)]

    def http(self, **arguments: Any) -> httpx.Response:
        url = f"http://127.0.0.1:{self.server.http_port}/v1/traces"
        content_type = {"content-type": "application/x-protobuf"}
        headers = content_type | arguments.pop("headers", {})
        return httpx.post(url, **{"content": request(), "headers": headers, **arguments})

    def grpc(self, **metadata: str) -> None:
        with grpc.insecure_channel(f"127.0.0.1:{self.server.grpc_port}") as channel:
            channel.unary_unary(METHOD)(request(), metadata=tuple(metadata.items()), timeout=10)


def request(padding: int = 0) -> bytes:
    """A span whose attributes claim to be another tenant's, of so many bytes more."""
    message = ExportTraceServiceRequest()
    resource = message.resource_spans.add()
    for name in ("tenant", "memtrace.tenant", "tenant.id"):
        resource.resource.attributes.add(key=name).value.string_value = "globex"
    span = resource.scope_spans.add().spans.add(trace_id=b"\1" * 16, span_id=b"\2" * 8)
    span.attributes.add(key="memtrace.tenant").value.string_value = "globex"
    span.attributes.add(key="padding").value.string_value = "x" * padding
    return bytes(message.SerializeToString())


@contextmanager
def doors(
    folder: Path, tokens: Path, tls: TlsConfig = NO_TLS, append: Any = None, **bounds: int
) -> Iterator[Door]:
    """``bounds``: of :class:`Ingest`, in bytes."""
    known = Authenticator(tokens)
    with closing(SegmentLog(folder / "log")) as log:
        ingest = Ingest(
            append or log.append,
            tenant_of=by_credentials(known),
            throttle=Throttle(known.limits_of),
            is_shared=known.is_on,
            **bounds,
        )
        server = ReceiverServer(ingest, Listen(grpc_port=0, http_port=0, tls=tls))
        server.start()
        try:
            yield Door(server, log.folder)
        finally:
            server.stop(1)


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    with doors(tmp_path, tokens_file(tmp_path)) as door:
        yield door


@pytest.mark.fault("F32")
@pytest.mark.otlp_rule("C4", "C18")
@pytest.mark.parametrize("shown", WRONG)
def test_over_http_nobody_unknown_leaves_a_span(door: Door, shown: str) -> None:
    response = door.http(headers={"authorization": shown} if shown else {})
    assert (response.status_code, response.headers["www-authenticate"]) == (401, "Bearer")
    assert response.headers["content-type"] == "application/x-protobuf"
    status = Status.FromString(response.content)
    assert status.code == grpc.StatusCode.UNAUTHENTICATED.value[0] and not status.details
    assert door.tenants() == []


@pytest.mark.fault("F32")
@pytest.mark.otlp_rule("C4", "C18")
def test_over_http_the_refusal_speaks_the_request_s_language(door: Door) -> None:
    response = door.http(headers={"content-type": "application/json"})
    assert (response.status_code, response.json()["message"]) == (401, DENIED)


@pytest.mark.fault("F32")
@pytest.mark.parametrize("shown", WRONG)
def test_over_grpc_nobody_unknown_leaves_a_span(door: Door, shown: str) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        door.grpc(**({"authorization": shown} if shown else {}))
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert "canary" not in refused.value.details() and door.tenants() == []


@pytest.mark.fault("F32")
def test_a_sender_s_tenant_is_its_token_s_whatever_else_it_says(door: Door) -> None:
    assert door.http(headers={**bearer(ACME), **SPOOFED}).status_code == 200
    door.grpc(**bearer(ACME), **SPOOFED)
    assert door.http(headers=bearer(GLOBEX)).status_code == 200
    assert door.tenants() == ["acme", "acme", "globex"]


@pytest.mark.fault("F24")
@pytest.mark.otlp_rule("C21", "C23")
def test_a_noisy_tenant_is_put_off_and_the_others_come_through(tmp_path: Path) -> None:
    limits = {"acme": {"bytes_per_second": 1}}
    with doors(tmp_path, tokens_file(tmp_path, limits=limits)) as door:
        assert door.http(headers=bearer(ACME)).status_code == 200
        refused = door.http(headers=bearer(ACME))
        assert refused.status_code == 429 and 0 < int(refused.headers["retry-after"]) <= 5
        with pytest.raises(grpc.RpcError) as put_off:
            door.grpc(**bearer(ACME))
        assert put_off.value.code() is grpc.StatusCode.UNAVAILABLE
        assert 0 < retry_seconds(put_off.value) <= 5
        assert door.http(headers=bearer(GLOBEX)).status_code == 200
        assert door.tenants() == ["acme", "globex"]


@pytest.mark.fault("F24")
def test_one_tenant_s_requests_in_flight_are_bounded(tmp_path: Path) -> None:
    waiting: list[Future[LogPosition]] = []

    def append(record: LogRecord) -> Future[LogPosition]:
        durable: Future[LogPosition] = Future()
        if record.tenant == "acme":
            waiting.append(durable)
        else:
            durable.set_result(START)
        return durable

    limits = {"acme": {"requests_in_flight": 1}}
    with (
        doors(tmp_path, tokens_file(tmp_path, limits=limits), append=append) as door,
        grpc.insecure_channel(f"127.0.0.1:{door.server.grpc_port}") as channel,
    ):
        metadata = tuple(bearer(ACME).items())
        first = channel.unary_unary(METHOD).future(request(), metadata=metadata, timeout=20)
        eventually(lambda: bool(waiting), "one in flight")
        assert door.http(headers=bearer(ACME)).status_code == 429
        assert door.http(headers=bearer(GLOBEX)).status_code == 200
        waiting[0].set_result(START)
        first.result()
        second = channel.unary_unary(METHOD).future(request(), metadata=metadata, timeout=20)
        eventually(lambda: len(waiting) == 2, "the next in flight")
        waiting[1].set_result(START)
        second.result()


@pytest.mark.fault("F24")
@pytest.mark.otlp_rule("C21", "C23")
def test_a_tenant_that_fills_the_memory_for_bodies_leaves_room_for_others(tmp_path: Path) -> None:
    waiting: list[Future[LogPosition]] = []
    kept: list[str] = []
    stuck = threading.Event()
    stuck.set()

    def append(record: LogRecord) -> Future[LogPosition]:
        durable: Future[LogPosition] = Future()
        kept.append(record.tenant)
        if record.tenant == "acme" and stuck.is_set():
            waiting.append(durable)
        else:
            durable.set_result(START)
        return durable

    body = request(padding=10_000)
    tokens = tokens_file(tmp_path)
    with (
        doors(tmp_path, tokens, append=append, max_in_flight_bytes=100_000) as door,
        grpc.insecure_channel(f"127.0.0.1:{door.server.grpc_port}") as channel,
    ):
        export = channel.unary_unary(METHOD)
        acme, globex = (tuple(bearer(token).items()) for token in (ACME, GLOBEX))
        # four of them are in flight: a fifth would be more than what is left
        held = [export.future(body, metadata=acme, timeout=20) for _ in range(4)]
        eventually(lambda: len(waiting) == 4, "four bodies in flight")
        with pytest.raises(grpc.RpcError) as put_off:
            export(body, metadata=acme, timeout=10)
        assert put_off.value.code() is grpc.StatusCode.UNAVAILABLE
        assert "of yours" in put_off.value.details() and 0 < retry_seconds(put_off.value) <= 5
        refused = door.http(headers=bearer(ACME), content=body)
        assert refused.status_code == 503 and 0 < int(refused.headers["retry-after"]) <= 5
        for _ in range(5):
            export(body, metadata=globex, timeout=10)
            assert door.http(headers=bearer(GLOBEX), content=body).status_code == 200
        stuck.clear()
        for durable in waiting:
            durable.set_result(START)
        for call in held:
            call.result()
        assert door.http(headers=bearer(ACME), content=body).status_code == 200
    assert kept.count("acme") == 5 and kept.count("globex") == 10


class Certificates(NamedTuple):
    ours: Authority
    theirs: Authority
    tls: TlsConfig
    """That of a server that wants certificates of ``ours``."""


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    ours, theirs = Authority(tmp_path, "ours"), Authority(tmp_path, "theirs")
    server = ours.sign("collector.example")
    tls = TlsConfig(
        certificate=str(server.certificate), key=str(server.key), client_ca=str(ours.certificate)
    )
    return Certificates(ours, theirs, tls)


@pytest.fixture
def tls_door(tmp_path: Path, certificates: Certificates) -> Iterator[Door]:
    names = {"agent.acme.example": "acme"}
    with doors(tmp_path, tokens_file(tmp_path, certificates=names), certificates.tls) as door:
        yield door


def over_tls(
    door: Door, authority: Authority, pair: Pair | None, headers: dict[str, str]
) -> httpx.Response:
    context = ssl.create_default_context(cafile=authority.certificate)
    if pair is not None:
        context.load_cert_chain(pair.certificate, pair.key)
    url = f"https://127.0.0.1:{door.server.http_port}/v1/traces"
    headers = {"content-type": "application/x-protobuf", **headers}
    with httpx.Client(verify=context, trust_env=False) as client:
        return client.post(url, content=request(), headers=headers)


def grpc_over_tls(
    door: Door, authority: Authority, pair: Pair | None, headers: dict[str, str]
) -> None:
    shown = (pair.key.read_bytes(), pair.certificate.read_bytes()) if pair else (None, None)
    credentials = grpc.ssl_channel_credentials(authority.certificate.read_bytes(), *shown)
    with grpc.secure_channel(f"127.0.0.1:{door.server.grpc_port}", credentials) as channel:
        channel.unary_unary(METHOD)(request(), metadata=tuple(headers.items()), timeout=5)


@pytest.mark.fault("F32")
def test_a_certificate_of_our_authority_is_a_tenant(
    tls_door: Door, certificates: Certificates
) -> None:
    ours = certificates.ours
    acme, other = ours.sign("agent.acme.example"), ours.sign("agent.unknown.example")
    assert over_tls(tls_door, ours, acme, {}).status_code == 200
    grpc_over_tls(tls_door, ours, acme, {})
    assert over_tls(tls_door, ours, other, bearer(GLOBEX)).status_code == 200
    assert tls_door.tenants() == ["acme", "acme", "globex"]
    assert over_tls(tls_door, ours, acme, bearer(GLOBEX)).status_code == 401
    assert over_tls(tls_door, ours, other, {}).status_code == 401
    with pytest.raises(grpc.RpcError) as refused:
        grpc_over_tls(tls_door, ours, other, {})
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert len(tls_door.tenants()) == 3


@pytest.mark.fault("F32")
def test_without_a_certificate_of_our_authority_nobody_gets_in(
    tls_door: Door, certificates: Certificates
) -> None:
    ours, theirs = certificates.ours, certificates.theirs
    for pair in (None, theirs.sign("agent.acme.example")):
        with pytest.raises(httpx.TransportError):
            over_tls(tls_door, ours, pair, bearer(ACME))
        with pytest.raises(grpc.RpcError) as refused:
            grpc_over_tls(tls_door, ours, pair, bearer(ACME))
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
    assert tls_door.tenants() == []


@pytest.mark.fault("F32")
def test_a_server_of_another_authority_is_not_trusted(
    tls_door: Door, certificates: Certificates
) -> None:
    theirs, pair = certificates.theirs, certificates.ours.sign("agent.acme.example")
    with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
        over_tls(tls_door, theirs, pair, {})


def retry_seconds(error: Any) -> float:
    details = dict(error.trailing_metadata())["grpc-status-details-bin"]
    info = RetryInfo()
    assert Status.FromString(details).details[0].Unpack(info)
    return float(info.retry_delay.ToTimedelta().total_seconds())
