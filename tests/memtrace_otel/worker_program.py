"""A program with two workers, each exporting on its own: ``worker_program.py METHOD COUNT``."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from collections.abc import Sequence

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

import memtrace_otel as memtrace
from memtrace_otel import testing

MAIN = os.getpid()


class Lines(SpanExporter):
    """One write per span, so that lines of several processes do not mix."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        for span in map(testing.as_dict, spans):
            lineage = testing.lineage(span)
            line = {
                "pid": str(os.getpid()),
                "parent": multiprocessing.parent_process() is None and os.getpid() == MAIN,
                "step": span["attributes"]["memtrace.step"],
                "span_id": span["span_id"],
                "links": [link["span_id"] for link in span["links"]],
                "seq": lineage["seq"],
                "key": lineage["key"],
            }
            os.write(1, (json.dumps(line) + "\n").encode())
        return SpanExportResult.SUCCESS


def configure() -> TracerProvider:
    """As a program does at its start; a spawned worker does it again."""
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(Lines()))
    trace.set_tracer_provider(provider)
    return provider


def work(count: int) -> None:
    """``count`` records made of what the parent was told."""
    for number in range(count):
        with memtrace.operation("create") as op:
            op.inputs(memtrace.message("I moved to Lisbon", id="conversation/1"))
            op.outputs(memtrace.fact(f"fact {number}"))


def worker(count: int) -> None:
    """multiprocessing ends its children without exit handlers: what is held back is sent here."""
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = configure()
    work(count)
    provider.force_flush()


def fork(count: int) -> None:
    """A worker by ``os.fork`` that ends as a program does."""
    child = os.fork()
    if child == 0:
        work(count)
        sys.exit(0)
    if os.waitpid(child, 0)[1] != 0:
        sys.exit("the worker failed")


def main(method: str, count: int) -> None:
    configure()
    with memtrace.operation("ingest") as op:
        op.outputs(memtrace.message("I moved to Lisbon", id="conversation/1"))
    if method == "os.fork":
        fork(count)
        fork(count)
    else:
        starter = multiprocessing.get_context(method)
        workers = [starter.Process(target=worker, args=(count,)) for _ in range(2)]  # type: ignore[attr-defined]  # typeshed: on the concrete contexts
        for each in workers:
            each.start()
        for each in workers:
            each.join()
    work(count)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
