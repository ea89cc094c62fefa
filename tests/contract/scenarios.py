"""The contract's test vectors, loaded."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memtrace_collector.dialects import registry
from memtrace_collector.graph.facts import DEFAULT_TENANT, SpanFacts

FOLDER = Path(__file__).parent / "vectors"
NAMES = sorted(path.name.removesuffix(".expected.json") for path in FOLDER.glob("*.expected.json"))


def expected(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{name}.expected.json").read_text())


def request(name: str) -> ExportTraceServiceRequest:
    """``NAME.otlp.json``; OTLP/JSON writes ids in hex, which protobuf's JSON takes for base64."""
    return request_of(json.loads((FOLDER / f"{name}.otlp.json").read_text()))


def request_of(document: dict[str, Any]) -> ExportTraceServiceRequest:
    message = ExportTraceServiceRequest()
    json_format.ParseDict(_with_base64_ids(document), message)
    return message


def facts(name: str) -> list[SpanFacts]:
    return facts_of(json.loads((FOLDER / f"{name}.otlp.json").read_text()))


def facts_of(document: dict[str, Any]) -> list[SpanFacts]:
    """What the dialects read in an OTLP/JSON document."""
    return list(registry.read_request(DEFAULT_TENANT, request_of(document)))


def _with_base64_ids(node: Any) -> Any:
    if isinstance(node, list):
        return [_with_base64_ids(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: base64.b64encode(bytes.fromhex(value)).decode()
        if key in ("traceId", "spanId", "parentSpanId")
        else _with_base64_ids(value)
        for key, value in node.items()
    }
