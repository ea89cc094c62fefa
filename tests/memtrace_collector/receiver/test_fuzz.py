"""Whatever comes in, the answer is a message or a clear refusal, never another error."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
from collections.abc import Iterator

import pytest
from google.rpc.status_pb2 import Status
from hypothesis import given, settings
from hypothesis import strategies as st

from memtrace_collector.receiver.decode import InvalidRequestError, decode
from memtrace_collector.receiver.inflate import Inflater
from memtrace_collector.receiver.limits import Limits
from memtrace_collector.receiver.refusal import RefusedError
from memtrace_collector.receiver.validate import check, keep_valid
from tests.memtrace_collector.receiver.messages import connected, head, traces
from tests.receivers import Receiver, running

NAMES = st.sampled_from(
    [
        "resourceSpans", "scopeSpans", "spans", "resourceLogs", "scopeLogs", "logRecords",
        "traceId", "spanId", "parentSpanId", "attributes", "key", "value", "stringValue",
        "intValue", "doubleValue", "bytesValue", "arrayValue", "kvlistValue", "values", "links",
        "events", "kind", "startTimeUnixNano", "resource", "status", "code", "body", "flags",
    ]
)  # fmt: skip
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["01" * 16, "02" * 8, "00" * 16, "1", "-1", "99999999999999999999"])
)
DOCUMENTS = st.recursive(
    LEAVES, lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner), max_leaves=30
)
SIGNALS = st.sampled_from(["traces", "logs"])


def decoded_and_checked(signal: str, encoding: str, body: bytes) -> None:
    with contextlib.suppress(InvalidRequestError):
        request = decode(signal, encoding, body)
        checked = check(signal, request)
        keep_valid(signal, request)
        assert check(signal, request) == (checked.accepted, 0, "")


@pytest.mark.fault("F31")
@pytest.mark.otlp_rule("C20")
@settings(max_examples=300, deadline=None)
@given(SIGNALS, DOCUMENTS)
def test_any_json_document_is_read_or_refused(signal: str, document: object) -> None:
    decoded_and_checked(signal, "json", json.dumps(document).encode())


@pytest.mark.fault("F31")
@pytest.mark.otlp_rule("C20")
@settings(max_examples=300, deadline=None)
@given(SIGNALS, DOCUMENTS)
def test_any_document_in_the_place_of_a_span_is_read_or_refused(
    signal: str, document: object
) -> None:
    whole = {
        "resourceSpans": [{"scopeSpans": [{"spans": [document]}]}],
        "resourceLogs": [{"scopeLogs": [{"logRecords": [document]}]}],
    }
    decoded_and_checked(signal, "json", json.dumps(whole).encode())


@pytest.mark.fault("F31")
@pytest.mark.otlp_rule("C20")
@settings(max_examples=300, deadline=None)
@given(SIGNALS, st.sampled_from(["json", "protobuf"]), st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(signal: str, encoding: str, body: bytes) -> None:
    decoded_and_checked(signal, encoding, body)


def inflate(chunks: list[bytes], limit: int) -> bytes:
    inflater = Inflater(limit)
    parts = [part for chunk in chunks for part in inflater.feed(chunk)]
    return b"".join([*parts, *inflater.finish()])


@pytest.mark.otlp_rule("C1")
@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(max_size=500), min_size=1, max_size=4), st.data())
def test_gzip_is_inflated_alike_however_it_is_cut_into_chunks(
    members: list[bytes], data: st.DataObject
) -> None:
    body = b"".join(members)
    zipped = b"".join(gzip.compress(member) for member in members)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(zipped)), max_size=6)))
    bounds = [0, *cuts, len(zipped)]
    chunks = [zipped[start:end] for start, end in itertools.pairwise(bounds)]
    assert inflate(chunks, len(body)) == body


@pytest.mark.fault("F31")
@pytest.mark.otlp_rule("C9")
@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300), st.integers(0, 300))
def test_gzip_never_gives_more_than_the_limit(body: bytes, limit: int) -> None:
    try:
        assert len(inflate([gzip.compress(body)], limit)) <= limit
    except RefusedError as refusal:
        assert refusal.http_status == 413
        assert len(body) > limit


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=100))
def test_any_bytes_that_are_not_gzip_are_refused(body: bytes) -> None:
    with contextlib.suppress(RefusedError):
        assert inflate([body], 1000) == (gzip.decompress(body) if body else b"")


HEADS = st.sampled_from(
    [
        b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n",
        b"POST /v1/logs HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\n",
        b"GET / HTTP/1.0\r\n", b"OPTIONS * HTTP/1.1\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ]
)  # fmt: skip
PIECES = st.one_of(
    st.sampled_from(
        [
            b"content-length: 5\r\n", b"content-length: 0\r\n", b"content-length: -1\r\n",
            b"content-length: 99999999999999999999\r\n", b"content-length: 5, 6\r\n",
            b"transfer-encoding: chunked\r\n", b"transfer-encoding: gzip, chunked\r\n",
            b"content-encoding: gzip\r\n", b"content-encoding: deflate\r\n",
            b"expect: 100-continue\r\n", b"\r\n\r\n",
            b"connection: upgrade\r\nupgrade: h2c\r\n", b"connection: close\r\n", b" folded\r\n",
            b"\r\n", b"5\r\nhello\r\n", b"0\r\n\r\n", b"fffffffff\r\n", b"-1\r\n", b"{}",
        ]
    ),
    st.binary(max_size=20),
)  # fmt: skip


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    limits = Limits(header_seconds=0.1, body_grace_seconds=0.1, drain_seconds=0.1, idle_seconds=0.1)
    with running(tmp_path_factory.mktemp("log"), limits=limits) as receiver:
        yield receiver


@pytest.mark.otlp_rule("C18", "C19")
@pytest.mark.fault("F16", "F31")
@settings(max_examples=40, deadline=None)
@given(st.lists(HEADS | PIECES, min_size=1, max_size=8))
def test_whatever_comes_over_a_connection_the_answers_are_well_formed_and_never_500(
    door: Receiver, pieces: list[bytes]
) -> None:
    with connected(door) as connection:
        with contextlib.suppress(ConnectionError):
            connection.send(b"".join(pieces))
        while (answer := connection.answer()) is not None:
            assert answer.status in {100, 200, 400, 404, 405, 413, 415, 503}, answer
            if answer.status >= 400:
                is_json = answer.headers["content-type"] == "application/json"
                message = (
                    json.loads(answer.body)["message"]
                    if is_json
                    else Status.FromString(answer.body).message
                )
                assert message
    body = traces().SerializeToString()
    with connected(door) as connection:
        connection.send(head(len(body)) + body)
        good = connection.answer()
    assert good is not None
    assert good.status == 200
