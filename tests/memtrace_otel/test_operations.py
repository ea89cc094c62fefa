"""What an operation writes on its span."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter

import memtrace_otel as memtrace
from memtrace_otel import packing, runtime, semconv, testing
from memtrace_otel.config import Config
from memtrace_otel.testing import Spans, lineage, values

UUID = "4f0c2d1e-0000-4000-8000-000000000001"


def test_every_field_of_the_lineage_is_written(spans: Spans) -> None:
    said = memtrace.message("I moved to Lisbon", "conv/1")
    fact = memtrace.fact("User lives in Lisbon")
    old = memtrace.memory("User lives in Porto", UUID, system="stub")
    new = memtrace.memory("User lives in Lisbon", UUID, system="stub")
    with memtrace.operation("update", system="stub", system_version="1", graph_id="user:1") as op:
        op.inputs(said, fact)
        op.shown(old)
        op.outputs(new)
        op.dropped(old, 0.2, "threshold", 4)
        op.dropped(fact)
        op.limits(k=3, threshold=0.5, nothing=None)
        op.supersedes(old)
        op.decision(fact, "UPDATE", old, "done")
        op.decision(None, "NOOP")
        op.edge(fact, new, "derived_from")
        op.reads("corpus", "corpus", "shared")
        op.source(old, "AB" * 16, "cd" * 8)
        op.time(said, datetime(2026, 1, 4, 12, tzinfo=timezone(timedelta(hours=2))))
        op.role(said, "user")
        op.inferred(fact)
        op.attribute(semconv.GEN_AI_MEMORY_STORE_ID, "main")
    span = spans.one("update")
    assert span["name"] == "update_memory"
    assert lineage(span) == {
        "inputs": [said.ref, fact.ref],
        "shown": [old.ref],
        "outputs": [new.ref],
        "dropped": [[old.ref, 0.2, "threshold", 4], [fact.ref, None, "other"]],
        "limits": {"k": 3, "threshold": 0.5},
        "supersedes": [old.ref],
        "decisions": [[fact.ref, "UPDATE", old.ref, "done"], [None, "NOOP", None]],
        "edges": [[fact.ref, new.ref, "derived_from"]],
        "reads": ["corpus", "shared"],
        "from": {old.ref: "ab" * 16 + "-" + "cd" * 8},
        "times": {said.ref: "2026-01-04T12:00:00+02:00"},
        "roles": {said.ref: "user"},
        "inferred": [fact.ref],
        "seq": f"{testing.PROCESS}:1",
        "key": "plain",
    }
    attributes = span["attributes"]
    assert list(attributes)[-1] == "memtrace.lineage"
    assert attributes["memtrace.schema.version"] == 1
    assert attributes["memtrace.graph.id"] == "user:1"
    assert attributes["memtrace.system"] == "stub"
    assert attributes["memtrace.system.version"] == "1"
    assert attributes["memtrace.capture"] == "declared"
    assert attributes["gen_ai.operation.name"] == "update_memory"
    assert attributes["gen_ai.memory.record.id"] == UUID
    assert attributes["gen_ai.memory.record.count"] == 1
    assert attributes["gen_ai.memory.store.id"] == "main"


def test_a_read_writes_rank_scores_and_the_conventional_attributes(spans: Spans) -> None:
    first = memtrace.memory("Rex is a dog", UUID, system="stub")
    second = memtrace.memory("Max is a baker", "17", system="stub", store="s")
    with memtrace.operation("retrieve", graph_id="user:1") as op:
        op.inputs(memtrace.query("What is my dog called?"))
        op.delivered(first, 0.9)
        op.delivered(second, float("nan"))
        op.score_kind("similarity")
    span = spans.one("retrieve")
    packed = lineage(span)
    assert packed["delivered"] == [first.ref, second.ref]
    assert packed["scores"] == [0.9, None]
    assert packed["score_kind"] == "similarity"
    attributes = span["attributes"]
    assert attributes["gen_ai.memory.record.count"] == 2
    assert attributes["gen_ai.memory.query.text"] == "What is my dog called?"
    assert json.loads(attributes["gen_ai.memory.records"]) == [
        {"id": UUID, "content": "Rex is a dog", "score": 0.9},
        {"id": "17", "content": "Max is a baker"},
    ]


def test_scores_are_left_out_when_none_is_known(spans: Spans) -> None:
    with memtrace.operation("retrieve") as op:
        op.delivered("mem:a:1@0")
    assert "scores" not in lineage(spans.one("retrieve"))


def test_references_are_taken_as_variable_ref_or_text(spans: Spans) -> None:
    variable = memtrace.VariableRef("mem", "mem0:1", "abc")
    with memtrace.operation("assemble") as op:
        op.inputs(variable, "mem:mem0:2@def", memtrace.Variable("ctx:a b@0", "text"))
    assert lineage(spans.one("assemble"))["inputs"] == [
        "mem:mem0:1@abc",
        "mem:mem0:2@def",
        "ctx:a b@0",
    ]


def test_ids_that_are_not_opaque_are_digested(spans: Spans) -> None:
    secret = memtrace.memory("x", "my diary", system="stub").ref
    assert "diary" not in secret
    assert memtrace.deleted_memory(UUID, system="mem0").ref == f"mem:mem0:{UUID}@deleted"
    assert memtrace.unknown_memory(17, system="faiss", store="s").ref == "mem:faiss:s:17@?"
    assert memtrace.message("x", "conv 7/12").ref.startswith("msg:conv%207/12@")


def test_one_exit_only(spans: Spans) -> None:
    op = memtrace.start_operation("create")
    op.stop()
    op.stop()
    op.fail(ValueError())
    op.outputs(memtrace.fact("late"))
    assert not op.is_recording
    assert "outputs" not in lineage(spans.one("create"))
    assert spans.one("create")["status"] == "UNSET"


def test_a_failure_names_the_exception_and_passes_it_on(spans: Spans) -> None:
    class LibraryError(Exception):
        pass

    error = LibraryError("no such index")
    with pytest.raises(LibraryError) as caught, memtrace.operation("create") as op:
        op.inputs(memtrace.fact("a"))
        raise error
    assert caught.value is error
    span = spans.one("create")
    assert span["status"] == "ERROR"
    assert span["attributes"]["error.type"] == f"{__name__}.{LibraryError.__qualname__}"
    assert lineage(span)["inputs"]


def test_an_exceptions_message_is_content() -> None:
    for content, expected in ((True, "user said x"), (False, None)):
        with testing.capture(content=content) as spans:
            memtrace.start_operation("create").fail(ValueError("user said x"))
        (span,) = spans._exporter.get_finished_spans()
        assert span.status.description == expected
        assert span.attributes and span.attributes["error.type"] == "ValueError"


def test_content_is_not_captured_unless_asked() -> None:
    with testing.capture(content=False) as spans:
        with memtrace.operation("retrieve") as op:
            op.inputs(memtrace.query("my secret"))
            op.delivered(memtrace.memory("my other secret", UUID, system="s"), 1)
        memtrace.flag(trace_id="ab" * 16, expected="secret too", reason="secret three")
    assert "secret" not in json.dumps(spans.all())
    assert spans.one("retrieve")["attributes"]["memtrace.lineage"]


def test_values_are_sent_where_they_are_first_seen(spans: Spans) -> None:
    said = memtrace.message("I moved", "m/1")
    with memtrace.operation("ingest") as op:
        op.outputs(said)
    with memtrace.operation("extract") as op:
        op.inputs(said)
        op.outputs(memtrace.fact({"moved": True}))
    assert values(spans.one("ingest")) == {said.ref: "I moved"}
    assert list(values(spans.one("extract")).values()) == ['{"moved":true}']


def test_inputs_are_captured_before_the_call(spans: Spans) -> None:
    messages = [{"role": "user", "content": "before"}]
    expected = memtrace.context([{"role": "user", "content": "before"}]).ref
    with memtrace.operation("answer") as op:
        op.inputs(memtrace.context(messages))
        messages[0]["content"] = "after"
        messages.append({"role": "assistant", "content": "x"})
    assert lineage(spans.one("answer"))["inputs"] == [expected]
    assert "before" in values(spans.one("answer"))[expected]


def test_long_values_are_cut_and_named() -> None:
    config = Config(capture_content=True, digest_key="plain", max_value_chars=10, max_span_chars=25)
    long, short, last = (memtrace.message(text) for text in ("a" * 30, "short", "b" * 20))
    gone = memtrace.message("c" * 20)
    with testing.capture(config=config) as spans, memtrace.operation("ingest") as op:
        op.outputs(long, short, last, gone)
    span = spans.one("ingest")
    assert values(span) == {long.ref: "a" * 10, short.ref: "short", last.ref: "b" * 10}
    assert lineage(span)["cut"] == [long.ref, last.ref, gone.ref]


def test_redaction_changes_or_withholds_and_says_so() -> None:
    def redactor(reference: str, text: str) -> str | None:
        if "secret" in text:
            return None
        return text.replace("Anna", "[name]")

    plain, named, secret = (memtrace.message(t) for t in ("hello", "Anna is here", "a secret"))
    with testing.capture(redactor=redactor) as spans, memtrace.operation("ingest") as op:
        op.outputs(plain, named, secret)
    span = spans.one("ingest")
    assert values(span) == {plain.ref: "hello", named.ref: "[name] is here"}
    assert lineage(span)["cut"] == [named.ref, secret.ref]


def _raises(reference: str, text: str) -> str:
    raise RuntimeError("redactor is broken")


def _returns_junk(reference: str, text: str) -> str:
    return 17  # type: ignore[return-value]  # what a careless user's hook may do


@pytest.mark.parametrize("redactor", [_raises, _returns_junk])
def test_a_broken_redactor_withholds(
    redactor: Callable[[str, str], str], internal_errors_are_swallowed: None
) -> None:
    with testing.capture() as spans:
        memtrace.set_redactor(redactor)
        with memtrace.operation("retrieve") as op:
            op.inputs(memtrace.query("secret"))
    assert "secret" not in json.dumps(spans.all())
    assert lineage(spans.one("retrieve"))["cut"]


def test_lineage_is_split_to_the_sdks_attribute_limit() -> None:
    limits = SpanLimits(max_span_attribute_length=200)
    inputs = [memtrace.fact(f"fact {number}") for number in range(20)]
    with testing.capture(span_limits=limits) as spans, memtrace.operation("extract") as op:
        op.inputs(*inputs)
    span = spans.one("extract")
    pieces = [name for name in span["attributes"] if name.startswith("memtrace.lineage")]
    assert pieces[:3] == ["memtrace.lineage", "memtrace.lineage.1", "memtrace.lineage.2"]
    assert lineage(span)["inputs"] == [variable.ref for variable in inputs]
    # values that do not fit are left out whole, and named; they are sent when next seen
    kept = values(span)
    assert len(json.dumps(kept, separators=(",", ":"))) <= 200
    assert set(lineage(span)["cut"]) == {v.ref for v in inputs} - set(kept)


def test_a_value_that_did_not_fit_is_sent_when_next_seen() -> None:
    limits = SpanLimits(max_span_attribute_length=200)
    long, short = memtrace.fact("x" * 120), memtrace.fact("y" * 60)
    with testing.capture(span_limits=limits) as spans:
        for step in ("extract", "decide"):
            with memtrace.operation(step) as op:
                op.inputs(long, short)
    assert list(values(spans.one("extract"))) == [short.ref]
    assert list(values(spans.one("decide"))) == [long.ref]


def test_a_tiny_attribute_limit_cuts_references_and_says_so() -> None:
    limits = SpanLimits(max_span_attribute_length=20)
    with testing.capture(span_limits=limits) as spans, memtrace.operation("extract") as op:
        op.inputs(*[memtrace.fact(f"fact {number}") for number in range(300)])
    packed = lineage(spans.one("extract"))
    assert packed["truncated"]["inputs"] == 300 - len(packed.get("inputs", []))
    assert packed["seq"]


def test_dropped_goes_first_from_the_worst_rank() -> None:
    with testing.capture(content=False) as spans, memtrace.operation("retrieve") as op:
        op.inputs(memtrace.query("q"))
        for number in range(100):
            op.delivered(f"mem:s:{number}@a", 1 - number / 1000)
        for number in range(100, 1_200):
            op.dropped(f"mem:s:{number}@a", 1 - number / 1000, "limit", number + 1)
    packed = lineage(spans.one("retrieve"))
    assert packed["truncated"] == {"dropped": 201}
    assert len(packed["dropped"]) == 899
    assert packed["dropped"][-1][0] == "mem:s:998@a"
    assert len(packed["delivered"]) == len(packed["scores"]) == 100


def test_an_open_operation_is_bounded() -> None:
    with testing.capture(content=False) as spans, memtrace.operation("extract") as op:
        for _ in range(3):
            op.inputs(*["msg:a@1"] * 6_000)
        for number in range(11_000):
            op.dropped("mem:s:1@1")
            op.role(f"msg:{number}@1", "user")
    packed = lineage(spans.one("extract"))
    assert packed["truncated"]["inputs"] >= 8_000
    assert packed["truncated"]["dropped"] >= 10_000
    assert len(packed["roles"]) <= 1_000


@pytest.mark.parametrize(
    "given",
    [None, 17, "", "no reference", ":@", object(), b"msg:a@1", memtrace.Variable(17)],  # type: ignore[arg-type]  # weird on purpose
)
def test_what_is_no_variable_is_left_out_and_the_rest_kept(spans: Spans, given: object) -> None:
    with memtrace.operation("extract") as op:
        op.inputs("msg:a@1", given, "msg:b@1")  # type: ignore[arg-type]  # weird on purpose
    assert lineage(spans.one("extract"))["inputs"] == ["msg:a@1", "msg:b@1"]


class _Hostile:
    def __str__(self) -> str:
        raise RuntimeError("no text for you")

    __repr__ = __str__
    __float__ = __str__


def test_no_exception_of_ours_escapes(
    spans: Spans, internal_errors_are_swallowed: None, caplog: pytest.LogCaptureFixture
) -> None:
    hostile = _Hostile()
    weird = memtrace.fact({"x": hostile, "\ud800": "\ud800"}, hostile)  # type: ignore[arg-type]  # weird on purpose
    surrogate = memtrace.message("lone \ud800 surrogate", "id \ud800\x00")
    for _ in range(2):
        with memtrace.operation("create", attributes={"a": hostile}):  # type: ignore[dict-item]  # weird on purpose
            pass
        with memtrace.operation("retrieve") as op:
            op.inputs(weird)
            op.inputs(surrogate)
            op.delivered("mem:a:1@1", hostile)  # type: ignore[arg-type]  # weird on purpose
            op.limits(k=hostile, huge=10**400, inf=float("inf"))
            op.time("msg:a@1", hostile)  # type: ignore[arg-type]  # weird on purpose
            op.source("msg:a@1", "xyz", "1")
            op.decision(weird, hostile)  # type: ignore[arg-type]  # weird on purpose
            op.score_kind(hostile)  # type: ignore[arg-type]  # weird on purpose
            op.attribute("b", hostile)  # type: ignore[arg-type]  # weird on purpose
            op.dropped("mem:a:1@1", reason=hostile, rank=hostile)  # type: ignore[arg-type]  # weird on purpose
            op.edge("msg:a@1", "msg:b@1", hostile)  # type: ignore[arg-type]  # weird on purpose
    memtrace.flag(trace_id="not hex")
    memtrace.flag(trace_id="ab", evidence=[weird], expected=hostile)  # type: ignore[arg-type]  # weird on purpose
    with memtrace.graph(hostile):  # type: ignore[arg-type]  # weird on purpose
        pass
    ours = [r.getMessage() for r in caplog.records if r.name == "memtrace_otel"]
    assert len(ours) == len(set(ours)), "each kind is logged once"
    for span in spans.of("retrieve"):
        packed = lineage(span)
        assert surrogate.ref in packed["inputs"], "one bad call does not lose the others"
        json.dumps(packed, ensure_ascii=False).encode()


class _BrokenExporter(SpanExporter):
    def export(self, spans: object) -> None:  # type: ignore[override]  # broken on purpose
        raise RuntimeError("exporter is broken")


class _BrokenProcessor(SimpleSpanProcessor):
    def on_end(self, span: object) -> None:
        raise RuntimeError("processor is broken")


@pytest.mark.parametrize("processor", [SimpleSpanProcessor, _BrokenProcessor])
def test_a_broken_pipeline_does_not_reach_the_host(
    processor: type[SimpleSpanProcessor], internal_errors_are_swallowed: None
) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor(_BrokenExporter()))
    before = runtime.install(runtime.Runtime(Config(digest_key="k"), tracer_provider=provider))
    try:
        with memtrace.operation("create") as op:
            op.outputs(memtrace.fact("a"))
    finally:
        runtime.install(before)


def test_an_adopted_span_is_written_and_left_open(spans: Spans) -> None:
    tracer = spans.provider.get_tracer("other")
    with tracer.start_as_current_span("chat gpt") as span:
        span.set_attribute("gen_ai.operation.name", "chat")
        op = memtrace.adopt_operation(span, "answer", graph_id="user:1", capture="observed")
        op.outputs(memtrace.answer("Lisbon"))
        op.stop()
        assert span.is_recording()
    adopted = spans.one("answer")
    assert adopted["name"] == "chat gpt"
    assert adopted["attributes"]["memtrace.graph.id"] == "user:1"
    assert lineage(adopted)["outputs"]


def test_an_adopted_span_that_ended_before_gets_a_child(spans: Spans) -> None:
    tracer = spans.provider.get_tracer("other")
    with tracer.start_as_current_span("chat gpt") as span:
        op = memtrace.adopt_operation(span, "answer", graph_id="user:1")
    op.outputs(memtrace.answer("Lisbon"))
    op.stop()
    chat, answer = spans.all()
    assert chat["name"] == "chat gpt"
    assert answer["name"] == "memtrace.answer"
    assert answer["parent_span_id"] == chat["span_id"]
    assert lineage(answer)["outputs"]
    assert "memtrace.lineage" not in chat["attributes"]


def test_an_adopted_span_that_is_not_recorded_is_no_operation(spans: Spans) -> None:
    op = memtrace.adopt_operation(trace.INVALID_SPAN, "answer")
    op.outputs(memtrace.answer("Lisbon"))
    op.stop()
    assert not op.is_recording
    assert spans.all() == []


def test_lineage_with_quotes_and_backslashes_stays_json() -> None:
    fields = {"inputs": ['msg:a"b\\c@1', "msg:d@2"], "roles": {"msg:é@1": "\ud800"}}
    text = packing.dumps_lineage(fields, "p:1", "plain")
    assert json.loads(text) == {
        "inputs": fields["inputs"],
        "roles": {"msg:é@1": "\ufffd"},
        "seq": "p:1",
        "key": "plain",
    }
