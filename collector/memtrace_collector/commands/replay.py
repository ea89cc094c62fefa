"""Options of `attribute` for replays, and how their results are shown."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import click

from memtrace_collector.api.questions import Replaying
from memtrace_collector.attribution.replay.outcome import NO_ENDPOINT
from memtrace_collector.errors import WrongUseError
from memtrace_collector.settings.attribution import MAX_REPLAY_RUNS

Json = dict[str, Any]


def replay_options(command: Callable[..., None]) -> Callable[..., None]:
    """``--replay``, ``--runs`` and ``--replay-model``, as one argument ``replay``."""

    @click.option(
        "--replay",
        "wanted",
        is_flag=True,
        help="Test each verdict: ask the model at MEMTRACE_REPLAY_URL, else at the model's or "
        "OPENAI_BASE_URL, with the right value put back and without.",
    )
    @click.option(
        "--runs",
        type=click.IntRange(1, MAX_REPLAY_RUNS),
        help="How often a replay asks each prompt.  [default: 3]",
    )
    @click.option("--replay-model", metavar="NAME", help="Not the model that was recorded.")
    @functools.wraps(command)
    def with_replay(
        *arguments: Any, wanted: bool, runs: int | None, replay_model: str | None, **options: Any
    ) -> None:
        if not wanted and (runs or replay_model):
            raise WrongUseError("--runs and --replay-model belong to --replay")
        replay = Replaying(runs or 0, replay_model or "") if wanted else None
        command(*arguments, replay=replay, **options)

    return with_replay


def warn_if_nobody_was_asked(verdicts: Sequence[Json]) -> None:
    """Say on standard error that no endpoint is set, where that is why nothing was asked."""
    missing = [(verdict["replay"] or {}).get("missing") for verdict in verdicts]
    if NO_ENDPOINT in missing:
        click.echo(
            "Warning: no model was asked again: set MEMTRACE_REPLAY_URL to an OpenAI-compatible "
            "endpoint, such as http://localhost:8000/v1",
            err=True,
        )


def replay_text(replay: Json | None) -> str:
    """``confirmed 3/3``: the result, and in how many runs the repaired prompt did well."""
    if replay is None:
        return "-"
    arm = replay["repaired"]
    return f"{replay['result']} {arm['right']}/{replay['runs']}" if arm else str(replay["result"])
