"""From the name of a method to what judges by it."""

from __future__ import annotations

import contextlib
import importlib
import threading
from pathlib import Path
from typing import Protocol

from memtrace_collector.attribution.attribute import attribute
from memtrace_collector.attribution.judge import Judge
from memtrace_collector.config import Config
from memtrace_collector.settings.attribution import check_method, check_model
from memtrace_collector.telemetry.metrics import Metrics

CACHE_FILE = "model-cache.db"
_WITH_MODEL = "memtrace_collector.runtime.model_judges"
"""Apart, because the client of a model takes a second to import and 20 MB to keep."""


class _Named(Protocol):
    def named(self, method: str) -> Judge: ...
    def close(self) -> None: ...


class Judges:
    """What judges a case, by the name of its method. What a method needs is opened at its first
    use, once, until :meth:`close`.

    Args:
        config: the settings of the methods.
        folder: where answers of a model are kept.
        metrics: told what asking takes.
    """

    def __init__(self, config: Config, folder: Path, metrics: Metrics) -> None:
        self._config, self._folder, self._metrics = config, folder, metrics
        self._opened = contextlib.ExitStack()
        self._lock = threading.Lock()
        self._with_model: _Named | None = None

    def close(self) -> None:
        """End what was opened; nobody judges any more."""
        self._opened.close()

    def named(self, method: str = "") -> Judge:
        """What judges by ``method``; empty: as configured.

        Raises:
            ConfigError: there is no such method, or it needs a model and none is named.
        """
        method = method or self._config.attribution.method
        check_method(method)
        check_model(method, self._config.model)
        if method == "rules" and not self._config.model.embeddings:
            return attribute
        return self._asking().named(method)

    def _asking(self) -> _Named:
        with self._lock:
            if self._with_model is None:
                module = importlib.import_module(_WITH_MODEL)
                opened: _Named = module.ModelJudges(self._config, self._folder, self._metrics)
                self._opened.callback(opened.close)
                self._with_model = opened
            return self._with_model
