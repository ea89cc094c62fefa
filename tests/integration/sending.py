"""The same spans sent in other ways: apart, in other batches, over every transport."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable

import grpc
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub

from tests.integration.servers import Up


def spans_apart(request: ExportTraceServiceRequest) -> list[ExportTraceServiceRequest]:
    """One request per span, as many small exporters would send them."""
    parts = []
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                part = ExportTraceServiceRequest()
                target = part.resource_spans.add(
                    resource=resource.resource, schema_url=resource.schema_url
                )
                target.scope_spans.add(scope=scope.scope, schema_url=scope.schema_url).spans.append(
                    span
                )
                parts.append(part)
    return parts


def together(parts: Iterable[ExportTraceServiceRequest]) -> ExportTraceServiceRequest:
    """One request of several."""
    whole = ExportTraceServiceRequest()
    for part in parts:
        whole.resource_spans.extend(part.resource_spans)
    return whole


def send(server: Up, way: str, requests: Iterable[ExportTraceServiceRequest]) -> None:
    """``way``: grpc, http-protobuf or http-json."""
    if way == "grpc":
        with grpc.insecure_channel(server.addresses["otlp_grpc"]) as channel:
            stub = TraceServiceStub(channel)
            for request in requests:
                stub.Export(request, timeout=30)
    elif way == "http-json":
        for request in requests:
            server.send(otlp_json(request), "application/json")
    else:
        for request in requests:
            server.send(request.SerializeToString())


def otlp_json(request: ExportTraceServiceRequest) -> bytes:
    """OTLP's JSON: ids in hex instead of base64."""

    def hexed(node: object) -> object:
        if isinstance(node, list):
            return [hexed(item) for item in node]
        if not isinstance(node, dict):
            return node
        return {
            key: base64.b64decode(value).hex()
            if key in ("traceId", "spanId", "parentSpanId")
            else hexed(value)
            for key, value in node.items()
        }

    document = json_format.MessageToDict(request, use_integers_for_enums=True)
    return json.dumps(hexed(document)).encode()
