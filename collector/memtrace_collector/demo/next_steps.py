"""What a run of the demo came to, and where its user can look at it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from memtrace_collector.demo.outcome import Outcome
from memtrace_collector.demo.settings import Settings


def summary(settings: Settings, outcomes: Sequence[Outcome]) -> str:
    """How many verdicts are as planted."""
    if settings.model:
        return f"{len(outcomes)} answers by {settings.model}; nothing was planted."
    planted = [outcome for outcome in outcomes if outcome.planted]
    right = [outcome for outcome in outcomes if not outcome.planted]
    return (
        f"{sum(o.is_as_planted() for o in planted)} of {len(planted)} planted faults named with "
        f"their stage and operation; {sum(o.is_as_planted() for o in right)} of {len(right)} right "
        "answers cleared of a memory fault."
        + ("" if all(o.is_as_planted() for o in outcomes) else "  ! marks the others.")
    )


def next_steps(settings: Settings, outcomes: Sequence[Outcome]) -> list[str]:
    """Lines: commands and addresses that show the first wrong answer."""
    wrong = next((o for o in outcomes if o.planted), outcomes[0])
    return ["Where to look next:", *_places(settings, wrong)]


def _places(settings: Settings, wrong: Outcome) -> list[str]:
    trace_id = wrong.answer.trace_id
    answer = f"{trace_id}:{wrong.answer.span_id}"
    if settings.is_elsewhere:
        return [
            f"  {settings.api}/#/failures",
            f"  {settings.api}/#/answer/{answer}",
            f"  trace {trace_id} where that installation forwards to",
        ]
    where, program = f"--store {settings.store}", _program()
    lines = [
        f"  {program} verdicts {where}",
        f"  {program} why {answer} {where}",
        f"  {program} graph {wrong.answer.graph_id} --answer {answer} {where}",
        f"  {program} up {where}    and then its page at http://127.0.0.1:4319",
    ]
    if settings.forward:
        lines.append(f"  trace {trace_id} behind {settings.forward}")
    return lines


def _program() -> str:
    """The console script, as the user can type it from here."""
    if shutil.which("memtrace-otel"):
        return "memtrace-otel"
    script = Path(sys.executable).with_name("memtrace-otel")
    here = Path.cwd()
    return str(script.relative_to(here) if script.is_relative_to(here) else script)
