"""The settings of the server side: argument, then environment, then file, then default.

A setting has one name, its path in the file (``server.http_port``). Everything is checked when
it is loaded; an error says what is wrong, where it was set and what would be right.
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from memtrace_collector.errors import ConfigError, NotInThisVersionError
from memtrace_collector.model_config import ModelConfig

DEFAULT_STORE = "./memtrace-data"
PROFILES = ("jaeger", "tempo", "none")
METHODS = ("rules", "auto", "model", "agent")
MAX_REPLAY_RUNS = 20
METHODS_WITH_MODEL = ("auto", "model", "agent")
FLAGGING_INVARIANTS = ("stale", "zombie", "foreign", "flapping", "empty_retrieval")
"""Those whose findings can reach an answer; a write that never happened reaches none."""
MARKERS = ("memtrace.", "gen_ai.memory.", "gen_ai.evaluation.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Where to listen. Port 0 takes a free one; ``host`` is a name or an address."""

    host: str = "127.0.0.1"
    grpc_port: int = 4317
    http_port: int = 4318
    api_port: int = 4319
    allow_remote: bool = False
    """Listen on an address that other hosts reach; nothing here asks who is calling."""
    max_request_bytes: int = 64 * 1024 * 1024
    markers: tuple[str, ...] = MARKERS
    """A span is read when its bytes contain one of these; any other is only passed on."""

    def validate(self) -> None:
        for name in ("grpc_port", "http_port", "api_port"):
            _check(f"server.{name}", 0 <= getattr(self, name) <= 65_535, "0 to 65535")
        taken = [port for port in (self.grpc_port, self.http_port, self.api_port) if port]
        _check("server.*_port", len(set(taken)) == len(taken), "three different ports")
        _check("server.max_request_bytes", self.max_request_bytes >= 1024, "at least 1024")
        _check("server.markers", bool(self.markers) and all(self.markers), "at least one text")
        if not self.allow_remote and not is_loopback(self.host):
            raise ConfigError(
                f"server.host: {self.host} can be reached from other hosts, and nothing here "
                "asks who is calling; keep 127.0.0.1, or say --allow-remote when the network "
                "itself is closed"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardConfig:
    """Where spans and verdicts go on to: an OTLP endpoint (a Collector, Jaeger, Tempo)."""

    url: str = ""
    values: bool = False
    """Send ``memtrace.values`` (captured content) on as well."""
    profile: str = "jaeger"
    """How late verdict spans are written: jaeger, tempo or none (case traces only)."""

    def validate(self) -> None:
        _check("forward.profile", self.profile in PROFILES, " or ".join(PROFILES))
        if self.url:
            _check_url("forward.url", self.url)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributionConfig:
    """How flagged answers are looked into."""

    method: str = "rules"
    interval_seconds: float = 1.0
    """Pause between two looks for flagged answers without a verdict."""
    settle_seconds: float = 300.0
    """How long an answer is waited for whose lineage has gaps or unknown producers."""
    cases_per_minute: int = 6_000
    concurrency: int = 1
    """Cases looked at at the same time."""
    max_attempts: int = 3
    """A case that failed so often is set aside."""
    flag_invariants: tuple[str, ...] = ()
    """Broken invariants that flag the answers they reached: of :data:`FLAGGING_INVARIANTS`."""
    thresholds: Mapping[str, float] = field(default_factory=dict)
    """Evaluation name -> least passing score; a lower ``gen_ai.evaluation.result`` flags."""
    replay: bool = False
    """Test every verdict by a replay, also in the background."""
    replay_runs: int = 3
    """How often each prompt of a replay is asked."""
    replay_model: str = ""
    """Model of replays; empty: the one that the answer's span names."""
    replay_url: str = ""
    """OpenAI-compatible endpoint of replays; empty: ``OPENAI_BASE_URL``, else no model is asked."""
    replay_calls: int = 600
    """Calls that replays may make, per command or per day of a service."""

    def validate(self) -> None:
        check_method(self.method)
        check_replay_runs(self.replay_runs)
        _check("attribution.replay_calls", self.replay_calls >= 1, "at least 1")
        if self.replay_url:
            _check_endpoint("attribution.replay_url", self.replay_url)
        _check("attribution.interval_seconds", 0 < self.interval_seconds <= 3600, "0 to 3600")
        _check("attribution.settle_seconds", 0 <= self.settle_seconds <= 86_400, "0 to 86400")
        _check("attribution.cases_per_minute", self.cases_per_minute >= 1, "at least 1")
        _check("attribution.concurrency", 1 <= self.concurrency <= 64, "1 to 64")
        _check("attribution.max_attempts", 1 <= self.max_attempts <= 100, "1 to 100")
        unknown = set(self.flag_invariants) - set(FLAGGING_INVARIANTS)
        _check("attribution.flag_invariants", not unknown, f"of {', '.join(FLAGGING_INVARIANTS)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings of ``memtrace-otel up``."""

    store: str = DEFAULT_STORE
    server: ServerConfig = field(default_factory=ServerConfig)
    forward: ForwardConfig = field(default_factory=ForwardConfig)
    attribution: AttributionConfig = field(default_factory=AttributionConfig)
    model: ModelConfig = field(default_factory=ModelConfig)

    def validate(self) -> None:
        """Raise ConfigError (or NotInThisVersionError) for the first setting that cannot be."""
        store_folder(self.store)
        self.server.validate()
        self.forward.validate()
        self.attribution.validate()
        self.model.validate()
        check_model(self.attribution.method, self.model)
        if self.forward.url and self._is_own_door(self.forward.url):
            raise ConfigError(
                f"forward.url: {self.forward.url} is where this service itself listens, so spans "
                "would go in circles; name the next hop, or listen elsewhere with --http-port and "
                "--grpc-port"
            )

    def _is_own_door(self, url: str) -> bool:
        parts = urlsplit(url)
        host = parts.hostname or ""
        ours = host == self.server.host or (is_loopback(host) and self._listens_on_loopback())
        return ours and parts.port in (self.server.grpc_port, self.server.http_port)

    def _listens_on_loopback(self) -> bool:
        return is_loopback(self.server.host) or self.server.host in ("0.0.0.0", "::")  # noqa: S104  # compared, not bound


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
    Setting("server.markers", "MEMTRACE_MARKERS", _texts),
    Setting("forward.url", "MEMTRACE_FORWARD_URL", _text),
    Setting("forward.values", "MEMTRACE_FORWARD_VALUES", _switch),
    Setting("forward.profile", "MEMTRACE_FORWARD_PROFILE", _text),
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
)


def load(
    arguments: Mapping[str, Any], environment: Mapping[str, str], file: Path | None = None
) -> Config:
    """The settings in force. ``arguments``: path of a setting -> value, ``None`` when not given.

    Raises:
        ConfigError: naming the setting, where it was set and what it may be.
    """
    in_file = _read_file(file) if file else {}
    chosen: dict[str, Any] = {}
    for setting in SETTINGS:
        for value, origin in (
            (arguments.get(setting.path), "argument"),
            (environment.get(setting.variable) or None, f"environment {setting.variable}"),
            (in_file.get(setting.path), f"file {file}"),
        ):
            if value is not None:
                chosen[setting.path] = _read(setting, value, origin)
                break
    config = _build(chosen)
    config.validate()
    return config


def _read(setting: Setting, value: Any, origin: str) -> Any:
    try:
        return setting.read(value)
    except ValueError as error:
        raise ConfigError(f"{setting.path} ({origin}): {value!r} is not {error}") from None


def _build(chosen: Mapping[str, Any]) -> Config:
    def section(name: str) -> dict[str, Any]:
        prefix = f"{name}."
        return {path[len(prefix) :]: v for path, v in chosen.items() if path.startswith(prefix)}

    return Config(
        store=chosen.get("store", DEFAULT_STORE),
        server=ServerConfig(**section("server")),
        forward=ForwardConfig(**section("forward")),
        attribution=AttributionConfig(**section("attribution")),
        model=ModelConfig(**section("model")),
    )


def _read_file(file: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"cannot read the configuration file {file}: {error}") from None
    if document is not None and not isinstance(document, dict):
        raise ConfigError(f"{file}: expected a mapping of settings at the top")
    values = dict(_flatten(document or {}))
    known = {setting.path for setting in SETTINGS}
    unknown = sorted(set(values) - known)
    if unknown:
        raise ConfigError(
            f"{file}: unknown setting {unknown[0]}; known are {', '.join(sorted(known))}"
        )
    return values


def _flatten(section: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in section.items():
        path = f"{prefix}{key}"
        if isinstance(value, dict) and path != "attribution.thresholds":
            yield from _flatten(value, f"{path}.")
        else:
            yield path, value


def check_method(method: str) -> None:
    """Refuse a method of attribution that does not exist."""
    _check("attribution.method", method in METHODS, " or ".join(METHODS))


def check_model(method: str, model: ModelConfig) -> None:
    """Refuse a method that asks a model where none is named."""
    if method in METHODS_WITH_MODEL and not model.name:
        raise ConfigError(
            f"the method {method} asks a model: name one with --model (MEMTRACE_MODEL, "
            "model.name), and where it is with --base-url; or use --method rules"
        )


def check_replay_runs(runs: int) -> None:
    """Refuse a number of runs of a replay that is no use or too dear."""
    _check("attribution.replay_runs", 1 <= runs <= MAX_REPLAY_RUNS, f"1 to {MAX_REPLAY_RUNS}")


def store_folder(store: str) -> Path:
    """The folder a ``--store`` names."""
    if "://" in store:
        raise NotInThisVersionError(
            f"{store.partition('://')[0]}:// stores are not in this version; "
            "give --store a folder (SQLite)"
        )
    if not store:
        raise ConfigError("store: the name of the folder is empty")
    return Path(store)


def is_loopback(host: str) -> bool:
    """Only this machine reaches ``host``."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_url(path: str, url: str) -> None:
    parts = urlsplit(url)
    _check(
        path,
        parts.scheme in ("http", "https", "grpc", "grpcs") and bool(parts.hostname),
        "a URL such as http://localhost:4318 or grpc://localhost:4317",
    )


def _check_endpoint(path: str, url: str) -> None:
    parts = urlsplit(url)
    usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    _check(path, usable, "a URL such as http://localhost:8000/v1")


def _check(path: str, holds: bool, expected: str) -> None:
    if not holds:
        raise ConfigError(f"{path}: expected {expected}")
