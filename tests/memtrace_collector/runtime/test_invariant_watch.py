from __future__ import annotations

import threading
from collections import Counter

from memtrace_collector.graph.facts import SpanFacts
from memtrace_collector.graph.invariants import EMPTY_RETRIEVAL
from memtrace_collector.log.position import LogPosition
from memtrace_collector.runtime.invariant_watch import REST_FACTOR, InvariantWatch
from memtrace_collector.telemetry.metrics import Exemplar, NullMetrics
from tests.memtrace_collector.attribution.scripts import Script

CHECK_SECONDS = 3.0


class Clock:
    """Two calls of a check are ``CHECK_SECONDS`` apart."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += CHECK_SECONDS
        return self.now


class Found(NullMetrics):
    """What was found newly, by kind."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()

    def add(
        self, name: str, value: float, exemplar: Exemplar | None = None, /, **attributes: str
    ) -> None:
        if name == "memtrace.invariants.found":
            self.kinds[attributes["kind"]] += int(value)


def test_what_is_found_in_a_new_graph_is_news() -> None:
    script = Script()
    store = script.store()
    found = Found()
    watch = InvariantWatch(store, found, wait=lambda *_: None)
    watch.look(threading.Event())
    script.ask("Who is my barber?")
    script.retrieve()
    store.apply(
        [(LogPosition(0, 0), SpanFacts(operation=each)) for each in script.operations],
        LogPosition(0, 1),
    )
    watch.look(threading.Event())
    watch.look(threading.Event())
    assert found.kinds == {EMPTY_RETRIEVAL: 1}


def test_a_graph_is_checked_again_when_it_changed_and_has_rested() -> None:
    script = Script()
    script.ask("Who is my barber?")
    script.retrieve()
    store = script.store()
    clock = Clock()
    found = Found()
    watch = InvariantWatch(store, found, clock=clock, wait=lambda *_: None)
    never = threading.Event()
    watch.look(never)
    assert watch.counts()[EMPTY_RETRIEVAL] == 1
    assert not found.kinds, "it was there before the watch"
    script.retrieve()
    store.apply(
        [(LogPosition(0, 0), SpanFacts(operation=script.operations[-1]))], LogPosition(0, 1)
    )
    watch.look(never)
    assert watch.counts()[EMPTY_RETRIEVAL] == 1
    clock.now += REST_FACTOR * CHECK_SECONDS
    watch.look(never)
    assert watch.counts()[EMPTY_RETRIEVAL] == 2
    assert found.kinds == {EMPTY_RETRIEVAL: 1}, "what is new is counted, and nothing twice"
    rested = clock.now
    watch.look(never)
    assert clock.now - rested == CHECK_SECONDS, "an unchanged graph is not checked"


def test_a_look_ends_when_it_is_told_to_stop() -> None:
    script = Script()
    script.ask("Who is my barber?")
    script.retrieve()
    watch = InvariantWatch(script.store())
    stop = threading.Event()
    stop.set()
    watch.look(stop)
    assert watch.counts()[EMPTY_RETRIEVAL] == 0
