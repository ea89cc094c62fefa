"""What only shows in processes of their own: SDK configuration, exit, fork, baggage."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

EXPORT = """
import json, sys
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

class Lines(SpanExporter):
    def export(self, spans):
        from memtrace_otel import testing
        for span in spans:
            print(json.dumps(testing.as_dict(span)), flush=True)
        return SpanExportResult.SUCCESS
"""
SETUP = (
    EXPORT
    + """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(Lines()))
trace.set_tracer_provider(provider)
import memtrace_otel as memtrace
"""
)


def run(program: str, **environment: str) -> list[dict[str, object]]:
    """The spans that ``program`` printed as JSON lines."""
    outcome = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env={
            **{name: value for name, value in os.environ.items() if name[:5] != "OTEL_"},
            "PYTHONPATH": str(ROOT),
            "MEMTRACE_DIGEST_KEY": "plain",
            "MEMTRACE_RAISE_INTERNAL": "1",
            **environment,
        },
    )
    assert outcome.returncode == 0, outcome.stderr
    return [json.loads(line) for line in outcome.stdout.splitlines()]


def lineage(span: dict[str, object]) -> dict[str, object]:
    attributes = span["attributes"]
    assert isinstance(attributes, dict)
    parsed: dict[str, object] = json.loads(attributes["memtrace.lineage"])
    return parsed


def test_a_process_that_ends_says_farewell_before_the_sdk_shuts_down() -> None:
    spans = run(SETUP + "memtrace.start_operation('create').stop()")
    assert [span["name"] for span in spans] == ["create_memory", "memtrace.farewell"]
    process, _, number = str(lineage(spans[0])["seq"]).partition(":")
    assert number == "1"
    assert lineage(spans[1]) == {"seq": f"{process}:2", "key": "plain"}
    assert len(process) == 8
    assert spans[1]["parent_span_id"] == ""


def test_what_is_still_open_at_exit_is_counted_before_the_farewell() -> None:
    spans = run(
        SETUP
        + """
from memtrace_otel import farewell
farewell.before(lambda: memtrace.start_operation("answer").stop())
memtrace.start_operation("create").stop()
"""
    )
    assert [span["name"] for span in spans][1:] == ["memtrace.answer", "memtrace.farewell"]
    numbers = [str(lineage(span)["seq"]) for span in spans]
    process = numbers[0].partition(":")[0]
    assert numbers == [f"{process}:{number}" for number in (1, 2, 3)]


def test_a_provider_made_later_gets_the_farewell_before_it_shuts_down() -> None:
    spans = run(
        SETUP
        + """
from memtrace_otel import runtime
memtrace.start_operation("create").stop()
later = TracerProvider()
later.add_span_processor(BatchSpanProcessor(Lines()))
runtime.configure(tracer_provider=later)
memtrace.start_operation("update").stop()
"""
    )
    numbers = {str(span["name"]): str(lineage(span)["seq"]).partition(":")[2] for span in spans}
    assert numbers == {"create_memory": "1", "update_memory": "2", "memtrace.farewell": "3"}


def test_a_process_without_operations_has_nothing_to_say() -> None:
    assert run(SETUP + "memtrace.current_operation()") == []


def test_unsampled_operations_are_counted() -> None:
    program = SETUP.replace("TracerProvider()", "TracerProvider(sampler=Every())").replace(
        "provider =",
        """
from opentelemetry.sdk.trace.sampling import Sampler, SamplingResult, Decision
class Every(Sampler):
    def should_sample(self, parent_context, trace_id, name, *rest, **more):
        wanted = name != "create_memory"
        return SamplingResult(Decision.RECORD_AND_SAMPLE if wanted else Decision.DROP)
    def get_description(self):
        return "x"
provider =""",
        1,
    )
    spans = run(
        program
        + """
with memtrace.operation("create") as op:
    assert not op.is_recording
memtrace.start_operation("update").stop()
"""
    )
    assert [str(lineage(span)["seq"]).partition(":")[2] for span in spans] == ["2", "3"]


def test_a_forked_worker_counts_for_itself() -> None:
    spans = run(
        SETUP
        + """
import os
memtrace.start_operation("create").stop()
worker = os.fork()
if worker == 0:
    memtrace.start_operation("update").stop()
    memtrace.start_operation("update").stop()
    sys.exit(0)
assert os.waitpid(worker, 0)[1] == 0
memtrace.start_operation("delete").stop()
""",
        PYTHONWARNINGS="ignore",
    )
    by_name = {str(span["name"]): str(lineage(span)["seq"]) for span in spans}
    parent = by_name["create_memory"].partition(":")[0]
    child = by_name["update_memory"].partition(":")[0]
    assert parent != child
    assert by_name["create_memory"] == f"{parent}:1"
    assert by_name["delete_memory"] == f"{parent}:2"
    assert by_name["update_memory"] == f"{child}:2"
    farewells = {str(lineage(s)["seq"]) for s in spans if s["name"] == "memtrace.farewell"}
    assert farewells == {f"{parent}:3", f"{child}:3"}


def test_a_fork_while_another_thread_holds_our_locks_does_not_hang() -> None:
    run(
        SETUP
        + """
