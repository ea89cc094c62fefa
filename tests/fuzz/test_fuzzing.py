"""A short run of each fuzz target; a long one is ``python -m tests.fuzz TARGET``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).parents[2]
SECONDS = 1


@pytest.mark.otlp_rule("C20")
@pytest.mark.fault("F31")
@pytest.mark.parametrize("target", TARGETS)
def test_no_input_gets_more_than_a_clean_refusal(target: str, tmp_path: Path) -> None:
    pytest.importorskip("atheris")
    command = [sys.executable, "-m", "tests.fuzz", target]
    bounds = [f"-max_total_time={SECONDS}", "-timeout=5", "-max_len=4096", "-rss_limit_mb=1024"]
    done = subprocess.run(
        [*command, *bounds, "-seed=7", "-verbosity=0", f"-artifact_prefix={tmp_path}/"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]


@pytest.mark.parametrize("target", TARGETS.values())
def test_the_targets_take_nothing_and_nonsense(target) -> None:
    for data in (b"", b"\0", b"\xff" * 100, b"\0{}", b"\0[[[["):
        target(data)
