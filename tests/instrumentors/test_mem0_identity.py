"""What mem0's values are called: messages, times, scopes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import pytest

from memtrace_otel import testing
from memtrace_otel.instrumentors import mem0_identity as identity
from tests.instrumentors.mem0_kit import msg


@pytest.fixture(autouse=True)
def plain_key() -> Iterator[None]:
    with testing.capture():
        yield


@pytest.mark.parametrize(
    ("given", "time"),
    [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05+00:00"),
        ("2026-01-02T03:04:05+09:00", "2026-01-02T03:04:05+09:00"),
        ("2026-01-02", "2026-01-02T00:00:00+00:00"),
        (1_767_225_600, "2026-01-01T00:00:00+00:00"),
        (1_767_225_600_000, "2026-01-01T00:00:00+00:00"),
        (1_767_225_600.5, "2026-01-01T00:00:00.500000+00:00"),
        (datetime(2026, 1, 1, tzinfo=timezone.utc), "2026-01-01T00:00:00+00:00"),
    ],
)
def test_times_are_read_from_iso_text_and_from_the_epoch(given: object, time: str) -> None:
    parsed = identity.parse_time(given)
    assert parsed is not None
    assert parsed.isoformat() == time


@pytest.mark.parametrize("given", ["last Tuesday", "", None, True, 1e30, float("nan"), []])
def test_what_is_no_time_gives_none(given: object) -> None:
    assert identity.parse_time(given) is None


@pytest.mark.parametrize(
    ("scope", "graphs"),
    [
        ({"user_id": "u", "agent_id": "a", "run_id": "r"}, ["user:u"]),
        ({"agent_id": "a", "run_id": "r"}, ["agent:a"]),
        ({"run_id": 7}, ["run:7"]),
        ({"user_id": " u "}, ["user:u"]),
        ({"user_id": {"eq": "u"}}, ["user:u"]),
        ({"user_id": {"in": ["u", "v"]}}, ["user:u", "user:v"]),
        ({"user_id": "*", "agent_id": "a"}, ["agent:a"]),
        ({"user_id": {"ne": "u"}}, []),
        ({}, []),
    ],
)
def test_graphs_follow_from_the_scope(scope: dict[str, object], graphs: list[str]) -> None:
    assert identity.graph_ids(scope) == graphs


@pytest.mark.parametrize(
    ("messages", "refs"),
    [
        ("hello", [msg("hello")]),
        ({"role": "user", "content": "hello", "id": "c/1"}, [msg("hello", "c/1")]),
        ([{"role": "user", "content": "hello", "message_id": 7}], [msg("hello", "7")]),
        ([{"role": "user"}, {"role": "user", "content": None}, 3, "hello"], [msg("hello")]),
        (None, []),
        (7, []),
    ],
)
def test_messages_have_their_declared_id_else_their_digest(messages: Any, refs: list[str]) -> None:
    found = identity.messages_of(messages, None)
    assert [message.variable.ref for message in found] == refs


def test_roles_outside_the_contract_are_left_out() -> None:
    roles = ("user", "ai", "function", "developer", "narrator")
    messages = [{"role": role, "content": role} for role in roles]
    found = [message.role for message in identity.messages_of(messages, None)]
    assert found == ["user", "assistant", "tool", "system", None]
