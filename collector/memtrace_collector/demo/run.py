"""The main job end to end: a memory goes wrong, answers are flagged, the operation is named."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from memtrace_collector.api.client import Client
from memtrace_collector.demo.agent_run import Agent, Reply, check_installed
from memtrace_collector.demo.cases import Question, questions
from memtrace_collector.demo.collector import collector
from memtrace_collector.demo.outcome import Outcome
from memtrace_collector.demo.processes import server
from memtrace_collector.demo.settings import Settings
from memtrace_collector.demo.truth import Recorded, Records, recorded
from memtrace_collector.errors import DamagedError, UnreachableError, WrongUseError

VERDICT_SECONDS = 120.0
RECORD_SECONDS = 60.0
"""How long spans are waited for that went through somebody else's Collector."""
_POLL_SECONDS = 0.2

Progress: TypeAlias = Callable[[str], None]
Sizes: TypeAlias = Mapping[str, int]
"""Graph -> number of operations."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """One question of the run, its answer, and what was planted for it."""

    question: Question
    reply: Reply
    answer: Recorded
    planted: Recorded | None


def run(settings: Settings, progress: Progress) -> list[Outcome]:
    """Run everything; the processes that were started have ended when this returns.

    Raises:
        WrongUseError: something is missing that only the user can supply.
        UnreachableError: a process failed or verdicts did not come in time.
    """
    check_installed()
    settings.validate()
    if settings.model and not os.environ.get("OPENAI_API_KEY"):
        raise WrongUseError("--model needs OPENAI_API_KEY (and OPENAI_BASE_URL for another host)")
    settings.folder.mkdir(parents=True, exist_ok=True)
    progress("starting the model, and what takes the spans")
    with (
        collector(settings) as place,
        _stand_in(settings) as model_url,
        closing(place.client()) as client,
    ):
        agent = Agent(
            folder=settings.folder,
            otlp_http=place.otlp_http,
            stand_in=model_url,
            model=settings.model or None,
        )
        before = _sizes(client)
        progress("writer: the dialogue goes into the memory")
        agent.write(progress)
        progress("reader: questions are answered from the memory")
        replies = agent.read(progress)
        return _attributed(client, before, replies, settings, progress)


def _attributed(
    client: Client,
    before: Sizes,
    replies: Sequence[Reply],
    settings: Settings,
    progress: Progress,
) -> list[Outcome]:
    client.settle()
    everything = _recorded(client, before, replies, settings)
    progress(f"flagging {len(everything)} answers and waiting for verdicts")
    for asked in everything:
        question = asked.question
        evidence = question.evidence_references
        client.flag(_name(asked.answer.span), question.expected, evidence, "asked by the demo")
    verdicts = _verdicts(client, [asked.answer for asked in everything], settings)
    records = _records(client, before)
    return [_outcome(asked, verdicts[_name(asked.answer.span)], records) for asked in everything]


def _outcome(asked: _Asked, verdict: Mapping[str, Any], records: Records) -> Outcome:
    return Outcome(
        question=asked.question,
        answered=asked.reply.text,
        answer=asked.answer,
        planted=asked.planted,
        verdict=verdict,
        decisive=tuple(records.operation(span) for span in verdict["decisive"]),
    )


def _recorded(
    client: Client, before: Sizes, replies: Sequence[Reply], settings: Settings
) -> list[_Asked]:
    """Every answer, once all of them and what was planted have arrived."""
    deadline = time.monotonic() + (RECORD_SECONDS if settings.is_elsewhere else 0.0)
    while True:
        records = _records(client, before)
        try:
            return [_asked(records, reply, settings) for reply in replies]
        except DamagedError:
            if time.monotonic() >= deadline:
                raise
        time.sleep(_POLL_SECONDS)


def _asked(records: Records, reply: Reply, settings: Settings) -> _Asked:
    question = next(question for question in questions() if question.id == reply.case_id)
    answer = records.answer(reply.response_id)
    planted = None
    if question.planted is not None and not settings.model:
        planted = records.planted(question.planted, question.question, answer)
    return _Asked(question, reply, answer, planted)


def _records(client: Client, before: Sizes) -> Records:
    """Of the graphs that this run has made or added to."""
    changed = [name for name, size in _sizes(client).items() if before.get(name) != size]
    return recorded(json.loads(client.graph(graph_id, "", "json")) for graph_id in changed)


def _sizes(client: Client) -> Sizes:
    return {summary["graph_id"]: summary["operations"] for summary in client.graphs()}


def _verdicts(
    client: Client, answers: Sequence[Recorded], settings: Settings
) -> dict[str, dict[str, Any]]:
    wanted = {_name(answer.span) for answer in answers}
    graphs = {answer.graph_id for answer in answers}  # others of that installation may be large
    deadline = time.monotonic() + VERDICT_SECONDS
    while True:
        found = {
            _name(verdict["answer"]): verdict
            for graph_id in graphs
            for verdict in client.verdicts(graph_id, "", "")
        }
        if wanted <= found.keys():
            return found
        if time.monotonic() >= deadline:
            missing = len(wanted - found.keys())
            raise UnreachableError(
                f"{missing} of {len(wanted)} verdicts did not come within {VERDICT_SECONDS:.0f} s; "
                f"{settings.api or settings.collector_log} may say why"
            )
        time.sleep(_POLL_SECONDS)


def _name(span: dict[str, str]) -> str:
    return f"{span['traceId']}:{span['spanId']}"


@contextmanager
def _stand_in(settings: Settings) -> Iterator[str]:
    planting = [] if settings.model else ["--plant"]
    command = [sys.executable, "-m", "memtrace_collector.demo.model", *planting]
    with server("the model", command, os.environ, settings.folder / "model.log") as url:
        yield url
