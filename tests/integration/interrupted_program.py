"""A program whose exporter is killed and comes back: ``interrupted_program.py ENDPOINT FILE``.

Told on standard input to go on, it says on standard output how far it is. The spans that it
exports are also appended to FILE, as one OTLP request a line in base64.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Sequence
from pathlib import Path

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

import memtrace_otel as memtrace

TEXT = "I moved to Lisbon in March"


class Copy(SpanExporter):
    def __init__(self, path: Path) -> None:
        self._path = path

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        request = encode_spans(spans).SerializeToString()
        with self._path.open("ab") as file:
            file.write(base64.b64encode(request) + b"\n")
        return SpanExportResult.SUCCESS


def say(provider: TracerProvider, what: str) -> None:
    provider.force_flush()
    print(what, flush=True)
    sys.stdin.readline()


def main() -> None:
    provider = TracerProvider()
    exporter = OTLPSpanExporter(endpoint=f"{sys.argv[1]}/v1/traces", timeout=1)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    provider.add_span_processor(BatchSpanProcessor(Copy(Path(sys.argv[2]))))
    trace.set_tracer_provider(provider)
    said, fact = memtrace.message(TEXT, id="turn/1"), memtrace.fact(TEXT)
    stored = memtrace.memory(TEXT, "1", system="notes")
    asked = memtrace.query("Where do I live?")
    with memtrace.graph("user:interrupted"):
        with memtrace.operation("add") as add:
            add.inputs(said)
            with memtrace.operation("ingest") as op:
                op.outputs(said)
            with memtrace.operation("extract") as op:
                op.inputs(said)
                op.outputs(fact)
            with memtrace.operation("decide") as op:
                op.inputs(fact)
                op.decision(fact, "ADD")
            say(provider, "told")
            with memtrace.operation("create") as op:
                op.inputs(fact)
                op.outputs(stored)
            say(provider, "stored")
        with memtrace.operation("ingest") as op:
            op.outputs(asked)
        with memtrace.operation("retrieve") as op:
            op.inputs(asked)
        with memtrace.operation("answer") as op:
            op.inputs(asked)
            op.outputs(memtrace.answer("I do not know."))
            memtrace.flag(expected=TEXT, evidence=[said])
        say(provider, "answered")


if __name__ == "__main__":
    main()
