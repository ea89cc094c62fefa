"""A broken invariant flags the answers it reached, when asked to, and each only once."""

from __future__ import annotations

import threading

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memtrace_collector.dialects import registry
from memtrace_collector.graph import invariants
from memtrace_collector.graph.facts import SpanFacts
from memtrace_collector.graph.flags import flagged_answers
from memtrace_collector.graph.invariants import KINDS
from memtrace_collector.log.position import LogPosition
from memtrace_collector.runtime.invariant_flags import InvariantFlags
from memtrace_collector.runtime.invariant_watch import InvariantWatch
from memtrace_collector.settings.attribution import FLAGGING_INVARIANTS
from memtrace_collector.store.in_memory import InMemoryFactStore
from memtrace_collector.telemetry.metrics import NULL_METRICS
from tests.memtrace_collector.attribution.scripts import Script


class Log:
    """Takes requests and applies them, as log and projector do."""

    def __init__(self, store: InMemoryFactStore) -> None:
        self.store = store
        self.taken: list[bytes] = []

    def append(self, body: bytes, signal: str) -> None:
        assert signal == "traces"
        self.taken.append(body)
        request = ExportTraceServiceRequest.FromString(body)
        at = LogPosition(1, len(self.taken))
        self.store.apply(((at, each) for each in registry.read_request("default", request)), at)


def _flagged(script: Script, *kinds: str) -> tuple[Log, list[tuple[str, str, str]]]:
    store = script.store()
    log = Log(store)
    for _ in range(2):  # a restart forgets what was flagged, and flags nothing again
        flagging = InvariantFlags(store, kinds, log.append, NULL_METRICS)
        watch = InvariantWatch(store, report=flagging.flag)
        for _ in range(2):
            watch.look(threading.Event())
    found = flagged_answers(store)
    return log, [(each.answer.span_id, each.flag.source, each.flag.reason) for each in found]


def _stale() -> Script:
    script = Script()
    _, old = script.remember("My barber is Enzo.")
    script.day(2)
    script.update(old, "My barber is Marco.")
    script.ask("Who is my barber?")
    script.reply("Enzo.", old)
    return script


def test_a_stale_delivery_flags_the_answer_that_used_it_once() -> None:
    script = _stale()
    log, found = _flagged(script, "stale")
    (answer, source, reason) = found[0]
    assert len(found) == len(log.taken) == 1
    assert (answer, source) == (script.last("answer").span_id, "operator")
    assert reason.startswith("invariant stale: mem:stub:1@")
    assert str(script.last("retrieve")) in reason


def test_only_the_invariants_that_were_named_flag() -> None:
    assert _flagged(_stale(), "zombie", "empty_retrieval")[1] == []
    assert _flagged(_stale())[1] == []


def test_an_answer_that_did_not_use_the_delivery_is_not_flagged() -> None:
    script = _stale()
    script.ask("What is the weather?", day=21)
    script.answer("Sunny.")
    _, found = _flagged(script, *KINDS)
    assert [answer for answer, *_ in found] == [script.first("answer").span_id]


def test_a_deleted_record_that_is_delivered_flags_its_answer() -> None:
    script = Script()
    _, version = script.remember("My barber is Enzo.")
    script.day(2)
    script.delete(version)
    script.ask("Who is my barber?")
    script.reply("Enzo.", version)
    _, found = _flagged(script, "zombie")
    assert [reason.split(":")[0] for *_, reason in found] == ["invariant zombie"]


def test_an_empty_retrieval_flags_the_next_answer_of_its_trace() -> None:
    script = Script()
    script.ask("Who is my barber?")
    script.reply("I do not know.")
    _, found = _flagged(script, "empty_retrieval")
    assert [answer for answer, *_ in found] == [script.last("answer").span_id]


def test_an_answer_that_comes_later_than_the_finding_is_flagged_then() -> None:
    script = _stale()
    store = script.store()
    late = InMemoryFactStore()
    log = Log(late)
    flagging = InvariantFlags(late, KINDS, log.append, NULL_METRICS)
    watch = InvariantWatch(late, report=flagging.flag)
    graph_id = script.graph
    operations = store.all_operations(graph_id)
    at = LogPosition(1, 0)
    late.apply([(at, SpanFacts(operation=op)) for op in operations[:-1]], at)
    flagging.flag(invariants.check(late, graph_id))
    assert log.taken == []
    late.apply([(at, SpanFacts(operation=operations[-1]))], at)
    watch.look(threading.Event())
    assert len(log.taken) == 1


def test_every_invariant_but_a_lost_write_may_flag() -> None:
    """A write that never happened reaches no answer."""
    assert set(FLAGGING_INVARIANTS) == set(KINDS) - {invariants.LOST_WRITE}
