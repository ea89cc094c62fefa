"""What a run of the demo is told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from memtrace_collector.errors import WrongUseError
from memtrace_collector.settings.checks import check_endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """``store`` is new or empty. ``model``: the name of a real one; empty: the stand-in.

    ``endpoint`` (OTLP over HTTP) and ``api`` name a running installation, both or neither.
    """

    store: Path
    forward: str = ""
    model: str = ""
    endpoint: str = ""
    api: str = ""

    @property
    def is_elsewhere(self) -> bool:
        """A running installation takes the spans."""
        return bool(self.endpoint)

    @property
    def folder(self) -> Path:
        """What is not the collector's: the agent's memory, its replies and all logs."""
        return self.store / "demo"

    @property
    def collector_log(self) -> Path:
        """Of the `up` that the demo starts."""
        return self.folder / "up.log"

    def validate(self) -> None:
        """Raise WrongUseError for what does not go together."""
        if bool(self.endpoint) != bool(self.api):
            raise WrongUseError("--endpoint and --api name one running installation: give both")
        if self.is_elsewhere:
            check_endpoint("--endpoint", self.endpoint)
            check_endpoint("--api", self.api)
        if self.is_elsewhere and self.forward:
            raise WrongUseError("--forward: a running installation forwards as it is set up itself")
        if self.store.exists() and any(self.store.iterdir()):
            raise WrongUseError(f"{self.store} is not empty; the demo needs a store of its own")
