from __future__ import annotations

import pytest

from memtrace_collector.access.directory import NO_LIMITS, Limits
from memtrace_collector.access.throttle import BURST_SECONDS, Throttle

LIMITS = {"busy": Limits(requests_in_flight=2, bytes_per_second=100)}


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def throttle(clock: Clock) -> Throttle:
    return Throttle(lambda tenant: LIMITS.get(tenant, NO_LIMITS), clock)


@pytest.mark.fault("F24")
def test_so_many_requests_are_in_flight_and_no_more(throttle: Throttle) -> None:
    for _ in range(2):
        assert throttle.refusal("busy") == ""
        throttle.enter("busy", 1)
    assert "more than 2 requests" in throttle.refusal("busy")
    assert throttle.refusal("other") == ""
    throttle.leave("busy")
    assert throttle.refusal("busy") == ""


@pytest.mark.fault("F24")
def test_a_debt_of_bytes_is_paid_by_waiting(throttle: Throttle, clock: Clock) -> None:
    burst = int(100 * BURST_SECONDS)
    throttle.enter("busy", burst + 100)
    throttle.leave("busy")
    assert "100 bytes per second" in throttle.refusal("busy")
    clock.now = 1.0
    assert throttle.refusal("busy") != "", "the debt is paid, and nothing is left"
    clock.now = 1.01
    assert throttle.refusal("busy") == ""


def test_what_is_not_used_adds_up_to_a_burst_only(throttle: Throttle, clock: Clock) -> None:
    throttle.enter("busy", 0)
    clock.now = 1e6
    throttle.enter("busy", int(100 * BURST_SECONDS))
    throttle.leave("busy")
    assert throttle.refusal("busy") != ""


def test_a_tenant_without_limits_is_never_refused(throttle: Throttle) -> None:
    for _ in range(1_000):
        throttle.enter("other", 1 << 30)
    assert throttle.refusal("other") == ""
