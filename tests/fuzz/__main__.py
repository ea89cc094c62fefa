"""Fuzzing one reader until it breaks, or as long as libFuzzer's arguments say.

    python -m tests.fuzz json                              # until it breaks
    python -m tests.fuzz lineage -max_total_time=600 CORPUS

Without a corpus it begins with the contract's vectors, in a folder that is thrown away.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import atheris
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

with atheris.instrument_imports(include=["memtrace_collector", "memtrace_otel"]):
    from memtrace_collector.otlp.json_form import to_json
    from tests.contract import scenarios
    from tests.fuzz.targets import TARGETS

SCENARIOS = 8


def seeds(target: str) -> list[bytes]:
    """Inputs to begin with: requests of one span each, or the lineages in them."""
    requests = [_alone(resource, scope, span) for resource, scope, span in _spans()]
    as_json = [json.dumps(to_json(request)).encode() for request in requests]
    if target == "protobuf":
        return [b"\0" + request.SerializeToString() for request in requests]
    if target == "json":
        return [b"\0" + body for body in as_json]
    if target == "gzip":
        return [b"\1\2\3\4" + gzip.compress(body) for body in as_json]
    attributes = [item for _, _, span in _spans() for item in span.attributes]
    return [a.value.string_value.encode() for a in attributes if a.key == "memtrace.lineage"]


def _spans() -> Iterator[tuple[ResourceSpans, ScopeSpans, Span]]:
    for name in scenarios.NAMES[:SCENARIOS]:
        for resource in scenarios.request(name).resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    yield resource, scope, span


def _alone(resource: ResourceSpans, scope: ScopeSpans, span: Span) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    into = request.resource_spans.add(resource=resource.resource)
    into.scope_spans.add(scope=scope.scope).spans.append(span)
    return request


def main(target: str, arguments: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        if all(argument.startswith("-") for argument in arguments):
            for number, seed in enumerate(seeds(target)):
                (Path(folder) / str(number)).write_bytes(seed)
            arguments = [*arguments, folder]
        atheris.Setup([sys.argv[0], *arguments], TARGETS[target])
        atheris.Fuzz()


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        sys.exit(f"name one of {', '.join(TARGETS)}")
    main(sys.argv[1], sys.argv[2:])
