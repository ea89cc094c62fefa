"""Settings of our own metrics: where they go beside being scraped."""

from __future__ import annotations

from dataclasses import dataclass

from memtrace_collector.settings.checks import check, check_url

LEAST_SECONDS, MOST_SECONDS = 0.1, 3_600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryConfig:
    """Where metrics are exported by OTLP, never to ourselves by accident: the variables
    ``OTEL_EXPORTER_OTLP_ENDPOINT`` and the like do not set it."""

    otlp_url: str = ""
    """``http(s)://host:port`` or ``grpc(s)://host:port``; empty: metrics are only scraped."""
    interval_seconds: float = 60.0

    def validate(self) -> None:
        if self.otlp_url:
            check_url("telemetry.otlp_url", self.otlp_url)
        check(
            "telemetry.interval_seconds",
            LEAST_SECONDS <= self.interval_seconds <= MOST_SECONDS,
            f"{LEAST_SECONDS} to {MOST_SECONDS:.0f}",
        )


ONLY_SCRAPED = TelemetryConfig()
