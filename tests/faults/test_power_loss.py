"""Power cuts, simulated: what was acknowledged is there, once, and the graphs are the same."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.faults.power_run import run
from tests.faults.volatile_disk import PowerCut, VolatileDisk

CUTS = 12


@pytest.mark.fault("F5")
@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_acknowledged_is_lost_whenever_the_power_goes(tmp_path: Path, seed: int) -> None:
    outcome = run(tmp_path, CUTS, seed)
    assert outcome.acknowledged > 10 * CUTS
    assert (outcome.lost, outcome.duplicates, outcome.differing_graphs) == (0, 0, 0)


@pytest.mark.fault("F5")
def test_a_disk_that_only_pretends_to_sync_is_found_out(tmp_path: Path) -> None:
    """The simulation sees a loss where there is one."""
    assert run(tmp_path, CUTS, 3, disk_loses=8).lost > 0


def test_only_what_was_synced_is_certain_to_be_left(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    with VolatileDisk(folder) as disk:
        synced = os.open(folder / "synced", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.writev(synced, [b"a" * 600])
        os.fsync(synced)
        os.writev(synced, [b"b" * 2_000])
        unnamed = os.open(folder / "unnamed", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        directory = os.open(folder, os.O_RDONLY)
        os.fsync(directory)
        os.open(folder / "never", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.replace(folder / "unnamed", folder / "renamed")
        contents, names = set(), set()
        for seed in range(60):
            image = tmp_path / f"after-{seed}"
            disk.after(random.Random(seed), image)
            contents.add((image / "synced").read_bytes())
            names.add(frozenset(path.name for path in image.iterdir()))
        for fd in (synced, unnamed, directory):
            os.close(fd)
    assert all(content.startswith(b"a" * 600) for content in contents)
    assert {b"a" * 600, b"a" * 600 + b"b" * 2_000} <= contents, "none, or all of the rest"
    assert any(b"b" in content and b"\0" in content for content in contents), "torn"
    both = ({"unnamed"}, {"renamed"}, {"unnamed", "never"}, {"renamed", "never"})
    assert {name - {"synced"} for name in names} == {frozenset(kept) for kept in both}


def test_after_the_cut_nothing_changes_any_more(tmp_path: Path) -> None:
    with VolatileDisk(tmp_path, cut_after=1):
        fd = os.open(tmp_path / "file", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for _ in range(2):
            with pytest.raises(PowerCut):
                os.writev(fd, [b"x"])
        os.close(fd)
    assert (tmp_path / "file").read_bytes() == b""
