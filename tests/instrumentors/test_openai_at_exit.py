"""A program that ends while it is still reading an answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.instrumentors.openai_stub import OpenAIStub

PROGRAM = """
import json, sys
import openai
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
import memtrace_otel as memtrace
from memtrace_otel import testing

class Lines(SpanExporter):
    def export(self, spans):
        for span in map(testing.as_dict, spans):
            step = span["attributes"].get("memtrace.step")
            if step:
                print(json.dumps([step, testing.lineage(span)["seq"]]), flush=True)

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(Lines()))
trace.set_tracer_provider(provider)
memtrace.instrument()
client = openai.OpenAI(base_url=sys.argv[1], api_key="k", max_retries=0)
others = provider.get_tracer("another instrumentation")
with trace.use_span(others.start_span("chat m"), end_on_exit=False):
    messages = [{"role": "user", "content": "Where does Ann live now?"}]
    stream = client.chat.completions.create(model="m", messages=messages, stream=True)
next(stream)
if sys.argv[2] == "with more":
    memtrace.start_operation("create").stop()
"""


@pytest.mark.parametrize("more", ["alone", "with more"])
def test_an_answer_still_streaming_at_exit_is_recorded_before_the_farewell(more: str) -> None:
    with OpenAIStub() as stub:
        stub.reply("She lives in Lisbon, I believe.")
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, stub.base_url, more],
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
            env={
                **{name: text for name, text in os.environ.items() if name[:5] != "OTEL_"},
                "PYTHONPATH": str(Path(__file__).parents[2]),
                "MEMTRACE_DIGEST_KEY": "plain",
            },
        )
    assert done.returncode == 0, done.stderr
    recorded = [json.loads(line) for line in done.stdout.splitlines()]
    expected = ["create"] * (more == "with more") + ["answer", "farewell"]
    assert [step for step, _ in recorded] == expected
    process = recorded[0][1].partition(":")[0]
    assert [seq for _, seq in recorded] == [f"{process}:{n + 1}" for n in range(len(expected))]
