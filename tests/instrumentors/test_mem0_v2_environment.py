"""mem0ai 2.x lives in an environment of its own: its tests run there, by subprocess."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests import components

ROOT = Path(__file__).parents[2]
SHARED = (
    "tests/instrumentors/test_mem0_operations.py",
    "tests/instrumentors/test_mem0_instrumentor.py",
    "tests/instrumentors/test_mem0_identity.py",
)
OWN = "tests/instrumentors/mem0_v2"
SECONDS = 900
"""A busy machine is no failure."""
NOT_INHERITED = ("OTEL_", "MEMTRACE_", "MEM0_", "OPENAI_", "PYTEST_")


@pytest.mark.timeout(SECONDS + 60)
def test_mem0_2_passes_the_shared_and_its_own_tests(tmp_path: Path) -> None:
    python = components.mem0_2_python()
    # A folder of its own: sessions that start at once compete for the default one.
    alone = ("-p", "no:cacheprovider", f"--basetemp={tmp_path / 'mem0-2'}")
    done = subprocess.run(
        [python, "-m", "pytest", "-q", *alone, *SHARED, OWN],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env={
            name: value for name, value in os.environ.items() if not name.startswith(NOT_INHERITED)
        },
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5_000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
