"""Options of `attribute` for replays, and how their results are shown."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import click

from memtrace_collector.api.questions import Replaying
from memtrace_collector.attribution.replay.outcome import UNREACHABLE
from memtrace_collector.config import MAX_REPLAY_RUNS
from memtrace_collector.errors import UnreachableError, WrongUseError

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


def check_replayed(verdicts: Sequence[Json]) -> None:
    """Raise UnreachableError when the endpoint did not answer for some of them."""
    replays = [verdict["replay"] or {} for verdict in verdicts]
    silent = [replay for replay in replays if replay.get("result") == UNREACHABLE]
    if silent:
        raise UnreachableError(
            f"{len(silent)} of {len(verdicts)} verdicts could not be replayed: "
            f"{silent[0]['reason']}"
        )


def replay_text(replay: Json | None) -> str:
    """``confirmed 3/3``: the result, and in how many runs the repaired prompt did well."""
    if replay is None:
        return "-"
    arm = replay["repaired"]
    return f"{replay['result']} {arm['right']}/{replay['runs']}" if arm else str(replay["result"])
