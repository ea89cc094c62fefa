"""Every way of saying that an answer is wrong, through the real doors of a real `up`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import grpc
import httpx
import pytest

from memtrace_collector.receiver.decode import decode
from tests.memtrace_collector.running import VECTORS, Up, command, environment, eventually, start_up

VECTOR = "wrongly_deleted"
LOGS_EXPORT = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
_WRITER, _READER = "9d192559", "1b304bdc"
_FLAG_ATTRIBUTES = ("memtrace.flagged", "memtrace.expected", "memtrace.flag.source")
Json = dict[str, Any]


def attributes(values: Json) -> list[Json]:
    kinds = {str: "stringValue", bool: "boolValue", float: "doubleValue"}
    return [{"key": name, "value": {kinds[type(v)]: v}} for name, v in values.items()]


def spans_of(document: Json) -> list[Json]:
    return [
        span
        for resource in document["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


@dataclass(frozen=True)
class Story:
    """One owner's memory and answer, not flagged, and how to send it."""

    up: Up
    number: int
    document: Json

    @property
    def answer(self) -> Json:
        return next(span for span in spans_of(self.document) if span["name"].startswith("chat"))

    @property
    def name(self) -> str:
        return f"{self.answer['traceId']}:{self.answer['spanId']}"

    @property
    def response_id(self) -> str:
        return f"response-{self.number}"

    @property
    def conversation_id(self) -> str:
        return f"conversation-{self.number}"

    def send(self) -> None:
        assert self.up.post(json.dumps(self.document).encode()).status_code == 200

    def send_span(self, name: str, values: Json, **fields: Any) -> None:
        span = {
            "traceId": f"{self.number:02x}" * 16,
            "spanId": f"{self.number:02x}" * 8,
            "name": name,
            "kind": 1,
            "startTimeUnixNano": self.answer["endTimeUnixNano"],
            "endTimeUnixNano": self.answer["endTimeUnixNano"],
            "attributes": attributes(values),
            **fields,
        }
        body = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
        assert self.up.post(json.dumps(body).encode()).status_code == 200

    def flag(self, **values: str | bool) -> None:
        named = {f"memtrace.flag.{name}": value for name, value in values.items()}
        self.send_span("memtrace.flag", {"memtrace.step": "flag", **named})

    def log(self, values: Json, *, on_span: bool = True) -> bytes:
        record: Json = {
            "timeUnixNano": self.answer["endTimeUnixNano"],
            "eventName": "gen_ai.evaluation.result",
            "attributes": attributes(values),
        }
        if on_span:
            record |= {"traceId": self.answer["traceId"], "spanId": self.answer["spanId"]}
        return json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}).encode()

    def send_log(self, body: bytes, content_type: str = "application/json") -> None:
        url = f"{self.up.addresses['otlp_http']}/v1/logs"
        headers = {"content-type": content_type}
        response = httpx.post(url, content=body, headers=headers, timeout=20)
        assert response.status_code == 200


def story(up: Up, number: int, vector: str = VECTOR) -> Story:
    text = (VECTORS / f"{vector}.otlp.json").read_text()
    text = text.replace(f"user:{vector}", f"user:{vector}-{number}")
    for process in (_WRITER, _READER):
        text = text.replace(f"{process}:", f"{process}-{number}:")
    document = json.loads(text)
    for span in spans_of(document):
        span["traceId"] = f"{number:02x}{span['traceId'][2:]}"
        span["attributes"] = [a for a in span["attributes"] if a["key"] not in _FLAG_ATTRIBUTES]
    made = Story(up, number, document)
    ids = {
        "gen_ai.response.id": made.response_id,
        "gen_ai.conversation.id": made.conversation_id,
    }
    made.answer["attributes"] += attributes(ids)
    return made


def by_attribute(it: Story) -> None:
    it.answer["attributes"] += attributes({"memtrace.flagged": True})
    it.send()


