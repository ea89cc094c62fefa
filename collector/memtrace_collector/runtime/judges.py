"""From the name of a method to what judges by it."""

from __future__ import annotations

from memtrace_collector.attribution.attribute import attribute
from memtrace_collector.attribution.judge import Judge
from memtrace_collector.config import Config, check_method


def judge_for(method: str, config: Config) -> Judge:
    """What judges a case by ``method``.

    Args:
        method: one of :data:`~memtrace_collector.config.METHODS`; empty: as configured.
        config: the settings of the method.

    Raises:
        ConfigError: there is no such method.
        NotInThisVersionError: it is not built yet.
    """
    check_method(method or config.attribution.method)
    return attribute
