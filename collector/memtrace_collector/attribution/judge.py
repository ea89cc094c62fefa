"""How a case comes to its verdict: the one place where a method is chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from memtrace_collector.attribution.verdict import Verdict
from memtrace_collector.graph.case import Case

Judge: TypeAlias = Callable[[Case], Verdict]
"""Looks at one loaded case. What it raises counts as a failed attempt; it may be called again
for the same case, and from several threads at once."""
