"""Operations in threads, thread pools and tasks, and what is common to a whole process."""

from __future__ import annotations

import asyncio
import contextvars
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

import memtrace_otel as memtrace
from memtrace_otel import runtime
from memtrace_otel.testing import SpanDict, Spans, lineage

WORKERS = 8
EACH = 25


def create(worker: int) -> None:
    for number in range(EACH):
        with memtrace.operation("create") as op:
            assert memtrace.current_operation() is op
            op.outputs(memtrace.fact(f"{worker}/{number}"))


async def create_in_task(worker: int) -> None:
    for number in range(EACH):
        async with memtrace.operation("create") as op:
            await asyncio.sleep(0)
            assert memtrace.current_operation() is op
            op.outputs(memtrace.fact(f"{worker}/{number}"))


def assert_each_once(spans: Spans, parents: set[str]) -> None:
    """Every operation left one span with one output and one number of an unbroken sequence."""
    created = spans.of("create")
    outputs = [ref for span in created for ref in lineage(span)["outputs"]]
    assert len(created) == len(set(outputs)) == WORKERS * EACH
    assert {span["parent_span_id"] for span in created} == parents
    assert sorted(map(number_of, spans.all())) == list(range(1, len(spans.all()) + 1))


def number_of(span: SpanDict) -> int:
    return int(lineage(span)["seq"].partition(":")[2])


def test_operations_of_a_thread_pool_are_roots_of_their_own(spans: Spans) -> None:
    with memtrace.operation("add"), ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(create, range(WORKERS)))
    assert_each_once(spans, {""})


def test_a_thread_that_is_given_the_context_works_below_the_callers_operation(
    spans: Spans,
) -> None:
    with memtrace.graph("g"), memtrace.operation("add"), ThreadPoolExecutor(WORKERS) as pool:
        contexts = [contextvars.copy_context() for _ in range(WORKERS)]
        for done in [pool.submit(each.run, create, n) for n, each in enumerate(contexts)]:
            done.result()
    assert_each_once(spans, {spans.one("add")["span_id"]})
    assert {span["attributes"]["memtrace.graph.id"] for span in spans.all()} == {"g"}


def test_gathered_tasks_work_below_the_callers_operation(spans: Spans) -> None:
    async def main() -> None:
        async with memtrace.operation("add"):
            await asyncio.gather(*map(create_in_task, range(WORKERS)))

    asyncio.run(main())
    assert_each_once(spans, {spans.one("add")["span_id"]})


@pytest.mark.skipif(sys.version_info < (3, 11), reason="TaskGroup came with Python 3.11")
def test_a_task_group_works_below_the_callers_operation(spans: Spans) -> None:
    async def main() -> None:
        async with memtrace.operation("add"), asyncio.TaskGroup() as group:
            for worker in range(WORKERS):
                group.create_task(create_in_task(worker))

    asyncio.run(main())
    assert_each_once(spans, {spans.one("add")["span_id"]})


def test_a_provider_replaced_at_run_time_gets_what_starts_then(spans: Spans) -> None:
    exporter = InMemorySpanExporter()
    other = TracerProvider(resource=Resource({"service.name": "other"}), shutdown_on_exit=False)
    other.add_span_processor(SimpleSpanProcessor(exporter))
    replaced = Spans(other, exporter)
    before = memtrace.start_operation("create")
    runtime.configure(tracer_provider=other)
    memtrace.start_operation("update").stop()
    before.stop()
    assert spans.steps() == ["create"]
    assert replaced.steps() == ["update"]
    assert replaced.one("update")["attributes"]["memtrace.graph.id"] == "service:other"
    assert [number_of(spans.one("create")), number_of(replaced.one("update"))] == [1, 2]


def test_an_adopted_span_that_is_not_recorded_takes_no_number(spans: Spans) -> None:
    unsampled = NonRecordingSpan(SpanContext(1, 2, is_remote=False, trace_flags=TraceFlags(0)))
    memtrace.adopt_operation(unsampled, "answer").stop()
    memtrace.start_operation("create").stop()
    assert number_of(spans.one("create")) == 1


def test_a_graph_learned_late_is_written_and_kept_with_the_values(spans: Spans) -> None:
    with memtrace.operation("update", graph_id="service:x") as op:
        op.graph("user:ana")
        op.outputs(memtrace.message("Ana lives in Lisbon now"))
        assert op.graph_id == "user:ana"
        memtrace.start_operation("create").stop()
    assert spans.one("update")["attributes"]["memtrace.graph.id"] == "user:ana"
    assert spans.one("create")["attributes"]["memtrace.graph.id"] == "service:x"
    match = runtime.get().recent.find(["Ana lives in Lisbon now"])[0]
    assert match.graph_id == "user:ana"
