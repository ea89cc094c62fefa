"""The settings of the server side: argument, then environment, then file, then default.

A setting has one name, its path in the file (``server.http_port``). Everything is checked when
it is loaded; an error says what is wrong, where it was set and what would be right. A section is
a module of ``settings``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from memtrace_collector.errors import ConfigError, NotInThisVersionError, WrongUseError
from memtrace_collector.settings.attribution import AttributionConfig, check_model
from memtrace_collector.settings.auth import AuthConfig, check_exposure
from memtrace_collector.settings.checks import is_loopback
from memtrace_collector.settings.explorer import ExplorerConfig
from memtrace_collector.settings.forward import ForwardConfig
from memtrace_collector.settings.model import ModelConfig
from memtrace_collector.settings.reading import SETTINGS, Setting
from memtrace_collector.settings.retention import RetentionConfig
from memtrace_collector.settings.server import ServerConfig
from memtrace_collector.settings.telemetry import TelemetryConfig
from memtrace_collector.settings.tls import TlsConfig

DEFAULT_STORE = "./memtrace-data"
DATABASES = ("postgresql://", "postgres://")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings of ``memtrace-otel up``."""

    store: str = DEFAULT_STORE
    server: ServerConfig = field(default_factory=ServerConfig)
    auth: AuthConfig = field(default_factory=AuthConfig)
    tls: TlsConfig = field(default_factory=TlsConfig)
    forward: ForwardConfig = field(default_factory=ForwardConfig)
    attribution: AttributionConfig = field(default_factory=AttributionConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    retention: RetentionConfig = field(default_factory=RetentionConfig)
    telemetry: TelemetryConfig = field(default_factory=TelemetryConfig)
    explorer: ExplorerConfig = field(default_factory=ExplorerConfig)

    def validate(self) -> None:
        """Raise ConfigError (or NotInThisVersionError) for the first setting that cannot be."""
        if not is_database(self.store):
            store_folder(self.store)
        self.server.validate()
        self.tls.validate()
        check_exposure(self.server, self.auth, self.tls)
        self.forward.validate()
        self.attribution.validate()
        self.model.validate()
        self.retention.validate()
        self.telemetry.validate()
        self.explorer.validate()
        check_model(self.attribution.method, self.model)
        self._check_next_hop("forward.url", self.forward.url, "spans")
        self._check_next_hop("telemetry.otlp_url", self.telemetry.otlp_url, "metrics")

    def _check_next_hop(self, path: str, url: str, what: str) -> None:
        if url and self._is_own_door(url):
            raise ConfigError(
                f"{path}: {url} is where this service itself listens, so {what} would go in "
                "circles; name the next hop, or listen elsewhere with --http-port and --grpc-port"
            )

    def _is_own_door(self, url: str) -> bool:
        parts = urlsplit(url)
        host = parts.hostname or ""
        ours = host == self.server.host or (is_loopback(host) and self._listens_on_loopback())
        return ours and parts.port in (self.server.grpc_port, self.server.http_port)

    def _listens_on_loopback(self) -> bool:
        return is_loopback(self.server.host) or self.server.host in ("0.0.0.0", "::")  # noqa: S104  # compared, not bound


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
        auth=AuthConfig(**section("auth")),
        tls=TlsConfig(**section("tls")),
        forward=ForwardConfig(**section("forward")),
        attribution=AttributionConfig(**section("attribution")),
        model=ModelConfig(**section("model")),
        retention=RetentionConfig(**section("retention")),
        telemetry=TelemetryConfig(**section("telemetry")),
        explorer=ExplorerConfig(**section("explorer")),
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


def is_database(store: str) -> bool:
    """Whether a ``--store`` names a database rather than a folder."""
    return store.startswith(DATABASES)


def store_folder(store: str) -> Path:
    """The folder a ``--store`` names."""
    if is_database(store):
        raise WrongUseError(
            "this needs a folder; a postgresql:// store is fed by `memtrace-otel process`, judged "
            "by `work` and shown by `serve`"
        )
    if "://" in store:
        raise NotInThisVersionError(
            f"{store.partition('://')[0]}:// stores are not in this version; give --store a folder "
            "(SQLite) or postgresql://"
        )
    if not store:
        raise ConfigError("store: the name of the folder is empty")
    return Path(store)
