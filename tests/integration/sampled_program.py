"""An instrumented program: ``sampled_program.py REQUESTS``; sampler and exporter as configured."""

from __future__ import annotations

import sys

from opentelemetry import trace
from opentelemetry.sdk._configuration import _initialize_components

import memtrace_otel as memtrace


def main() -> None:
    _initialize_components()
    tracer = trace.get_tracer("web")
    for number in range(int(sys.argv[1])):
        with (
            tracer.start_as_current_span("request"),
            memtrace.operation("create", graph_id="user:sampled") as op,
            tracer.start_as_current_span("insert"),
        ):
            op.inputs(memtrace.message(f"turn {number}", id=f"turn/{number}"))
            op.outputs(memtrace.memory(f"turn {number}", str(number), system="notes"))


if __name__ == "__main__":
    main()
