"""A plain mem0 program under ``opentelemetry-instrument``: spans checked where they arrive."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.instrumentors import mem0_kit
from tests.instrumentors.mem0_kit import fact, mem, msg
from tests.instrumentors.openai_stub import OpenAIStub
from tests.instrumentors.otlp_receiver import OTLPReceiver, ReceivedSpan

PROGRAM = Path(__file__).with_name("plain_mem0_program.py")
SERVICE = "plain-program"

pytestmark = [
    pytest.mark.mem0_1,
    pytest.mark.skipif(mem0_kit.MAJOR != 1, reason="this environment has mem0ai 2.x"),
]


def environment(endpoint: str, folder: Path) -> dict[str, str]:
    return {
        **{name: text for name, text in os.environ.items() if not name.startswith("OTEL_")},
        "OTEL_SERVICE_NAME": SERVICE,
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "MEMTRACE_DIGEST_KEY": "plain",
        "MEM0_DIR": str(folder / "mem0"),
        "MEM0_TELEMETRY": "False",
    }


def run(stub: OpenAIStub, receiver: OTLPReceiver, folder: Path) -> dict[str, list[dict[str, str]]]:
    stub.reply(
        json.dumps({"facts": ["Lives in Lisbon"]}),
        json.dumps({"memory": [{"id": "0", "text": "Lives in Lisbon", "event": "ADD"}]}),
    )
    done = subprocess.run(
        [
            Path(sys.executable).with_name("opentelemetry-instrument"),
            sys.executable,
            PROGRAM,
            json.dumps(mem0_kit.config(stub.base_url, folder)),
        ],
        env=environment(receiver.endpoint, folder),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    printed: dict[str, list[dict[str, str]]] = json.loads(done.stdout.splitlines()[-1])
    return printed


def test_a_plain_program_under_opentelemetry_instrument_sends_its_memorys_lineage(
    tmp_path: Path,
) -> None:
    with OpenAIStub() as stub, OTLPReceiver() as receiver:
        printed = run(stub, receiver, tmp_path)
        receiver.wait(lambda spans: any(span["name"] == "memtrace.farewell" for span in spans))
        spans = receiver.spans()

    [added], [found] = printed["added"], printed["found"]
    assert added["id"] == found["id"]
    record = mem(added["id"], "Lives in Lisbon")
    assert lineage_of(spans, "ingest")["outputs"] == [msg("I moved to Lisbon.")]
    assert lineage_of(spans, "extract")["outputs"] == [fact("Lives in Lisbon")]
    assert lineage_of(spans, "create")["outputs"] == [record]
    [search] = [span for span in spans_of(spans, "retrieve") if not span["parent_span_id"]]
    assert json.loads(search["attributes"]["memtrace.lineage"])["delivered"] == [record]

    add = one(spans, "add")
    for step in ("ingest", "extract", "decide", "create"):
        assert one(spans, step)["parent_span_id"] == add["span_id"]
        assert one(spans, step)["attributes"]["memtrace.graph.id"] == "user:ana"
        assert one(spans, step)["resource"]["service.name"] == SERVICE
    assert spans_of(spans, "answer") == []
    assert sequence(spans) == list(range(1, len(sequence(spans)) + 1))
    assert not any("memtrace.values" in span["attributes"] for span in spans)


def sequence(spans: list[ReceivedSpan]) -> list[int]:
    """The numbers of the process's operations, in order."""
    packed = [span["attributes"].get("memtrace.lineage") for span in spans]
    return sorted(int(json.loads(text)["seq"].rpartition(":")[2]) for text in packed if text)


def spans_of(spans: list[ReceivedSpan], step: str) -> list[ReceivedSpan]:
    return [span for span in spans if span["attributes"].get("memtrace.step") == step]


def one(spans: list[ReceivedSpan], step: str) -> ReceivedSpan:
    [span] = spans_of(spans, step)
    return span


def lineage_of(spans: list[ReceivedSpan], step: str) -> dict[str, list[str]]:
    parsed: dict[str, list[str]] = json.loads(one(spans, step)["attributes"]["memtrace.lineage"])
    return parsed
