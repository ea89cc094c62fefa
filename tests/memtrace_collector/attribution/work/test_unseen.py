"""References that flagged answers rest on and nobody produced, and how long they waited."""

from __future__ import annotations

from memtrace_collector.attribution.work.unseen import Unseen
from memtrace_collector.telemetry.metrics import Exemplar, NullMetrics

SECOND = 1_000_000_000


class Waits(NullMetrics):
    def __init__(self) -> None:
        self.seconds: list[float] = []

    def record(
        self, name: str, value: float, exemplar: Exemplar | None = None, /, **attributes: str
    ) -> None:
        assert (name, attributes) == ("memtrace.references.wait", {})
        self.seconds.append(value)


class Clock:
    now = 0

    def __call__(self) -> int:
        return self.now


def test_a_reference_waits_from_the_first_look_that_misses_it_to_the_one_that_does_not() -> None:
    waits, clock = Waits(), Clock()
    unseen = Unseen(waits, clock)
    unseen.looked("case", ["mem:a:1@b", "mem:a:2@b"])
    clock.now = 3 * SECOND
    unseen.looked("case", ["mem:a:2@b"])
    assert (unseen.count(), waits.seconds) == (1, [3.0])
    clock.now = 9 * SECOND
    unseen.looked("case", [])
    assert (unseen.count(), waits.seconds) == (0, [3.0, 9.0])


def test_a_reference_that_two_cases_miss_is_one() -> None:
    unseen = Unseen(Waits(), Clock())
    unseen.looked("one", ["mem:a:1@b"])
    unseen.looked("two", ["mem:a:1@b", "mem:a:2@b"])
    assert unseen.count() == 2
    unseen.looked("one", [])
    assert unseen.count() == 2


def test_beyond_the_limit_what_was_looked_at_longest_ago_is_forgotten() -> None:
    waits = Waits()
    unseen = Unseen(waits, Clock(), limit=4)
    for number in range(10):
        unseen.looked(f"case {number}", [f"mem:a:{number}@b", f"mem:b:{number}@b"])
    assert unseen.count() == 4
    unseen.looked("case 0", [])
    assert waits.seconds == [], "it is not known any more"
    unseen.looked("huge", [f"mem:c:{number}@b" for number in range(9)])
    assert unseen.count() == 0, "a case that alone is beyond the limit is not kept"