import os, threading, time
stop = False
def busy():
    while not stop:
        with memtrace.operation("retrieve") as op:
            op.delivered(memtrace.memory("x", "1", system="s"))
threads = [threading.Thread(target=busy, daemon=True) for _ in range(2)]
[thread.start() for thread in threads]
Lines.export = lambda self, spans: None
for _ in range(5):
    worker = os.fork()
    if worker == 0:
        with memtrace.operation("retrieve") as op:
            op.delivered(memtrace.memory("x", "1", system="s"))
        os._exit(0)
    assert os.waitpid(worker, 0)[1] == 0
stop = True
[thread.join() for thread in threads]
""",
        PYTHONWARNINGS="ignore",
    )


@pytest.mark.parametrize(
    ("argument", "ordinary"),
    [("0.0", 0), ("1.0", 2), ("parentbased_always_off", 0), ("traceidratio:0", 0), ("junk", 2)],
)
def test_the_sampler_keeps_memory_spans_through_the_sdks_configuration(
    argument: str, ordinary: int
) -> None:
    program = (
        EXPORT
        + """
from opentelemetry.sdk._configuration import _initialize_components
_initialize_components()
from opentelemetry import trace
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(Lines()))
import memtrace_otel as memtrace
tracer = trace.get_tracer("web")
with tracer.start_as_current_span("request"):
    with memtrace.operation("add", graph_id="g"):
        with tracer.start_as_current_span("http call"):
            with memtrace.operation("create"):
                pass
with tracer.start_as_current_span("other", attributes={"gen_ai.operation.name": "search_memory"}):
    pass
"""
    )
    spans = run(
        program,
        OTEL_TRACES_SAMPLER="memtrace",
        OTEL_TRACES_SAMPLER_ARG=argument,
        OTEL_TRACES_EXPORTER="none",
        OTEL_METRICS_EXPORTER="none",
        OTEL_LOGS_EXPORTER="none",
    )
    names = [str(span["name"]) for span in spans]
    assert {"create_memory", "upsert_memory", "memtrace.farewell", "other"} <= set(names)
    assert len([name for name in names if name in ("request", "http call")]) == ordinary
    assert len({span["trace_id"] for span in spans if span["name"] != "memtrace.farewell"}) == 2


def test_graph_and_conversation_travel_to_another_process_when_asked() -> None:
    parent = (
        SETUP
        + """
from opentelemetry import propagate
with memtrace.graph("user:anna", conversation_id="c1"):
    carrier = {}
    with memtrace.operation("answer"):
        propagate.inject(carrier)
print(json.dumps(carrier))
"""
    )
    child = (
        SETUP
        + """
from opentelemetry import propagate
context = propagate.extract(json.loads(CARRIER))
with memtrace.operation("create", context=context):
    pass
"""
    )
    for wanted, expected in (("true", "user:anna"), ("false", "service:web")):
        out = run(parent, MEMTRACE_BAGGAGE=wanted)
        carrier = next(line for line in out if "traceparent" in line)
        answer = next(line for line in out if line.get("name") == "memtrace.answer")
        program = child.replace("CARRIER", repr(json.dumps(carrier)))
        created = run(program, MEMTRACE_BAGGAGE=wanted, OTEL_SERVICE_NAME="web")[0]
        attributes = created["attributes"]
        assert isinstance(attributes, dict)
        assert created["trace_id"] == answer["trace_id"]
        assert attributes["memtrace.graph.id"] == expected
        assert attributes.get("gen_ai.conversation.id") == ("c1" if wanted == "true" else None)


def test_without_an_sdk_nothing_is_digested_and_no_key_is_made(tmp_path: Path) -> None:
    run(
        """
import memtrace_otel as memtrace
from memtrace_otel import runtime
with memtrace.operation("add") as op:
    op.inputs(memtrace.message("x"), memtrace.fact("y"))
    op.outputs(memtrace.memory("z", "1", system="s"))
    assert not op.is_recording
    assert memtrace.current_operation() is None
@memtrace.operation("rewrite")
def function():
    return 3
assert function() == 3
memtrace.flag(trace_id="ab")
assert runtime.get()._digests is None
""",
        MEMTRACE_DIGEST_KEY="",
        XDG_STATE_HOME=str(tmp_path),
    )
    assert list(tmp_path.iterdir()) == []


def test_an_sdk_configured_later_is_used() -> None:
    spans = run(
        """
import memtrace_otel as memtrace
early = memtrace.fact("made before the SDK")
with memtrace.operation("create") as op:
    assert not op.is_recording
"""
        + SETUP
        + """
with memtrace.operation("create") as op:
    op.inputs(early)
    assert op.is_recording
"""
    )
    assert lineage(spans[0])["inputs"]


def test_an_unknown_capture_mode_warns_and_captures_nothing() -> None:
    program = SETUP + "memtrace.operation('ingest')(lambda: None)()\n"
    program += """
with memtrace.operation("ingest") as op:
    op.outputs(memtrace.message("a secret"))
"""
    for mode, captured in (("true", False), ("SPAN_ONLY", True), ("EVENT_ONLY", False)):
        spans = run(program, OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=mode)
        assert ("a secret" in json.dumps(spans)) is captured
