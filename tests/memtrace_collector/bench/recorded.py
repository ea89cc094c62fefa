"""A benchmark folder as a run leaves it, filled with the scenarios of the decision table."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from memtrace_collector.bench.dialogue import Message, Question
from memtrace_collector.bench.folder import RunFolder, RunInfo
from memtrace_collector.bench.planned import Outcome, PlannedCase, Planting, Truth
from memtrace_collector.config import Config
from memtrace_collector.graph import flags
from memtrace_collector.runtime.data_folder import DataFolder
from memtrace_collector.store.in_memory import InMemoryFactStore
from memtrace_collector.telemetry.metrics import NULL_METRICS
from tests.contract import scenarios
from tests.contract.test_scenarios import SCENARIOS

MOMENT = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
SYSTEM = "staged"
PLAIN = [
    name
    for name in sorted(SCENARIOS)
    if SCENARIOS[name].told()[1].decisive is not None
    and SCENARIOS[name].told()[1].types[0] != "insufficient_evidence"
]
"""Scenarios whose truth names operations, or says that there are none."""


def planned(
    name: str, *, system: str = SYSTEM, kind: str = "", held_out: bool = False
) -> PlannedCase:
    return PlannedCase(
        id=name,
        system=system,
        dialogue=f"dialogue-{len(name) % 5}",
        owner="user:1",
        messages=(
            Message(id="m1", speaker="Ann", role="user", text="I live in Oslo.", said_at=MOMENT),
        ),
        question=Question(
            id="q1",
            text="Where does Ann live?",
            asked_at=MOMENT,
            expected="Oslo",
            evidence=("m1",),
            category="single_hop",
        ),
        plantings=(Planting(kind=kind),) if kind else (),
        held_out=held_out,
    )


def outcome(name: str, *, held_out: bool = False) -> tuple[Outcome, bytes]:
    """A scenario as a case that ran, and its spans as OTLP/JSON."""
    story, expected = SCENARIOS[name].told()
    body = json.dumps(story.otlp())
    store = InMemoryFactStore.of(scenarios.facts_of(json.loads(body)))
    (flag,) = store.flags()
    answer = flags.resolve(store, flag)
    assert answer is not None
    kinds = [expected.types[0], *expected.then]
    steps = [step.id for step in expected.decisive or ()] or [("", "")]
    truths = tuple(
        Truth(kind=kind, error_type=kind, trace_id=trace_id, span_id=span_id)
        for kind, (trace_id, span_id) in zip(kinds, steps)
    )
    right = kinds == ["bad_judge"]
    ran = Outcome(
        case=planned(name, kind="" if right else kinds[0], held_out=held_out),
        graph_id=answer.graph_id,
        trace_id=answer.trace_id,
        span_id=answer.span_id,
        clean_reply="Oslo",
        clean_right=True,
        reply="Oslo" if right else "Porto",
        right=right,
        truths=truths,
        expected=flag.expected or "",
        flag_source=flag.source,
    )
    return ran, body.encode()


def make(root: Path, names: Iterable[str], held_out: frozenset[str] = frozenset()) -> RunFolder:
    """A folder with one unit of ``staged`` in which these scenarios ran."""
    folder = RunFolder(root)
    ran = [outcome(name, held_out=name in held_out) for name in names]
    info = RunInfo(seed=1, per_kind=1, split="all", systems=(SYSTEM,), kinds=())
    folder.save_plan(info, [each.case for each, _ in ran])
    unit = folder.next_unit(SYSTEM)
    unit.outcomes_path.parent.mkdir(parents=True)
    with closing(DataFolder(unit.traces, Config(), NULL_METRICS)) as data:
        for _, body in ran:
            data.ingest.submit("default", "traces", "json", body).durable.result(10)  # type: ignore[union-attr]  # accepted
    lines = b"".join(msgspec.json.encode(each) + b"\n" for each, _ in ran)
    unit.outcomes_path.write_bytes(lines)
    return folder
