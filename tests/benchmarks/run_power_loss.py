"""Random power cuts under load: ``python -m tests.benchmarks.run_power_loss [CUTS] [SEED]``.

Prints what was acknowledged and what of it was lost, stored twice, or makes a graph differ from
that of a run without cuts; exit code 1 unless all three are 0.
"""

from __future__ import annotations

import logging
import sys
import tempfile
import time
from pathlib import Path

from tests.faults.power_run import Outcome, run

CUTS = 200


def main(cuts: int = CUTS, seed: int = 0) -> int:
    logging.disable(logging.ERROR)  # torn tails are what this is about
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        outcome = run(Path(folder), cuts, seed)
    for name, value in zip(Outcome._fields, outcome):
        print(f"{name.replace('_', ' '):20}{value:>10,}")
    print(f"{'CPU seconds':20}{time.process_time() - began:>10.1f}")
    return int(any((outcome.lost, outcome.duplicates, outcome.differing_graphs)))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
