"""The pipelines on real mem0, each generation in its own environment, as programs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memtrace_collector.bench.pipelines.runner import read_outcomes
from memtrace_collector.bench.planned import Outcome, PlannedCase, Planting
from tests import components
from tests.instrumentors.otlp_receiver import OTLPReceiver
from tests.memtrace_collector.bench import bench_kit as kit

NOT_INHERITED = ("OTEL_", "MEMTRACE_", "MEM0_", "OPENAI_")
SECONDS = 120


Ran = tuple[dict[str, Outcome], list[dict[str, Any]]]


def detail(**values: str) -> dict[str, str]:
    return values


CHANGE = detail(old="240", new="310", reply="310 euros")
FAULTS = {
    "filed_elsewhere": ("ingest", detail(owner="someone-else")),
    "left_out": ("extract", {}),
    "value_changed": ("extract", CHANGE),
    "chose_nothing": ("decide", {}),
    "write_failed": ("create", {}),
    "taken_for_known": ("add", {}),
    "not_searched": ("answer", {}),
    "wrong_namespace": ("retrieve", detail(owner="someone-else")),
    "missed": ("retrieve", detail(as_if="Chapters of a novel")),
    "over_budget": ("answer", {}),
    "declined": ("answer", {}),
    "call_failed": ("answer", {}),
    "never_said": ("", {}),
    "wrong_reference": ("", detail(expected="310 euros")),
}
ONLY = {1: {"chose_nothing", "write_failed"}, 2: {"taken_for_known"}}


def planned(major: int) -> list[PlannedCase]:
    system = f"mem0-{major}"
    kinds = [kind for kind in FAULTS if kind not in ONLY[3 - major]]
    cases = [
        kit.case(system, Planting(kind=kind, message=kit.PRICE, detail=FAULTS[kind][1]), name=kind)
        for kind in kinds
    ]
    return [*cases, kit.case(system, name="control"), kit.case("rag", name="another-system")]


def run(major: int, python: str, folder: Path, endpoint: str) -> subprocess.CompletedProcess[str]:
    (folder / "plan.json").write_bytes(msgspec.json.encode(planned(major)))
    environment = {k: v for k, v in os.environ.items() if not k.startswith(NOT_INHERITED)}
    return subprocess.run(
        [
            python, "-m", f"memtrace_collector.bench.pipelines.mem0_{major}",
            "--plan", str(folder / "plan.json"), "--outcomes", str(folder / "outcomes.jsonl"),
        ],
        env={**environment, "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )  # fmt: skip


def step_of(spans: list[dict[str, Any]], span_id: str) -> str:
    return next(str(s["attributes"]["memtrace.step"]) for s in spans if s["span_id"] == span_id)


@pytest.fixture(scope="module", params=[1, 2])
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    major = request.param
    folder = tmp_path_factory.mktemp(f"mem0-{major}")
    python = sys.executable if major == 1 else components.mem0_2_python()
    with OTLPReceiver() as receiver:
        done = run(major, python, folder, receiver.endpoint)
        assert done.returncode == 0, done.stderr[-5_000:]
        spans = receiver.spans()
    outcomes = read_outcomes(folder / "outcomes.jsonl")
    assert len({o.case.id for o in outcomes}) == len(outcomes)
    return {o.case.id: o for o in outcomes}, spans


def test_every_case_counts_and_its_fault_is_the_operation_that_was_seen(ran: Ran) -> None:
    outcomes, spans = ran
    for kind, (step, _) in FAULTS.items():
        if kind not in outcomes:
            continue
        outcome = outcomes[kind]
        assert outcome.counts, (kind, outcome)
        (truth,) = outcome.truths
        assert (step_of(spans, truth.span_id) if truth.span_id else "") == step, kind


def test_the_answer_s_span_and_the_evidence_are_in_the_owner_s_graph(ran: Ran) -> None:
    outcomes, spans = ran
    control = outcomes["control"]
    assert control.counts and control.right
    (answer,) = (span for span in spans if span["span_id"] == control.span_id)
    assert answer["attributes"]["memtrace.graph.id"] == control.graph_id == "user:ana-control"
    assert any(
        f'"msg:{kit.PRICE}@' in span["attributes"].get("memtrace.lineage", "")
        for span in spans
        if span["attributes"].get("memtrace.graph.id") == control.graph_id
    )


def test_the_clean_run_is_not_recorded(ran: Ran) -> None:
    outcomes, spans = ran
    answers = [s for s in spans if s["attributes"].get("memtrace.step") == "answer"]
    failed = 1  # the call before the apology
    assert len(answers) == len(outcomes) + failed
