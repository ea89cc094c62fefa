"""`canary`: plant a failure whose verdict is known, and see that it is found."""

from __future__ import annotations

import contextlib
import json
import os
import random
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import NamedTuple

import click

from memtrace_collector.api.client import Client
from memtrace_collector.api.questions import Questions
from memtrace_collector.commands.canary_rounds import CHECKS, Check, Round
from memtrace_collector.commands.canary_trace import GRAPH_PREFIX
from memtrace_collector.commands.options import format_option
from memtrace_collector.commands.output import plain, print_json, print_line, table
from memtrace_collector.commands.session import TOKEN_VARIABLE
from memtrace_collector.commands.signals import until_signal
from memtrace_collector.errors import (
    EXIT_DONE,
    EXIT_FINDING,
    EXIT_UNREACHABLE,
    MemtraceError,
    WrongUseError,
)
from memtrace_collector.exporter.otlp import OtlpDestination

DEFAULT_ENDPOINT = "http://127.0.0.1:4318"
DEFAULT_API = "http://127.0.0.1:4319"
ROUNDS_IN_A_GRAPH = 100
_CHANCE = random.SystemRandom()


@click.command()
@click.option(
    "--endpoint",
    default=DEFAULT_ENDPOINT,
    show_default=True,
    metavar="URL",
    help="Where spans go: http(s)://… or grpc(s)://host:port, of `up` or of a Collector before it.",
)
@click.option(
    "--api", default=DEFAULT_API, show_default=True, metavar="URL", help="Where `up` answers."
)
@click.option(
    "--deadline",
    type=click.FloatRange(min=0.1),
    default=60.0,
    show_default=True,
    help="Seconds for all checks of a round.",
)
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1),
    help="Go on, with so many seconds between two rounds, until a signal.",
)
@click.option("--keep", is_flag=True, help="Leave what was planted in the store.")
@format_option()
@click.pass_context
def canary(
    ctx: click.Context,
    /,
    endpoint: str,
    api: str,
    deadline: float,
    interval: float | None,
    keep: bool,
    output_format: str,
) -> None:
    """Plant a small failure over OTLP and check that it is found, linked and attributed.

    Its graphs are named canary:… and are erased again, unless a check failed in them. With
    authentication, the token comes from MEMTRACE_TOKEN. Exit codes: 0 all is well, 1 a check
    failed, 3 nobody answers.

    \b
    Example:
      memtrace-otel canary --endpoint grpc://127.0.0.1:4317 --interval 60 --format json
    """
    token = os.environ.get(TOKEN_VARIABLE, "")
    stop = threading.Event()
    worst = EXIT_DONE
    with (
        _destination(endpoint, token) as to,
        contextlib.closing(Client(api, token)) as questions,
        _Planting(questions, keep) as planting,
        until_signal(stop) if interval else contextlib.nullcontext(),
    ):
        for outcome in _outcomes(lambda: Round(to, questions, deadline), planting, interval, stop):
            worst = max(worst, outcome.code)
            if interval:
                click.echo(_short(outcome, output_format))
            elif output_format == "json":
                print_json(outcome.document())
            else:
                print_line(_table(outcome))
    ctx.exit(worst)


class _Planting:
    """The graphs that rounds are planted in: one for many, erased when it has served."""

    def __init__(self, questions: Questions, keep: bool) -> None:
        self._questions = questions
        self._keep = keep
        self._rounds = 0
        self._graph_id = ""

    def __enter__(self) -> _Planting:
        return self

    def __exit__(self, *_: object) -> None:
        self._erase()

    def next_graph(self) -> str:
        """Where the next round belongs."""
        if not self._graph_id or self._rounds == ROUNDS_IN_A_GRAPH:
            self._erase()
            self._graph_id, self._rounds = f"{GRAPH_PREFIX}{_CHANCE.getrandbits(64):016x}", 0
        self._rounds += 1
        return self._graph_id

    def failed(self) -> None:
        """What the last round planted stays, to be looked at."""
        self._graph_id = ""

    def _erase(self) -> None:
        if self._keep or not self._graph_id:
            return
        try:
            self._questions.erase(self._graph_id)
        except MemtraceError as error:
            click.echo(f"{self._graph_id} is not erased: {error}", err=True)


class _Outcome(NamedTuple):
    at: str
    graph_id: str
    checks: list[Check]
    code: int

    def document(self) -> dict[str, object]:
        return {
            "time": self.at,
            "graph_id": self.graph_id,
            "ok": self.code == EXIT_DONE,
            "checks": [
                {**check._asdict(), "seconds": round(check.seconds, 4)} for check in self.checks
            ],
        }


def _outcomes(
    new_round: Callable[[], Round],
    planting: _Planting,
    interval: float | None,
    stop: threading.Event,
) -> Iterator[_Outcome]:
    """One round, or with an ``interval`` one after the other until ``stop``."""
    while True:
        one, graph_id = new_round(), planting.next_graph()
        checks = list(one.checks(graph_id, _CHANCE))
        code = EXIT_DONE
        if not checks[-1].ok:
            planting.failed()
            code = EXIT_UNREACHABLE if one.is_unreachable else EXIT_FINDING
        at = datetime.now(timezone.utc).isoformat(timespec="seconds")
        yield _Outcome(at, graph_id, checks, code)
        if interval is None or stop.wait(interval):
            return


def _table(outcome: _Outcome) -> str:
    known = {check.name: check for check in outcome.checks}
    rows = [
        ("ok" if check.ok else "FAILED", name, f"{check.seconds * 1_000:.0f} ms", check.says)
        if (check := known.get(name))
        else ("-", name, "", "not tried")
        for name in CHECKS
    ]
    return f"{outcome.graph_id}\n{table(('', 'CHECK', 'AFTER', 'SAYS'), rows)}"


def _short(outcome: _Outcome, output_format: str) -> str:
    if output_format == "json":
        return json.dumps(outcome.document())
    took = "  ".join(f"{check.name} {check.seconds:.3f} s" for check in outcome.checks if check.ok)
    failed = next((f"  {c.name}: {plain(c.says)}" for c in outcome.checks if not c.ok), "")
    return f"{outcome.at}  {'FAILED' if failed else 'ok'}  {took}{failed}"


@contextlib.contextmanager
def _destination(endpoint: str, token: str) -> Iterator[OtlpDestination]:
    headers = {"authorization": f"Bearer {token}"} if token else None
    try:
        destination = OtlpDestination("canary", endpoint, headers)
    except ValueError as error:
        raise WrongUseError(f"--endpoint: {error}") from None
    with contextlib.closing(destination):
        yield destination
