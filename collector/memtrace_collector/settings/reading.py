"""Every setting: its name, its environment variable, how its text is read."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its path in the file, its environment variable, how its text is read."""

    path: str
    variable: str
    read: Callable[[Any], Any]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a text")
    return value


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("a whole number")
    return int(_number(value, int, "a whole number"))


def _real(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("a number")
    return float(_number(value, float, "a number"))


def _number(value: Any, kind: Callable[[Any], Any], expected: str) -> Any:
    try:
        number = kind(value)
    except ValueError:
        raise ValueError(expected) from None
    if not math.isfinite(number):
        raise ValueError(expected)
    return number


def _switch(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if str(value).lower() not in words:
        raise ValueError("true or false")
    return words[str(value).lower()]


def _texts(value: Any) -> tuple[str, ...]:
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
        raise ValueError("a list of texts")
    return tuple(item.strip() for item in items)


def _scores(value: Any) -> dict[str, float]:
    if isinstance(value, str):
        pairs = [item.partition("=") for item in value.split(",") if item.strip()]
        value = {name.strip(): score for name, _, score in pairs}
    if not isinstance(value, dict):
        raise ValueError("a mapping of evaluation names to scores")
    return {_text(name): _real(score) for name, score in value.items()}


SETTINGS = (
    Setting("store", "MEMTRACE_STORE", _text),
    Setting("server.host", "MEMTRACE_HOST", _text),
    Setting("server.grpc_port", "MEMTRACE_GRPC_PORT", _whole),
    Setting("server.http_port", "MEMTRACE_HTTP_PORT", _whole),
    Setting("server.api_port", "MEMTRACE_API_PORT", _whole),
    Setting("server.allow_remote", "MEMTRACE_ALLOW_REMOTE", _switch),
    Setting("server.max_request_bytes", "MEMTRACE_MAX_REQUEST_BYTES", _whole),
    Setting("server.max_connections", "MEMTRACE_MAX_CONNECTIONS", _whole),
    Setting("server.names", "MEMTRACE_NAMES", _texts),
    Setting("server.markers", "MEMTRACE_MARKERS", _texts),
    Setting("auth.tokens_file", "MEMTRACE_TOKENS_FILE", _text),
    Setting("tls.certificate", "MEMTRACE_TLS_CERTIFICATE", _text),
    Setting("tls.key", "MEMTRACE_TLS_KEY", _text),
    Setting("tls.client_ca", "MEMTRACE_TLS_CLIENT_CA", _text),
    Setting("forward.url", "MEMTRACE_FORWARD_URL", _text),
    Setting("forward.ca", "MEMTRACE_FORWARD_CA", _text),
    Setting("forward.values", "MEMTRACE_FORWARD_VALUES", _switch),
    Setting("forward.profile", "MEMTRACE_FORWARD_PROFILE", _text),
    Setting("forward.query_url", "MEMTRACE_FORWARD_QUERY_URL", _text),
    Setting("attribution.method", "MEMTRACE_ATTRIBUTION_METHOD", _text),
    Setting("attribution.interval_seconds", "MEMTRACE_ATTRIBUTION_INTERVAL_SECONDS", _real),
    Setting("attribution.settle_seconds", "MEMTRACE_ATTRIBUTION_SETTLE_SECONDS", _real),
    Setting("attribution.cases_per_minute", "MEMTRACE_ATTRIBUTION_CASES_PER_MINUTE", _whole),
    Setting("attribution.concurrency", "MEMTRACE_ATTRIBUTION_CONCURRENCY", _whole),
    Setting("attribution.max_attempts", "MEMTRACE_ATTRIBUTION_MAX_ATTEMPTS", _whole),
    Setting("attribution.flag_invariants", "MEMTRACE_FLAG_INVARIANTS", _texts),
    Setting("attribution.thresholds", "MEMTRACE_EVALUATION_THRESHOLDS", _scores),
    Setting("attribution.replay", "MEMTRACE_REPLAY", _switch),
    Setting("attribution.replay_runs", "MEMTRACE_REPLAY_RUNS", _whole),
    Setting("attribution.replay_model", "MEMTRACE_REPLAY_MODEL", _text),
    Setting("attribution.replay_url", "MEMTRACE_REPLAY_URL", _text),
    Setting("attribution.replay_calls", "MEMTRACE_REPLAY_CALLS", _whole),
    Setting("model.name", "MEMTRACE_MODEL", _text),
    Setting("model.base_url", "MEMTRACE_MODEL_BASE_URL", _text),
    Setting("model.timeout_seconds", "MEMTRACE_MODEL_TIMEOUT_SECONDS", _real),
    Setting("model.retries", "MEMTRACE_MODEL_RETRIES", _whole),
    Setting("model.concurrency", "MEMTRACE_MODEL_CONCURRENCY", _whole),
    Setting("model.cut", "MEMTRACE_MODEL_CUT", _real),
    Setting("model.case_calls", "MEMTRACE_MODEL_CASE_CALLS", _whole),
    Setting("model.case_tokens", "MEMTRACE_MODEL_CASE_TOKENS", _whole),
    Setting("model.case_cost", "MEMTRACE_MODEL_CASE_COST", _real),
    Setting("model.agent_steps", "MEMTRACE_MODEL_AGENT_STEPS", _whole),
    Setting("model.agent_tokens", "MEMTRACE_MODEL_AGENT_TOKENS", _whole),
    Setting("model.agent_seconds", "MEMTRACE_MODEL_AGENT_SECONDS", _real),
    Setting("model.run_calls", "MEMTRACE_MODEL_RUN_CALLS", _whole),
    Setting("model.run_tokens", "MEMTRACE_MODEL_RUN_TOKENS", _whole),
    Setting("model.run_cost", "MEMTRACE_MODEL_RUN_COST", _real),
    Setting("model.prompt_price", "MEMTRACE_MODEL_PROMPT_PRICE", _real),
    Setting("model.completion_price", "MEMTRACE_MODEL_COMPLETION_PRICE", _real),
    Setting("model.embeddings", "MEMTRACE_EMBEDDINGS_MODEL", _text),
    Setting("explorer.trace_url", "MEMTRACE_TRACE_URL", _text),
    Setting("retention.log_days", "MEMTRACE_RETENTION_LOG_DAYS", _real),
    Setting("retention.log_bytes", "MEMTRACE_RETENTION_LOG_BYTES", _whole),
    Setting("retention.values_days", "MEMTRACE_RETENTION_VALUES_DAYS", _real),
    Setting("retention.disk_reserve_bytes", "MEMTRACE_DISK_RESERVE_BYTES", _whole),
    Setting("telemetry.otlp_url", "MEMTRACE_TELEMETRY_OTLP_URL", _text),
    Setting("telemetry.interval_seconds", "MEMTRACE_TELEMETRY_INTERVAL_SECONDS", _real),
)
