"""mem0ai 2.x lives in an environment of its own: its tests run there, by subprocess."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests import components

ROOT = Path(__file__).parents[2]
SHARED = (
    "tests/instrumentors/test_mem0_operations.py",
    "tests/instrumentors/test_mem0_instrumentor.py",
    "tests/instrumentors/test_mem0_identity.py",
)
OWN = "tests/instrumentors/mem0_v2"


def test_mem0_2_passes_the_shared_and_its_own_tests() -> None:
    python = components.mem0_2_python()
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *SHARED, OWN],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8_000:] + done.stderr[-2_000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
