"""How long a folder's log is kept, by its settings."""

from __future__ import annotations

from memtrace_collector.config import Config
from memtrace_collector.log.retention import Limits, LogRetention, Readers
from memtrace_collector.runtime.data_folder import DataFolder
from memtrace_collector.runtime.durable_facts import sync_facts
from memtrace_collector.telemetry.metrics import Metrics

_DAY_SECONDS = 86_400


def log_retention(
    data: DataFolder, config: Config, metrics: Metrics, forward_cursor: str | None
) -> LogRetention:
    """What takes segments away. ``forward_cursor``: where there is a destination, its cursor."""

    def readers() -> Readers:
        """What counts as projected is on disk: a power cut must not ask for the log again."""
        projected = data.facts.cursor()
        sync_facts(data.log_folder.parent)
        forwarded = None if forward_cursor is None else data.cases.cursor(forward_cursor)
        return Readers(projected, forwarded)

    return LogRetention(
        data.log_folder,
        Limits(config.retention.log_days * _DAY_SECONDS, config.retention.log_bytes),
        end=lambda: data.log.end,
        readers=readers,
        metrics=metrics,
    )
