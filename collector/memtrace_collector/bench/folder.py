"""The output folder of a run: what stands where, written so that an interruption loses nothing.

::

    run.json               settings, and the source of each dialogue
    plan.json              every planned case
    outcomes/UNIT.jsonl    one line per case that ran, appended by the pipeline
    traces/UNIT/           the data folder into which the pipeline's spans went
    cases.jsonl            one line per case and variant: truth, verdict, right or not
    report.md, report.json

A unit is one run of one system's pipeline, ``SYSTEM-N``: a run that was interrupted goes on in
another unit, so that what a cut-off case left behind is never judged with its second try.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec

from memtrace_collector.bench.planned import Outcome, PlannedCase
from memtrace_collector.bench.score import Row
from memtrace_collector.errors import DamagedError, NotFoundError

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """What a run was asked for. ``sources``: dialogue -> realmem or locomo."""

    seed: int
    per_kind: int
    split: str
    systems: tuple[str, ...]
    kinds: tuple[str, ...]
    sources: Mapping[str, str] = field(default_factory=dict)
    skipped_systems: Mapping[str, str] = field(default_factory=dict)
    """System -> why it was left out."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One run of one system's pipeline."""

    name: str
    root: Path

    @property
    def system(self) -> str:
        return self.name.rpartition("-")[0]

    @property
    def outcomes_path(self) -> Path:
        return self.root / "outcomes" / f"{self.name}.jsonl"

    @property
    def traces(self) -> Path:
        """A data folder, as `up` keeps one."""
        return self.root / "traces" / self.name

    def outcomes(self) -> list[Outcome]:
        """What ran to its end; a line that was cut off is none."""
        return list(_lines(self.outcomes_path, Outcome))


class RunFolder:
    """Reads and writes one output folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def plan_path(self) -> Path:
        return self.root / "plan.json"

    def exists(self) -> bool:
        return self.plan_path.exists()

    def save_plan(self, info: RunInfo, cases: Iterable[PlannedCase]) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        self.save_info(info)
        write_whole(self.plan_path, msgspec.json.encode(list(cases)))

    def save_info(self, info: RunInfo) -> None:
        write_whole(self.root / "run.json", msgspec.json.encode(info))

    def info(self) -> RunInfo:
        return _document(self.root / "run.json", RunInfo)

    def plan(self) -> list[PlannedCase]:
        return _document(self.plan_path, list[PlannedCase])

    def units(self, systems: Iterable[str] = ()) -> list[Unit]:
        """Those that have outcomes, by name; all systems when none is named."""
        wanted = set(systems)
        names = sorted(path.stem for path in (self.root / "outcomes").glob("*.jsonl"))
        units = [Unit(name, self.root) for name in names]
        return [unit for unit in units if not wanted or unit.system in wanted]

    def next_unit(self, system: str) -> Unit:
        """A unit that nothing was written to yet."""
        number = 1
        while (unit := Unit(f"{system}-{number}", self.root)).traces.exists() or (
            unit.outcomes_path.exists()
        ):
            number += 1
        return unit

    def finished(self, system: str) -> set[str]:
        """Cases of a system that ran to their end."""
        return {o.case.id for unit in self.units([system]) for o in unit.outcomes()}

    def save_rows(self, rows: Iterable[Row]) -> None:
        lines = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
        write_whole(self.root / "cases.jsonl", lines)

    def rows(self) -> list[Row]:
        """The cases as last scored.

        Raises:
            NotFoundError: nothing was scored yet.
        """
        path = self.root / "cases.jsonl"
        if not path.exists():
            raise NotFoundError(f"{self.root} holds no scored cases; run the benchmark first")
        return list(_lines(path, Row))


def write_whole(path: Path, body: bytes) -> None:
    """Replace a file, so that a reader sees the old or the new one and nothing between."""
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(body)
    os.replace(part, path)


def _document(path: Path, kind: type[T]) -> T:
    if not path.exists():
        raise NotFoundError(f"{path.parent} is no folder of a benchmark run: it has no {path.name}")
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except msgspec.DecodeError as error:
        raise DamagedError(f"{path}: {error}") from None


def _lines(path: Path, kind: type[T]) -> Iterator[T]:
    if not path.exists():
        return
    decode = msgspec.json.Decoder(kind).decode
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            try:
                yield decode(line)
            except msgspec.DecodeError as error:
                raise DamagedError(f"{path}, line {number}: {error}") from None
