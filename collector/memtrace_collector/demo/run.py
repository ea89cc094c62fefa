"""The main job end to end: a memory goes wrong, answers are flagged, the operation is named."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memtrace_collector.api.client import Client
from memtrace_collector.demo.agent_run import Agent, Reply, check_installed
from memtrace_collector.demo.cases import Question, questions
from memtrace_collector.demo.outcome import Outcome
from memtrace_collector.demo.processes import server
from memtrace_collector.demo.truth import Recorded, Records, recorded
from memtrace_collector.errors import UnreachableError, WrongUseError

VERDICT_SECONDS = 120.0
_POLL_SECONDS = 0.2

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """``store`` is new or empty. ``model``: the name of a real one; None: the stand-in."""

    store: Path
    forward: str | None = None
    model: str | None = None

    @property
    def folder(self) -> Path:
        """What is not the collector's: the agent's memory, its replies and all logs."""
        return self.store / "demo"


def run(settings: Settings, progress: Progress) -> list[Outcome]:
    """Run everything; the processes that were started have ended when this returns.

    Raises:
        WrongUseError: something is missing that only the user can supply.
        UnreachableError: a process failed or verdicts did not come in time.
    """
    check_installed()
    if settings.model and not os.environ.get("OPENAI_API_KEY"):
        raise WrongUseError("--model needs OPENAI_API_KEY (and OPENAI_BASE_URL for another host)")
    if settings.store.exists() and any(settings.store.iterdir()):
        raise WrongUseError(f"{settings.store} is not empty; the demo needs a store of its own")
    settings.folder.mkdir(parents=True, exist_ok=True)
    progress("starting memtrace-otel up and the model")
    with _collector(settings) as addresses, _stand_in(settings) as model_url:
        agent = Agent(
            folder=settings.folder,
            otlp_http=addresses["otlp_http"],
            stand_in=model_url,
            model=settings.model,
        )
        progress("writer: the dialogue goes into the memory")
        agent.write(progress)
        progress("reader: questions are answered from the memory")
        replies = agent.read(progress)
        with closing(Client(addresses["api"])) as client:
            return _attributed(client, replies, settings, progress)


def _attributed(
    client: Client, replies: Sequence[Reply], settings: Settings, progress: Progress
) -> list[Outcome]:
    client.settle()
    records = _records(client)
    asked = {question.id: question for question in questions()}
    answers = {reply.case_id: records.answer(reply.response_id) for reply in replies}
    progress(f"flagging {len(answers)} answers and waiting for verdicts")
    for case_id, answer in answers.items():
        question = asked[case_id]
        evidence = question.evidence_references
        client.flag(_name(answer.span), question.expected, evidence, "asked by the demo")
    verdicts = _verdicts(client, list(answers.values()), settings.folder)
    outcomes = []
    for reply in replies:
        answer = answers[reply.case_id]
        verdict = verdicts[_name(answer.span)]
        outcomes.append(
            Outcome(
                question=asked[reply.case_id],
                answered=reply.text,
                answer=answer,
                planted=None if settings.model else _planted(records, asked[reply.case_id], answer),
                verdict=verdict,
                decisive=tuple(records.operation(span) for span in verdict["decisive"]),
            )
        )
    return outcomes


def _planted(records: Records, question: Question, answer: Recorded) -> Recorded | None:
    if question.planted is None:
        return None
    return records.planted(question.planted, question.question, answer)


def _records(client: Client) -> Records:
    graph_ids = [summary["graph_id"] for summary in client.graphs()]
    return recorded(json.loads(client.graph(graph_id, "", "json")) for graph_id in graph_ids)


def _verdicts(
    client: Client, answers: Sequence[Recorded], folder: Path
) -> dict[str, dict[str, Any]]:
    wanted = {_name(answer.span) for answer in answers}
    deadline = time.monotonic() + VERDICT_SECONDS
    while True:
        found = {_name(verdict["answer"]): verdict for verdict in client.verdicts("", "", "")}
        if wanted <= found.keys():
            return found
        if time.monotonic() >= deadline:
            missing = len(wanted - found.keys())
            raise UnreachableError(
                f"{missing} of {len(wanted)} verdicts did not come within {VERDICT_SECONDS:.0f} s; "
                f"{folder / 'up.log'} may say why"
            )
        time.sleep(_POLL_SECONDS)


def _name(span: dict[str, str]) -> str:
    return f"{span['traceId']}:{span['spanId']}"


@contextmanager
def _collector(settings: Settings) -> Iterator[dict[str, str]]:
    command = [
        sys.executable, "-m", "memtrace_collector", "up", "--store", str(settings.store),
        "--grpc-port", "0", "--http-port", "0", "--api-port", "0", "--format", "json",
        *(["--forward", settings.forward] if settings.forward else []),
    ]  # fmt: skip
    log = settings.folder / "up.log"
    with server("memtrace-otel up", command, os.environ, log) as line:
        yield json.loads(line)


@contextmanager
def _stand_in(settings: Settings) -> Iterator[str]:
    planting = [] if settings.model else ["--plant"]
    command = [sys.executable, "-m", "memtrace_collector.demo.model", *planting]
    with server("the model", command, os.environ, settings.folder / "model.log") as url:
        yield url
