"""From what was asked for to the plan of a run, or to the plan that is there already."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from memtrace_collector.bench import dialogues, run
from memtrace_collector.bench.dialogue import Dialogue
from memtrace_collector.bench.faults import KINDS, SYSTEMS
from memtrace_collector.bench.folder import RunFolder, RunInfo
from memtrace_collector.bench.planned import PlannedCase
from memtrace_collector.bench.planning import plan
from memtrace_collector.bench.planning.plan import CONTROL
from memtrace_collector.errors import WrongUseError

CONTROLS_PER_KIND = 2
DOUBLES_PER_KIND = 2
SPLITS = (("dev", False), ("held-out", True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a run is asked for. No systems, no kinds: all. ``split``: all, dev or held-out."""

    seed: int
    per_kind: int
    split: str
    systems: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()


def prepare(
    folder: RunFolder, data: Path | None, wanted: Wanted, note: Callable[[str], object]
) -> None:
    """Make sure that the folder holds a plan for what is wanted.

    Args:
        data: where the dialogues are; None: only a run that is there can go on.
        note: told what could not be read of the data.

    Raises:
        WrongUseError: no data, or the folder holds a run that was asked for otherwise.
    """
    info = RunInfo(
        seed=wanted.seed,
        per_kind=wanted.per_kind,
        split=wanted.split,
        systems=wanted.systems or SYSTEMS,
        kinds=wanted.kinds,
    )
    if folder.exists():
        if data is not None and not run.same_run(folder.info(), info):
            raise WrongUseError(
                f"{folder.root} holds a run with other settings; name another --out, or leave "
                "--data out to go on with that one"
            )
        return
    if data is None:
        raise WrongUseError("give --data FOLDER with files of RealMem or LoCoMo")
    found = dialogues.load(data)
    for problem in found.problems:
        note(problem)
    sources = {dialogue.id: dialogue.source for dialogue in found.dialogues}
    run.start(folder, replace(info, sources=sources), _plan(found.dialogues, wanted))


def _plan(found: Sequence[Dialogue], wanted: Wanted) -> list[PlannedCase]:
    """Both splits where both are wanted; controls and double faults in proportion."""
    controls = not wanted.kinds or CONTROL in wanted.kinds
    sizes = plan.Wanted(
        per_kind=wanted.per_kind,
        controls=CONTROLS_PER_KIND * wanted.per_kind if controls else 0,
        two_faults=DOUBLES_PER_KIND * wanted.per_kind if not wanted.kinds else 0,
        systems=wanted.systems or SYSTEMS,
        kinds=tuple(kind for kind in KINDS if not wanted.kinds or kind in wanted.kinds),
        seed=wanted.seed,
    )
    splits = [held_out for name, held_out in SPLITS if wanted.split in ("all", name)]
    return [
        case for held_out in splits for case in plan.plan(found, replace(sizes, held_out=held_out))
    ]
