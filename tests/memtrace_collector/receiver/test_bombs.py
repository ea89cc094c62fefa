"""Small requests that would become large: refused before they do, by both doors.

The receiver is a process of its own here, so that its memory can be measured.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import httpx
import pytest

from tests.memtrace_collector.receiver.messages import (
    EXPORT,
    JSON,
    PROTOBUF,
    traces,
    traces_json,
)

LIMIT = 64 << 20
BOMB_BYTES = 512 << 20
ROOM_MB = 220
"""What all requests together may hold (128 MiB), and what an allocator keeps besides."""


@dataclass(frozen=True)
class Server:
    pid: int
    http: str
    grpc: str

    def forget_peak(self) -> float:
        """Measure anew from here on; gives what is resident now."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")
        return self.peak_mb()

    def peak_mb(self) -> float:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024

    def post(self, body: bytes, content_type: str = PROTOBUF, coding: str = "identity") -> int:
        headers = {"content-type": content_type, "content-encoding": coding}
        url = f"{self.http}/v1/traces"
        return httpx.post(url, content=body, headers=headers, timeout=60).status_code

    def export(self, body: bytes, compression: grpc.Compression | None = None) -> grpc.StatusCode:
        options = [("grpc.max_send_message_length", -1)]
        with grpc.insecure_channel(self.grpc, options, compression) as channel:
            try:
                channel.unary_unary(EXPORT, None, None)(body, timeout=60)
            except grpc.RpcError as error:
                return error.code()
        return grpc.StatusCode.OK


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("log")
    command = [sys.executable, "-m", "tests.benchmarks.ack_server", str(folder)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        http, grpc_port = process.stdout.readline().decode().split()
        yield Server(process.pid, f"http://127.0.0.1:{http}", f"127.0.0.1:{grpc_port}")
        process.communicate()


@pytest.fixture(scope="module")
def bomb() -> bytes:
    squeeze = zlib.compressobj(9, zlib.DEFLATED, 31)
    zeros = bytes(1 << 20)
    parts = [squeeze.compress(zeros) for _ in range(BOMB_BYTES >> 20)]
    return b"".join([*parts, squeeze.flush()])


def at_once(times: int, send: Callable[[], object]) -> list[object]:
    found: list[object] = []
    senders = [threading.Thread(target=lambda: found.append(send())) for _ in range(times)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join(60)
    return found


@pytest.mark.otlp_rule("C9", "C10")
@pytest.mark.fault("F31")
def test_bombs_through_both_doors_at_once_stay_within_memory(server: Server, bomb: bytes) -> None:
    before = server.forget_peak()
    assert len(bomb) < 1 << 20
    codes: list[grpc.StatusCode] = []

    def export(compression: grpc.Compression) -> None:
        codes.append(server.export(bytes(100 << 20), compression))

    as_grpc = [
        threading.Thread(target=export, args=(compression,))
        for compression in (grpc.Compression.Gzip, grpc.Compression.Deflate)
    ]
    for sender in as_grpc:
        sender.start()
    statuses = at_once(6, lambda: server.post(bomb, coding="gzip"))
    for sender in as_grpc:
        sender.join(60)
    assert set(statuses) <= {413, 503}, "too large, or no room at the moment"
    assert set(codes) <= {grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE}
    assert server.post(bomb, coding="gzip") == 413
    assert server.peak_mb() < before + ROOM_MB
    assert server.post(traces().SerializeToString()) == 200


@pytest.mark.otlp_rule("C1", "C9", "C10")
@pytest.mark.fault("F31")
@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_grpc_messages_are_limited_by_their_size_after_decompression(
    server: Server, compression: grpc.Compression
) -> None:
    just_fits = traces(1, LIMIT - 100).SerializeToString()
    assert len(just_fits) <= LIMIT
    assert server.export(just_fits, compression) is grpc.StatusCode.OK
    too_large = traces(1, LIMIT).SerializeToString()
    assert server.export(too_large, compression) is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.otlp_rule("C1")
def test_a_grpc_message_of_several_gzip_members_is_one_and_a_cut_one_is_refused(
    server: Server,
) -> None:
    """Sent as it is: gRPC's flag says nothing to an application, and neither side needs it."""
    body = traces(3).SerializeToString()
    members = gzip.compress(body[:20]) + gzip.compress(body[20:])
    assert server.export(members) is grpc.StatusCode.OK
    assert server.export(members[:-3]) is grpc.StatusCode.INVALID_ARGUMENT
    assert server.export(b"\x1f\x8b nonsense") is grpc.StatusCode.INVALID_ARGUMENT
    assert server.export(zlib.compress(body) + b"more") is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.fault("F31")
@pytest.mark.parametrize("value", [b"[],", b"{},", b'"ab",', b"1.5,"])
def test_json_of_very_many_values_is_refused_before_it_is_built(
    server: Server, value: bytes
) -> None:
    before = server.forget_peak()
    body = b'{"unknown":[' + value * ((48 << 20) // len(value)) + b"0]}"
    assert server.post(body, JSON) == 400
    assert server.peak_mb() < before + ROOM_MB


@pytest.mark.fault("F31")
@pytest.mark.parametrize("levels", [100, 101, 10_000])
def test_levels_of_nesting_end_in_an_answer(server: Server, levels: int) -> None:
    value: object = {"stringValue": "x"}
    if levels < 1_000:
        for _ in range(levels):
            value = {"arrayValue": {"values": [value]}}
        body = traces_json(attributes=[{"key": "k", "value": value}])
    else:
        body = b'{"resourceSpans":' + b'[{"scopeSpans":' * levels
    assert server.post(body, JSON) == 400
    deep = b""
    for _ in range(min(levels, 2_000)):
        deep = b"\x2a" + _length(deep) + deep  # AnyValue.array_value, and its only value
        deep = b"\x0a" + _length(deep) + deep
    for field in (b"\x12", b"\x4a", b"\x12", b"\x12", b"\x0a"):
        deep = field + _length(deep) + deep
    assert server.export(deep) is grpc.StatusCode.INVALID_ARGUMENT
    assert server.post(traces().SerializeToString()) == 200


@pytest.mark.fault("F31")
def test_texts_that_are_no_utf_8_are_refused_and_control_characters_are_kept(
    server: Server,
) -> None:
    odd = traces()
    odd.resource_spans[0].scope_spans[0].spans[0].name = "a\x00b\u2028\ufffe"
    body = odd.SerializeToString()
    assert server.post(body) == 200
    assert server.post(body.replace(b"a\x00b", b"a\xffb")) == 400
    assert server.export(body.replace(b"a\x00b", b"a\xffb")) is grpc.StatusCode.INVALID_ARGUMENT
    assert server.post(traces_json(name="a\x00\ud800b"), JSON) == 200
    assert server.post(traces_json(name="x").replace(b'"x"', b'"\xff"'), JSON) == 400


def _length(data: bytes) -> bytes:
    """A protobuf length."""
    size, out = len(data), bytearray()
    while size > 0x7F:
        out.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes(out + bytes([size]))
