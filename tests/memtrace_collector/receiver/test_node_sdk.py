"""The exporters of the OpenTelemetry SDK for Node, against the real server."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from memtrace_collector.receiver.decode import decode_traces
from tests import components
from tests.receivers import Receiver

SENDER = Path(__file__).parent / "node_sender.js"
SPANS = 1500


@pytest.mark.otlp_rule("C1", "C3")
@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("kind", ["proto", "http", "grpc"])
def test_every_span_that_the_sdk_exports_is_in_the_log_once(
    receiver: Receiver, kind: str, compression: str
) -> None:
    url = f"http://{receiver.grpc}" if kind == "grpc" else f"{receiver.http}/v1/traces"
    arguments = [str(components.node_sdk()), kind, url, str(SPANS), compression]
    done = subprocess.run(
        ["node", str(SENDER), *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    sent = json.loads(done.stdout)
    spans = [
        span
        for record in receiver.records()
        for resource in decode_traces(record).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    assert len(spans) == SPANS
    assert {span.span_id.hex() for span in spans} == set(sent)
    encodings = {record.encoding for record in receiver.records()}
    assert encodings == {"json" if kind == "http" else "protobuf"}
    kinds = {item.key: item.value.WhichOneof("value") for item in spans[-1].attributes}
    assert kinds == {
        "number": "int_value",
        "text": "string_value",
        "list": "array_value",
        "part": "double_value",
        "yes": "bool_value",
    }
