from __future__ import annotations

from collections.abc import Iterator

import pytest

from memtrace_collector.telemetry.prometheus import Reading, Telemetry


@pytest.fixture
def telemetry() -> Iterator[Telemetry]:
    made = Telemetry("test")
    yield made
    made.close()


def line(telemetry: Telemetry, name: str) -> list[str]:
    text = telemetry.render().decode()
    return [each for each in text.splitlines() if each.startswith(name)]


def test_a_counter_is_shown_under_its_prometheus_name(telemetry: Telemetry) -> None:
    telemetry.add("memtrace.operations", 2, system="mem0", step="create")
    telemetry.add("memtrace.operations", 1, system="mem0", step="create")
    (shown,) = line(telemetry, "memtrace_operations_total{")
    assert 'step="create"' in shown
    assert shown.endswith(" 3.0")


def test_a_counter_never_shrinks(telemetry: Telemetry) -> None:
    telemetry.add("memtrace.shrinking", -1)
    assert line(telemetry, "memtrace_shrinking") == []


def test_a_gauge_is_read_when_it_is_scraped(telemetry: Telemetry) -> None:
    depth = [3.0]
    telemetry.gauge("memtrace.depth", "Depth.", lambda: [Reading(depth[0], {"state": "pending"})])
    assert line(telemetry, "memtrace_depth{")[0].endswith(" 3.0")
    depth[0] = 5
    assert line(telemetry, "memtrace_depth{")[0].endswith(" 5.0")


def test_a_gauge_that_fails_costs_only_itself(telemetry: Telemetry) -> None:
    def fail() -> list[Reading]:
        raise OSError("the disk is gone")

    telemetry.gauge("memtrace.broken", "Broken.", fail)
    telemetry.add("memtrace.whole", 1)
    assert line(telemetry, "memtrace_broken{") == []
    assert line(telemetry, "memtrace_whole_total{")


def test_a_counter_and_a_gauge_may_share_a_name(telemetry: Telemetry) -> None:
    telemetry.add("memtrace.verdicts", 2)
    telemetry.gauge("memtrace.verdicts", "Current.", lambda: [Reading(1, {"stage": "update"})])
    assert line(telemetry, "memtrace_verdicts_total{")[0].endswith(" 2.0")
    assert line(telemetry, "memtrace_verdicts{")[0].endswith(" 1.0")
