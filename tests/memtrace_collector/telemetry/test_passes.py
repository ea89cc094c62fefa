"""A stage goes on whatever a pass raises, counts every failure and does not flood the log."""

from __future__ import annotations

import logging
import threading

import pytest

from memtrace_collector.telemetry.passes import SAY_AGAIN_SECONDS, Passes


class Counting:
    def __init__(self) -> None:
        self.counted = 0

    def add(self, name: str, value: int, **attributes: str) -> None:
        assert name == "memtrace.some.failures"
        self.counted += value


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def failing() -> float:
    raise RuntimeError("no disk")


@pytest.fixture
def clock() -> Clock:
    return Clock()


def passes(metrics: Counting, clock: Clock) -> Passes:
    return Passes(
        "it went wrong", "memtrace.some.failures", metrics, pause_seconds=5.0, clock=clock
    )


def test_a_pass_says_how_long_to_pause_and_a_failed_one_pauses_as_told(clock: Clock) -> None:
    metrics = Counting()
    stage = passes(metrics, clock)
    assert stage.once(lambda: 0.25) == 0.25 and not stage.is_failing
    assert stage.once(failing) == 5.0 and stage.is_failing
    assert stage.once(lambda: 0.0) == 0.0 and not stage.is_failing
    assert metrics.counted == 1


def test_a_failure_that_goes_on_is_logged_once_a_minute_and_counted_every_time(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    metrics = Counting()
    stage = passes(metrics, clock)
    for _ in range(125):
        stage.once(failing)
        clock.now += 1.0
    assert metrics.counted == 125
    said = [record.getMessage() for record in caplog.records]
    missed = f"{SAY_AGAIN_SECONDS - 1:.0f} more times since it was last said"
    assert said == ["it went wrong", *2 * [f"it went wrong ({missed})"]]
    assert "no disk" in caplog.text, "the cause is in the log"
    stage.once(lambda: 0.0)
    assert caplog.records[-1].levelno == logging.WARNING
    assert caplog.records[-1].getMessage() == "it went wrong, 4 more times; now it works again"


def test_passes_run_until_they_are_stopped(clock: Clock) -> None:
    stop = threading.Event()
    done: list[int] = []

    def one_pass() -> float:
        done.append(len(done))
        if len(done) == 3:
            stop.set()
        return 0.0

    passes(Counting(), clock).run(one_pass, stop)
    assert done == [0, 1, 2]
