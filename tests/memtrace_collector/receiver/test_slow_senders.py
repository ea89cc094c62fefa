"""Who sends slowly, nothing, or without end costs little, for a limited time, and nobody else."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import grpc
import httpx
import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub

from memtrace_collector.receiver.limits import Limits
from tests.memtrace_collector.receiver.messages import EXPORT, PROTOBUF, connected, head, traces
from tests.receivers import Receiver

BODY = traces().SerializeToString()
LONG = 30.0


def post(receiver: Receiver) -> int:
    answer = httpx.post(
        f"{receiver.http}/v1/traces", content=BODY, headers={"content-type": PROTOBUF}, timeout=20
    )
    return answer.status_code


def export(receiver: Receiver) -> None:
    with grpc.insecure_channel(receiver.grpc) as channel:
        TraceServiceStub(channel).Export(traces(), timeout=20, wait_for_ready=True)


@pytest.mark.fault("F16")
@pytest.mark.parametrize("sent", [b"", b"\r\n\r\n", b"POST /v1/tra", head(len(BODY))[:-2]])
def test_a_head_that_is_not_complete_in_time_closes_the_connection(
    start: Callable[..., Receiver], sent: bytes
) -> None:
    receiver = start(limits=Limits(header_seconds=0.3))
    with connected(receiver) as slow:
        slow.send(sent)
        assert post(receiver) == 200
        assert slow.is_closed()


@pytest.mark.fault("F16")
def test_a_head_that_trickles_in_is_not_given_more_time(start: Callable[..., Receiver]) -> None:
    receiver = start(limits=Limits(header_seconds=0.5))
    started = time.monotonic()
    with connected(receiver) as slow, pytest.raises(ConnectionError):
        slow.send(b"POST /v1/traces HTTP/1.1\r\n")
        while time.monotonic() < started + LONG:
            slow.send(b"x: y\r\n")
            time.sleep(0.05)


@pytest.mark.fault("F16")
@pytest.mark.otlp_rule("C21")
def test_a_body_that_comes_too_slowly_is_refused_retryably(
    start: Callable[..., Receiver],
) -> None:
    receiver = start(limits=Limits(body_grace_seconds=0.3))
    with ExitStack() as stack:
        slow = [stack.enter_context(connected(receiver)) for _ in range(20)]
        for connection in slow:
            connection.send(head(len(BODY)) + BODY[:3])
        assert post(receiver) == 200
        for connection in slow:
            answer = connection.answer()
            assert answer is not None
            assert answer.status == 503
            assert 0 < int(answer.headers["retry-after"]) <= 5
            assert "slow" in Status.FromString(answer.body).message


def test_a_large_body_earns_its_time() -> None:
    limits = Limits(body_grace_seconds=10, slowest_bytes_per_second=1000, body_seconds=300)
    assert limits.body_deadline(100.0, 0) == 110.0
    assert limits.body_deadline(100.0, 50_000) == 160.0
    assert limits.body_deadline(100.0, 10**9) == 400.0


@pytest.mark.fault("F16")
def test_the_rest_of_a_refused_body_is_read_for_a_while_so_that_the_refusal_is_seen(
    start: Callable[..., Receiver],
) -> None:
    receiver = start(limits=Limits(drain_seconds=0.5), max_request_bytes=100_000)
    body = bytes(200_000)
    with connected(receiver) as sender:
        sender.send(head(len(body)))
        refusal = sender.answer()
        assert refusal is not None
        assert refusal.status == 413
        sender.send(body + head(len(BODY)) + BODY)
        accepted = sender.answer()
        assert accepted is not None
        assert accepted.status == 200, "the connection lives on"
    with connected(receiver) as endless:
        endless.send(head(1 << 40))
        assert endless.answer() is not None
        assert endless.is_closed()


@pytest.mark.fault("F16")
def test_an_idle_connection_is_closed_and_one_that_sends_is_not(
    start: Callable[..., Receiver],
) -> None:
    receiver = start(limits=Limits(idle_seconds=1))
    with connected(receiver) as connection:
        for _ in range(3):
            connection.send(head(len(BODY)) + BODY)
            answer = connection.answer()
            assert answer is not None
            assert answer.status == 200
        started = time.monotonic()
        connection.send(b"\r\n")
        assert connection.is_closed()
        assert time.monotonic() - started < LONG


@pytest.mark.fault("F16")
def test_one_connection_too_many_closes_an_idle_one_or_comes_back_later(
    start: Callable[..., Receiver],
) -> None:
    receiver = start(limits=Limits(connections=3))
    with ExitStack() as stack:
        idle = stack.enter_context(connected(receiver))
        idle.send(head(len(BODY)) + BODY)
        assert idle.answer() is not None
        for _ in range(2):
            busy = stack.enter_context(connected(receiver))
            busy.send(head(len(BODY)) + BODY[:3])
        assert post(receiver) == 200
        assert idle.is_closed(), "the idle one made room"
        third = stack.enter_context(connected(receiver))
        third.send(head(len(BODY)) + BODY[:3])
        refused = httpx.post(
            f"{receiver.http}/v1/traces", content=BODY, headers={"content-type": PROTOBUF}
        )
        assert refused.status_code == 503
        assert int(refused.headers["retry-after"]) <= 5
        assert "connections" in Status.FromString(refused.content).message
        third.send(BODY[3:])
        answer = third.answer()
        assert answer is not None
        assert answer.status == 200, "those that were there first are served"


@pytest.mark.fault("F16", "F31")
@pytest.mark.parametrize("kind", ["headers", "one header", "path", "trailers"])
def test_a_head_without_end_is_cut_off(receiver: Receiver, kind: str) -> None:
    piece = {"headers": b"a: b\r\n" * 1000, "trailers": b"a: b\r\n" * 1000}.get(kind, b"x" * 6000)
    first = {
        "path": b"POST /",
        "one header": b"POST /v1/traces HTTP/1.1\r\nx: ",
        "headers": b"POST /v1/traces HTTP/1.1\r\n",
        "trailers": head(None) + b"0\r\n",
    }[kind]
    with connected(receiver) as sender:
        sender.send(first)
        with pytest.raises((ConnectionError, socket.timeout)):
            for _ in range(1000):
                sender.send(piece)
    assert post(receiver) == 200


def _never(release: threading.Event) -> Iterator[bytes]:
    """The requests of a caller that opens a call and sends nothing."""
    release.wait(LONG)
    yield from ()


@pytest.mark.fault("F16")
def test_calls_without_a_message_hold_up_no_other_and_end(start: Callable[..., Receiver]) -> None:
    receiver = start(limits=Limits(message_seconds=1.0))
    release = threading.Event()
    try:
        with grpc.insecure_channel(receiver.grpc) as channel:
            call = channel.stream_unary(EXPORT, None, None)
            waiting = [call.future(_never(release), timeout=LONG) for _ in range(100)]
            export(receiver)
            codes = {future.code() for future in waiting}
    finally:
        release.set()
    assert codes == {grpc.StatusCode.UNAVAILABLE}
    export(receiver)


@pytest.mark.fault("F16")
def test_a_grpc_connection_that_says_nothing_is_closed(start: Callable[..., Receiver]) -> None:
    receiver = start(limits=Limits(header_seconds=0.5))
    with connected(receiver, receiver.server.grpc_port) as silent:
        export(receiver)
        silent_bytes = silent.answer()
        assert silent_bytes is None


@pytest.mark.fault("F16")
def test_grpc_connections_are_bounded(start: Callable[..., Receiver]) -> None:
    receiver = start(limits=Limits(connections=3))
    alone = [("grpc.use_local_subchannel_pool", 1)]
    with ExitStack() as stack:
        for _ in range(3):
            channel = stack.enter_context(grpc.insecure_channel(receiver.grpc, alone))
            TraceServiceStub(channel).Export(traces(), timeout=20)
        one_more = stack.enter_context(grpc.insecure_channel(receiver.grpc, alone))
        with pytest.raises(grpc.RpcError) as refused:
            TraceServiceStub(one_more).Export(traces(), timeout=5)
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE, "which every client retries"
    export(receiver)
