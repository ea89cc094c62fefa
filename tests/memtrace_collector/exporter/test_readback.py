"""What was delivered is looked for: some of it, patiently, and sent again once when missing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from memtrace_collector.exporter.readback import AT_ONCE, MAX_WAITING, NOT_SEEN, ReadBack
from memtrace_collector.exporter.trace_query import Found

LOOKS_AFTER = (1.0, 2.0, 4.0)
TRACE = "ab" * 16
SPANS = frozenset(("01" * 8, "02" * 8))


@dataclass
class Row:
    id: str = "row"
    signal: str = "traces"
    payload: bytes = field(default_factory=lambda: _request(SPANS))
    attempts: int = 0
    last_error: str = ""


@dataclass
class Outbox:
    """What the read-back says about rows."""

    said: list[tuple[str, str, bool]] = field(default_factory=list)

    def outbox_not_seen(
        self, entry_id: str, reason: str, retry_at_ns: int | None, destination: str = ""
    ) -> bool:
        self.said.append((entry_id, reason, retry_at_ns is not None))
        return True


@dataclass
class Query:
    """Answers as told, then with all spans."""

    answers: list[Found] = field(default_factory=list)
    asked: int = 0

    def spans_of(self, trace_id: str) -> Found:
        assert trace_id == TRACE
        self.asked += 1
        return self.answers.pop(0) if self.answers else Found(SPANS)

    def close(self) -> None:
        """Nothing is open."""


@dataclass
class Metrics:
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, name: str, value: float, **attributes: Any) -> None:
        self.counts[attributes.get("result", name)] += int(value)


class Checking:
    """A read-back with a clock that is moved."""

    def __init__(self, *answers: Found) -> None:
        self.now = 100.0
        self.query, self.metrics, self.outbox = Query(list(answers)), Metrics(), Outbox()
        self.readback = ReadBack(
            "there",
            self.query,
            looks_after=LOOKS_AFTER,
            clock=lambda: self.now,
            metrics=self.metrics,
        )

    def offer(self, row: Row | None = None) -> None:
        self.readback.offer(self.outbox, row or Row())

    def after(self, seconds: float) -> Counter[str]:
        self.now += seconds
        while self.readback.once() == 0.0:
            pass
        return self.metrics.counts


def _request(span_ids: frozenset[str]) -> bytes:
    spans = [Span(trace_id=bytes.fromhex(TRACE), span_id=bytes.fromhex(each)) for each in span_ids]
    scoped = [ResourceSpans(scope_spans=[ScopeSpans(spans=[span])]) for span in spans]
    return ExportTraceServiceRequest(resource_spans=scoped).SerializeToString()


MISSING = Found(frozenset())
PART = Found(frozenset(("01" * 8,)))
SILENT = Found(None, "ConnectError")


def test_what_is_there_is_counted_once() -> None:
    checking = Checking()
    checking.offer()
    assert checking.after(0.9) == {}
    assert checking.after(0.2) == {"visible": 1}
    assert checking.after(600) == {"visible": 1}
    assert checking.outbox.said == []


def test_what_comes_late_is_waited_for() -> None:
    checking = Checking(MISSING, PART)
    checking.offer()
    assert checking.after(1) == checking.after(1) == {}
    assert checking.after(2) == {}, "a part of its spans is not all"
    assert checking.after(4) == {"visible": 1}
    assert checking.query.asked == 3


def test_what_is_missing_is_sent_again_once_and_then_given_up_with_a_reason() -> None:
    checking = Checking(*[MISSING] * 6)
    checking.offer()
    for seconds in LOOKS_AFTER:
        checking.after(seconds)
    assert checking.metrics.counts == {"missing": 1}
    ((_, reason, is_due_again),) = checking.outbox.said
    assert is_due_again and reason.startswith(NOT_SEEN) and TRACE in reason
    checking.offer(Row(last_error=reason))
    for seconds in LOOKS_AFTER:
        checking.after(seconds)
    assert checking.metrics.counts == {"missing": 2, "memtrace.outbox.abandoned": 1}
    _, reason, is_due_again = checking.outbox.said[-1]
    assert not is_due_again and reason.endswith("also when sent again")


def test_an_api_that_is_down_is_left_alone_longer_and_longer_and_blames_no_row() -> None:
    checking = Checking(*[SILENT] * 3)
    checking.offer()
    checking.after(1)
    assert checking.query.asked == 1
    checking.after(1)
    assert checking.query.asked == 1, "it is left alone"
    checking.after(1.1)
    assert checking.query.asked == 2
    checking.after(2)
    assert checking.query.asked == 2
    assert checking.after(60) == {"unreachable": 1}
    assert checking.outbox.said == []


def test_an_answer_ends_the_pause() -> None:
    checking = Checking(SILENT, MISSING)
    checking.offer()
    checking.after(1)
    checking.after(2)
    assert checking.after(2) == {"visible": 1}


def test_only_a_sample_is_looked_for_but_whatever_was_sent_again() -> None:
    checking = Checking()
    for _ in range(AT_ONCE + 30):
        checking.offer()
    assert checking.after(1) == {"visible": AT_ONCE}
    for _ in range(5):
        checking.offer()
    assert checking.after(1) == {"visible": AT_ONCE + 1}, "one more after a second"
    for _ in range(5):
        checking.offer(Row(last_error=NOT_SEEN))
    assert checking.after(60) == {"visible": AT_ONCE + 6}


def test_every_row_of_a_verdict_is_in_the_sample() -> None:
    checking = Checking()
    for name in ("case", "attribution", "cause"):
        checking.offer(Row(id=name))
    assert checking.after(1) == {"visible": 3}


def test_no_more_wait_than_there_is_room_for() -> None:
    checking = Checking()
    for _ in range(MAX_WAITING + 50):
        checking.offer(Row(last_error=NOT_SEEN))
    assert checking.after(1) == {"visible": MAX_WAITING}


def test_log_records_and_what_is_no_request_are_not_looked_for() -> None:
    checking = Checking()
    for row in (Row(signal="logs"), Row(payload=b"\xff"), Row(payload=b"")):
        checking.offer(row)
    checking.after(60)
    assert checking.query.asked == 0
