"""What a role does not do: it waits for nothing that only another one would do."""

from __future__ import annotations

import pytest

from memtrace_collector.app import FORWARD_CURSOR, forward_cursor
from memtrace_collector.config import Config
from memtrace_collector.runtime.roles import PROCESS, SERVE, UP, WORK, Role
from memtrace_collector.settings.forward import ForwardConfig

FORWARDING = Config(forward=ForwardConfig(url="http://localhost:14318"))


@pytest.mark.parametrize("role", [UP, PROCESS])
def test_who_receives_keeps_its_log_until_it_was_sent_on(role: Role) -> None:
    assert forward_cursor(role, FORWARDING) == FORWARD_CURSOR
    assert forward_cursor(role, Config()) is None


@pytest.mark.parametrize("role", [SERVE, WORK])
def test_whose_log_nobody_sends_on_does_not_wait_for_a_destination(role: Role) -> None:
    assert forward_cursor(role, FORWARDING) is None
