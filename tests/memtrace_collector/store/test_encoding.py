"""Operations as bytes: small, typed, and readable after fields were added."""

from __future__ import annotations

import msgspec
import pytest

from memtrace_collector.graph.facts import (
    Decision,
    Dropped,
    Edge,
    Operation,
    OperationKey,
    Sequence,
)
from memtrace_collector.store import encoding
from memtrace_collector.store.encoding import Place

FULL = Operation(
    graph_id="user:жук",
    trace_id="ab" * 16,
    span_id="cd" * 8,
    name="search_memory",
    step="retrieve",
    start_ns=1,
    end_ns=2**63 - 1,
    tenant="other",
    inputs=("query:1@a",),
    delivered=("mem:1@a", "mem:2@b"),
    scores=(0.5, None),
    dropped=(Dropped("mem:3@c", None, "limit", 4),),
    limits={"k": 2, "threshold": 0.1, "deep": [1, {"a": None}]},
    decisions=(Decision(None, "ADD"),),
    edges=(Edge("a", "b", "derived_from"),),
    sources={"mem:1@a": OperationKey("1" * 32, "2" * 16)},
    times={"mem:1@a": "2026-01-01T00:00:00Z"},
    sequence=Sequence("p", 7),
)
PLACE = Place(FULL.tenant, FULL.graph_id, FULL.trace_id, FULL.span_id)


def test_an_operation_comes_back_equal_with_its_types() -> None:
    again = encoding.operation(encoding.operation_body(FULL), PLACE)
    assert again == FULL
    assert isinstance(again.dropped[0], Dropped)
    assert isinstance(again.sources["mem:1@a"], OperationKey)


def test_the_identity_is_not_repeated_in_the_body() -> None:
    body = encoding.operation_body(FULL)
    assert not any(part.encode() in body for part in (FULL.graph_id, FULL.trace_id, FULL.span_id))


def test_a_body_from_before_the_last_fields_were_added_is_read_with_their_defaults() -> None:
    fields = msgspec.msgpack.decode(msgspec.msgpack.encode(FULL))[:-2]
    older = msgspec.msgpack.encode(fields)
    keys = msgspec.msgpack.encode(fields[:3])[1:]
    body = encoding.FORM + older[1:3] + older[3 + len(keys) :]
    wanted = msgspec.structs.replace(FULL, digest_key="", digest="")
    assert encoding.operation(body, PLACE) == wanted


@pytest.mark.parametrize("body", [b"", b"\xdc\x00\x01\xa1a", b"\x01", b"\x01\x00\x29\xff"])
def test_a_body_of_another_form_or_a_damaged_one_is_a_value_error(body: bytes) -> None:
    with pytest.raises(ValueError):
        encoding.operation(body, PLACE)