def by_event(it: Story, **result: str | float) -> None:
    named = {f"gen_ai.evaluation.{name}": value for name, value in result.items()}
    it.answer["events"] = [
        {
            "name": "gen_ai.evaluation.result",
            "timeUnixNano": it.answer["endTimeUnixNano"],
            "attributes": attributes({k.replace("__", "."): v for k, v in named.items()}),
        }
    ]
    it.send()


def by_log_over_grpc(it: Story) -> None:
    it.send()
    body = decode("logs", "json", it.log({"gen_ai.evaluation.score.label": "incorrect"}))
    with grpc.insecure_channel(it.up.addresses["otlp_grpc"]) as channel:
        channel.unary_unary(LOGS_EXPORT)(body.SerializeToString(), timeout=20)


def by_protobuf_log(it: Story) -> None:
    it.send()
    body = decode("logs", "json", it.log({"gen_ai.evaluation.score.label": "fail"}))
    it.send_log(body.SerializeToString(), "application/x-protobuf")


def by_log_naming_the_response(it: Story) -> None:
    it.send()
    values = {"gen_ai.evaluation.score.label": "fail", "gen_ai.response.id": it.response_id}
    it.send_log(it.log(values, on_span=False))


def by_low_score(it: Story) -> None:
    it.send()
    name = {"gen_ai.evaluation.name": "faithfulness"}
    it.send_log(it.log({**name, "gen_ai.evaluation.score.value": 0.4}))


def by_span_naming_the_span(it: Story) -> None:
    it.send()
    it.flag(trace_id=it.answer["traceId"], span_id=it.answer["spanId"])


def by_span_naming_the_span_above(it: Story) -> None:
    it.send()
    it.flag(trace_id=it.answer["traceId"], span_id=it.answer["parentSpanId"])


def by_span_naming_the_trace(it: Story) -> None:
    it.send()
    it.flag(trace_id=it.answer["traceId"])


def by_span_naming_the_conversation(it: Story) -> None:
    it.send()
    values = {"memtrace.step": "flag", "gen_ai.conversation.id": it.conversation_id}
    it.send_span("memtrace.flag", values)


def by_span_that_arrives_before_the_answer(it: Story) -> None:
    values = {"memtrace.step": "flag", "gen_ai.response.id": it.response_id}
    it.send_span("memtrace.flag", values)
    it.send()


def by_span_naming_the_response(it: Story) -> None:
    it.send()
    values = {"memtrace.step": "flag", "gen_ai.response.id": it.response_id}
    it.send_span("memtrace.flag", values)


def by_api(it: Story) -> None:
    it.send()
    url = f"{it.up.addresses['api']}/api/v1"
    assert httpx.post(f"{url}/settle", json={}, timeout=20).status_code == 200
    response = httpx.post(f"{url}/flag", json={"answer": it.name}, timeout=20)
    assert response.status_code == 200


def by_command(it: Story) -> None:
    it.send()
    httpx.post(f"{it.up.addresses['api']}/api/v1/settle", json={}, timeout=20)
    line = command("flag", it.name, "--store", it.up.addresses["store"])
    subprocess.run(line, env=environment(), check=True, capture_output=True, timeout=60)


WAYS: dict[str, Callable[[Story], None]] = {
    "attribute": by_attribute,
    "event with a failure label": lambda it: by_event(it, score__label="Failed"),
    "event with a low score": lambda it: by_event(it, name="faithfulness", score__value=0.1),
    "log over gRPC": by_log_over_grpc,
    "log over HTTP": by_protobuf_log,
    "log naming the response": by_log_naming_the_response,
    "log with a low score": by_low_score,
    "span naming the span": by_span_naming_the_span,
    "span naming the span above": by_span_naming_the_span_above,
    "span naming the trace": by_span_naming_the_trace,
    "span naming the conversation": by_span_naming_the_conversation,
    "span naming the response": by_span_naming_the_response,
    "span before the answer": by_span_that_arrives_before_the_answer,
    "API": by_api,
    "command": by_command,
}


