"""A short run of each fuzz target; a long one is ``python -m tests.fuzz TARGET``."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).parents[2]
SECONDS = 2
BOUNDS = [f"-max_total_time={SECONDS}", "-timeout=5", "-max_len=4096", "-rss_limit_mb=1024"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, subprocess.Popen[str]]]:
    """One process for each target, side by side."""
    pytest.importorskip("atheris")
    artifacts = tmp_path_factory.mktemp("artifacts")
    arguments = [*BOUNDS, "-seed=7", "-verbosity=0", f"-artifact_prefix={artifacts}/"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with contextlib.ExitStack() as stack:
        yield {
            target: stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", "tests.fuzz", target, *arguments],
                    cwd=ROOT,
                    env=environment,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            for target in TARGETS
        }


@pytest.mark.otlp_rule("C20")
@pytest.mark.fault("F31")
@pytest.mark.parametrize("target", TARGETS)
def test_no_input_gets_more_than_a_clean_refusal(
    runs: dict[str, subprocess.Popen[str]], target: str
) -> None:
    errors = runs[target].communicate(timeout=120)[1]
    assert runs[target].returncode == 0, errors[-4_000:]


@pytest.mark.parametrize("target", TARGETS.values())
def test_the_targets_take_nothing_and_nonsense(target: Callable[[bytes], None]) -> None:
    for data in (b"", b"\0", b"\xff" * 100, b"\0{}", b"\0[[[["):
        target(data)
