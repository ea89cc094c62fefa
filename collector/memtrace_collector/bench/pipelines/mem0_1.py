"""The benchmark's application on mem0 1.x; run as a program, see :mod:`runner`."""

from __future__ import annotations

import sys

from memtrace_collector.bench.faults import MEM0_1
from memtrace_collector.bench.pipelines import runner
from memtrace_collector.bench.pipelines.base import Bench
from memtrace_collector.bench.pipelines.mem0_pipeline import Mem0Pipeline


def make(bench: Bench) -> Mem0Pipeline:
    """The pipeline; mem0ai 1.x must be installed."""
    return Mem0Pipeline(bench, MEM0_1, 1)


if __name__ == "__main__":
    sys.exit(runner.main(make))