def own_span(it: Story) -> None:
    it.send()
    values = {"memtrace.flagged": True, "memtrace.attribution.type": "wrong"}
    answer = it.answer
    it.send_span(
        "memtrace.attribution",
        values,
        traceId=answer["traceId"],
        parentSpanId=answer["spanId"],
        events=[
            {
                "name": "gen_ai.evaluation.result",
                "attributes": attributes({"gen_ai.evaluation.score.label": "fail"}),
            }
        ],
    )


def own_log(it: Story) -> None:
    it.send()
    name = {"gen_ai.evaluation.name": "memtrace.attribution"}
    it.send_log(it.log({**name, "gen_ai.evaluation.score.label": "wrong"}))


def good_score(it: Story) -> None:
    by_event(it, name="faithfulness", score__value=0.5)


def score_without_threshold(it: Story) -> None:
    by_event(it, name="politeness", score__value=0.0)


NO_FLAGS: dict[str, Callable[[Story], None]] = {
    "our own span": own_span,
    "our own log record": own_log,
    "a label that is not in the list": lambda it: by_event(it, score__label="meh"),
    "a score that passes": good_score,
    "a score without a threshold": score_without_threshold,
}


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Story]]:
    """Everything sent; the verdicts of what is flagged are there."""
    thresholds = {"MEMTRACE_EVALUATION_THRESHOLDS": "faithfulness=0.5"}
    up = start_up(tmp_path_factory.mktemp("flags") / "store", **thresholds)
    sent: dict[str, Story] = {}
    try:
        for number, (name, way) in enumerate([*NO_FLAGS.items(), *WAYS.items()], 16):
            sent[name] = story(up, number)
            way(sent[name])
        flagged = {sent[name].name for name in WAYS}
        eventually(lambda: flagged <= verdicts(up).keys(), "a verdict for each flagged answer")
        yield sent
    finally:
        assert up.stop() == 0


def verdicts(up: Up) -> dict[str, Json]:
    found = up.ask("/verdicts")
    return {f"{v['answer']['traceId']}:{v['answer']['spanId']}": v for v in found}


@pytest.mark.parametrize("name", WAYS)
def test_an_answer_is_flagged_by(stories: dict[str, Story], name: str) -> None:
    it = stories[name]
    verdict = verdicts(it.up)[it.name]
    assert verdict["revision"] == 1
    assert verdict["graph_id"] == f"user:{VECTOR}-{it.number}"


@pytest.mark.parametrize("name", NO_FLAGS)
def test_an_answer_is_not_flagged_by(stories: dict[str, Story], name: str) -> None:
    it = stories[name]
    assert it.name not in verdicts(it.up)


def test_a_broken_invariant_flags_when_the_settings_say_so(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("invariants") / "store"
    up = start_up(folder, MEMTRACE_FLAG_INVARIANTS="stale,zombie")
    try:
        it = story(up, 7, "stale_retrieved")
        it.send()
        eventually(lambda: it.name in verdicts(up), "a verdict on the answer that was reached")
    finally:
        assert up.stop() == 0


@pytest.mark.parametrize(("source", "is_bad_reference"), [("dataset", True), ("user", False)])
def test_only_a_persons_correction_is_never_a_bad_reference(
    stories: dict[str, Story], source: str, is_bad_reference: bool
) -> None:
    up = stories["attribute"].up
    it = story(up, 8 if is_bad_reference else 9, "bad_reference")
    expected = json.loads((VECTORS / "bad_reference.expected.json").read_text())
    assert expected["verdict"]["error_type"] == "bad_reference"
    flagged = json.loads((VECTORS / "bad_reference.otlp.json").read_text())
    given = [
        each
        for span in spans_of(flagged)
        for each in span["attributes"]
        if each["key"] in _FLAG_ATTRIBUTES and each["key"] != "memtrace.flag.source"
    ]
    it.answer["attributes"] += [*given, *attributes({"memtrace.flag.source": source})]
    it.send()
    eventually(lambda: it.name in verdicts(up), "the verdict")
    assert (verdicts(up)[it.name]["error_type"] == "bad_reference") is is_bad_reference
