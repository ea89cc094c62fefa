"""What was acknowledged survives kills, once; the same as a command: ``tests.faults.kill_run``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults import kill_run

KILLS = 5


@pytest.mark.fault("F1", "F12")
def test_kills_of_receiver_projector_and_worker_lose_double_and_change_nothing(
    tmp_path: Path,
) -> None:
    result = kill_run.run(KILLS, tmp_path)
    assert result.kills.total() == KILLS
    assert set(result.kills) == set(kill_run.KINDS)
    assert result.acknowledged > 4 * KILLS
    assert result.verdicts > KILLS
    assert result.faults() == {}, result.table()
