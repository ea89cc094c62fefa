"""The run: plan, run every system's pipeline, go on where an earlier run stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace

from memtrace_collector.bench.faults import SYSTEMS
from memtrace_collector.bench.folder import RunFolder, RunInfo
from memtrace_collector.bench.planned import PlannedCase
from memtrace_collector.bench.running import OnCase, run_unit, why_missing
from memtrace_collector.errors import UnreachableError, WrongUseError

HINT = "pip install 'memtrace-otel[bench]'"
_HINTS = {"mem0-2": "name an interpreter that has mem0ai 2.x with --mem0-2-python"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """How pipelines are run. ``python_of``: system -> interpreter; no ``systems``: all."""

    python_of: Callable[[str], str]
    at_once: int = 1
    systems: tuple[str, ...] = ()


def start(folder: RunFolder, info: RunInfo, cases: Sequence[PlannedCase]) -> None:
    """Write the plan of a new run.

    Raises:
        WrongUseError: the folder holds another run, or nothing was planned.
    """
    if not cases:
        raise WrongUseError("nothing was planned: no dialogue fits the systems, kinds and split")
    if folder.exists():
        raise WrongUseError(f"{folder.root} holds a run already; name another folder")
    folder.save_plan(info, cases)


def same_run(one: RunInfo, other: RunInfo) -> bool:
    """Whether two runs were asked for in the same words."""
    blank: Mapping[str, str] = {}
    return replace(one, sources=blank, skipped_systems=blank) == replace(
        other, sources=blank, skipped_systems=blank
    )


def go_on(
    folder: RunFolder,
    programs: Programs,
    on_case: OnCase,
) -> list[str]:
    """Run whatever of the plan has not ended yet; one line per pipeline that failed.

    A system that cannot be run here is noted in the folder and left out.

    Raises:
        WrongUseError: no system at all can be run.
    """
    left = _left(folder, programs.systems or SYSTEMS)
    missing = {
        system: f"{why}; {_HINTS.get(system, HINT)}"
        for system in left
        if (why := why_missing(programs.python_of(system), system))
    }
    folder.save_info(replace(folder.info(), skipped_systems=missing))
    runnable = {system: cases for system, cases in left.items() if system not in missing}
    if left and not runnable:
        whys = "\n".join(f"{system}: {why}" for system, why in missing.items())
        raise WrongUseError(f"no pipeline can be run here: {HINT}\n{whys}")
    return _run(folder, runnable, programs, on_case)


def _left(folder: RunFolder, systems: Iterable[str]) -> dict[str, list[PlannedCase]]:
    plan = folder.plan()
    found: dict[str, list[PlannedCase]] = {}
    for system in systems:
        finished = folder.finished(system)
        cases = [case for case in plan if case.system == system and case.id not in finished]
        if cases:
            found[system] = cases
    return found


def _run(
    folder: RunFolder,
    left: Mapping[str, Sequence[PlannedCase]],
    programs: Programs,
    on_case: OnCase,
) -> list[str]:
    stop = threading.Event()
    with ThreadPoolExecutor(max(1, programs.at_once), thread_name_prefix="bench") as pool:
        futures: dict[Future[None], str] = {
            pool.submit(
                run_unit,
                folder.next_unit(system),
                cases,
                programs.python_of(system),
                stop,
                on_case,
            ): system
            for system, cases in left.items()
        }
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
            return list(_failures(futures))
        except BaseException:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _failures(futures: Mapping[Future[None], str]) -> Iterable[str]:
    for future, system in futures.items():
        error = future.exception()
        if isinstance(error, UnreachableError):
            yield f"{system}: {error}"
        elif error is not None:
            raise error
