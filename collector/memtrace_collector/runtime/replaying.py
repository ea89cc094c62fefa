"""Whether verdicts are replayed, and how: as configured, or as a request asks."""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections.abc import Callable, Iterator
from typing import Protocol, TypeAlias

from memtrace_collector.attribution.judge import Judge
from memtrace_collector.config import Config
from memtrace_collector.runtime.data import Data

_REPLAYERS = "memtrace_collector.runtime.replayers"
"""Apart, because the client of a model takes a second to import and 20 MB to keep."""

Wrap: TypeAlias = Callable[[Judge], Judge]


class _Replayers(Protocol):
    def usual(self, judge: Judge) -> Judge: ...
    def asked(self, runs: int, model: str) -> contextlib.AbstractContextManager[Wrap]: ...
    def close(self) -> None: ...


class Replays:
    """Replays verdicts as configured, or as a request asks, until :meth:`close`.

    Args:
        data: where the answers' own spans are.
        config: endpoint, budget and defaults.
    """

    def __init__(self, data: Data, config: Config) -> None:
        self._data, self._config = data, config
        self._opened = contextlib.ExitStack()
        self._lock = threading.Lock()
        self._made: _Replayers | None = None

    def close(self) -> None:
        """Nobody replays any more."""
        self._opened.close()

    def usual(self, judge: Judge) -> Judge:
        """``judge``, with a replay of what it finds where that is configured."""
        return self._replayers().usual(judge) if self._config.attribution.replay else judge

    @contextlib.contextmanager
    def asked(self, runs: int, model: str) -> Iterator[Wrap]:
        """For one request, with a budget of its own: what makes a judge replay what it finds.
        0 runs and no model: as configured.

        Raises on leaving:
            UnreachableError: the endpoint did not answer; what was found stands unreplayed.
        """
        with self._replayers().asked(runs, model) as replayed:
            yield replayed

    def _replayers(self) -> _Replayers:
        with self._lock:
            if self._made is None:
                made: _Replayers = importlib.import_module(_REPLAYERS).Replayers(
                    self._data, self._config
                )
                self._opened.callback(made.close)
                self._made = made
            return self._made
