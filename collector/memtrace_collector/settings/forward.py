"""Settings of where everything goes on to."""

from __future__ import annotations

from dataclasses import dataclass

from memtrace_collector.settings.checks import check, check_url

PROFILES = ("jaeger", "tempo", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardConfig:
    """Where spans and verdicts go on to: an OTLP endpoint (a Collector, Jaeger, Tempo)."""

    url: str = ""
    values: bool = False
    """Send ``memtrace.values`` (captured content) on as well."""
    profile: str = "jaeger"
    """How late verdict spans are written: jaeger, tempo or none (case traces only)."""

    def validate(self) -> None:
        check("forward.profile", self.profile in PROFILES, " or ".join(PROFILES))
        if self.url:
            check_url("forward.url", self.url)
