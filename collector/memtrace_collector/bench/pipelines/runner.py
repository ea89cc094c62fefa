"""The program around a pipeline: a plan in, one outcome per case out.

    python -m memtrace_collector.bench.pipelines.mem0_1 --plan plan.json --outcomes out.jsonl

Each case runs twice: clean, without faults and without telemetry, then as planned, recorded to
the OTLP endpoint of the environment. Cases whose outcome the file has already are left out, so a
run that was cut off goes on where it stopped.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter
from opentelemetry.trace import format_span_id, format_trace_id

from memtrace_collector.bench.pipelines.base import Bench, Pipeline, Ran
from memtrace_collector.bench.pipelines.telemetry import (
    exporter_from_environment,
    provider_for,
    recording,
)
from memtrace_collector.bench.planned import Outcome, PlannedCase, Truth
from memtrace_collector.bench.plantings import NO_OPERATION, Plantings
from memtrace_collector.bench.stand_in.model import StandIn
from memtrace_collector.bench.stand_in.server import served
from memtrace_collector.errors import DamagedError, MemtraceError
from memtrace_otel.instrumentors.openai import OpenAIInstrumentor

MakePipeline = Callable[[Bench], Pipeline]
CONTROL = "right_but_flagged"
"""A control is a right answer that is flagged: what that planting is, without planting it."""
_SCOPE = "memtrace-bench"


class Runner:
    """Runs cases of one pipeline, one after another."""

    def __init__(
        self, pipeline: Pipeline, bench: Bench, model: StandIn, provider: TracerProvider
    ) -> None:
        self._pipeline = pipeline
        self._bench = bench
        self._model = model
        self._provider = provider
        self._clean: dict[object, tuple[str, bool]] = {}

    def run(self, case: PlannedCase) -> Outcome:
        """One case, clean (unless the same was asked before) and as planned."""
        clean_reply, clean_right = self._run_clean(case)
        plantings = Plantings(case.plantings)
        with recording(self._provider):
            ran = self._recorded(case, plantings)
        right = self._model.judge(ran.reply)
        expected = self._expected(case, plantings, right)
        if expected != case.question.expected:
            right = False
        return Outcome(
            case=case,
            graph_id=ran.graph_id,
            trace_id=format_trace_id(ran.answer.trace_id),
            span_id=format_span_id(ran.answer.span_id),
            clean_reply=clean_reply,
            clean_right=clean_right,
            reply=ran.reply,
            right=right,
            truths=plantings.truths or _control(case),
            expected=expected,
            flag_source="dataset" if plantings.fires("wrong_reference") else "evaluator",
            skipped=_skipped(plantings, ran),
        )

    def _run_clean(self, case: PlannedCase) -> tuple[str, bool]:
        said = tuple((m.speaker, m.said_at, m.text) for m in case.messages)
        key = (case.dialogue, case.question.text, said)
        if key not in self._clean:
            plantings = Plantings()
            self._model.begin(case, plantings)
            with recording(None):
                reply = self._pipeline.run(case, plantings, self._model).reply
            self._clean[key] = (reply, self._model.judge(reply))
        return self._clean[key]

    def _recorded(self, case: PlannedCase, plantings: Plantings) -> Ran:
        watch = self._bench.watch
        watch.clear()
        watch.on_reply = plantings.reply_seen
        self._model.begin(case, plantings)
        self._bench.tracer = self._provider.get_tracer(_SCOPE)
        try:
            return self._pipeline.run(case, plantings, self._model)
        finally:
            self._bench.tracer = None

    def _expected(self, case: PlannedCase, plantings: Plantings, right: bool) -> str:
        """What the flag gives as expected; the faults of the flag itself are made here."""
        for planting in plantings.of(CONTROL):
            if right:
                plantings.took_effect(planting, NO_OPERATION)
        for planting in plantings.of("wrong_reference"):
            if right:
                plantings.took_effect(planting, NO_OPERATION)
                return planting.detail["expected"]
        return case.question.expected


def _control(case: PlannedCase) -> tuple[Truth, ...]:
    if case.plantings:
        return ()
    return (Truth(kind=CONTROL, error_type="bad_judge", trace_id="", span_id=""),)


def _skipped(plantings: Plantings, ran: Ran) -> str:
    if not ran.answer.is_valid:
        return "the answer's span was not seen"
    missed = [f"{p.kind} {p.message}".strip() for p in plantings.without_effect]
    return f"never came to pass: {', '.join(missed)}" if missed else ""


def read_plan(path: Path) -> list[PlannedCase]:
    """The cases of a plan.

    Raises:
        DamagedError: it is no plan.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[PlannedCase])
    except msgspec.MsgspecError as error:
        raise DamagedError(f"{path} is no plan: {error}") from error


def read_outcomes(path: Path) -> list[Outcome]:
    """The outcomes so far; a last line that was cut off is left out."""
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")
    return [msgspec.json.decode(line, type=Outcome) for line in lines[:-1] if line]


def run_cases(
    make: MakePipeline, cases: Sequence[PlannedCase], exporter: SpanExporter, folder: Path
) -> Iterator[Outcome]:
    """Run ``cases`` one by one, each outcome given when its spans have been exported."""
    model = StandIn()
    with ExitStack() as stack:
        bench = Bench(folder, stack.enter_context(served(model)))
        stack.callback(bench.client.close)
        pipeline = make(bench)
        provider = provider_for(pipeline.name, exporter, bench.watch)
        stack.callback(provider.shutdown)
        stack.enter_context(_instrumented())
        runner = Runner(pipeline, bench, model, provider)
        for case in cases:
            if case.system == pipeline.name:
                yield runner.run(case)


@contextmanager
def _instrumented() -> Iterator[None]:
    OpenAIInstrumentor().instrument(skip_dep_check=True)
    try:
        yield
    finally:
        OpenAIInstrumentor().uninstrument()


def main(make: MakePipeline, arguments: Sequence[str] | None = None) -> int:
    """The whole program; returns the exit code."""
    parser = argparse.ArgumentParser(description="Run the cases of a plan through one pipeline.")
    parser.add_argument("--plan", type=Path, required=True, help="JSON list of planned cases")
    parser.add_argument("--outcomes", type=Path, required=True, help="file to append to, JSONL")
    options = parser.parse_args(arguments)
    logging.getLogger("mem0").setLevel(logging.ERROR)
    try:
        _run_plan(make, options.plan, options.outcomes)
    except MemtraceError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def _run_plan(make: MakePipeline, plan: Path, outcomes: Path) -> None:
    cases = read_plan(plan)
    _drop_cut_line(outcomes)
    done = {outcome.case.id for outcome in read_outcomes(outcomes)}
    left = [case for case in cases if case.id not in done]
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="memtrace-bench-") as folder, outcomes.open("ab") as to:
        ran = run_cases(make, left, exporter_from_environment(), Path(folder))
        for count, outcome in enumerate(ran, start=1):
            to.write(msgspec.json.encode(outcome) + b"\n")
            to.flush()
            seconds = (time.monotonic() - started) / count
            state = "counts" if outcome.counts else outcome.skipped or "no case"
            print(f"{count}/{len(left)} {outcome.case.id} {state} ({seconds:.2f} s a case)",
                  file=sys.stderr, flush=True)  # fmt: skip


def _drop_cut_line(path: Path) -> None:
    """A run that was killed may have left half a line: it would join the next one."""
    if path.exists():
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(path, whole)
