"""Settings of the host package: a frozen value, read from the environment once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memtrace_otel import environment_variables as env
from memtrace_otel.guard import logger

_CAPTURE_ON_SPANS = {"SPAN_ONLY": True, "SPAN_AND_EVENT": True, "EVENT_ONLY": False}
_NO_CONTENT = "NO_CONTENT"
_STATE_FOLDER = "~/.local/state"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What the user asked for. Sizes are in characters."""

    capture_content: bool = False
    digest_key: str = ""
    digest_key_file: str = ""
    state_folder: Path = Path(_STATE_FOLDER)
    baggage: bool = False
    max_value_chars: int = 8_192
    max_span_chars: int = 65_536
    attribute_limit: int | None = None
    service_name: str = ""


def from_environment(environ: Mapping[str, str] | None = None) -> Config:
    """The configuration that ``environ`` (default: the process's) asks for.

    A value that cannot be used is logged and replaced by its default: a typing mistake in a
    telemetry setting must not stop the host.
    """
    environ = os.environ if environ is None else environ
    return Config(
        capture_content=_capture(environ),
        digest_key=environ.get(env.MEMTRACE_DIGEST_KEY, ""),
        digest_key_file=environ.get(env.MEMTRACE_DIGEST_KEY_FILE, ""),
        state_folder=Path(environ.get(env.XDG_STATE_HOME) or _STATE_FOLDER),
        baggage=environ.get(env.MEMTRACE_BAGGAGE, "").strip().lower() == "true",
        max_value_chars=_size(environ, env.MEMTRACE_MAX_VALUE_CHARS, 8_192),
        max_span_chars=_size(environ, env.MEMTRACE_MAX_SPAN_CHARS, 65_536),
        attribute_limit=_attribute_limit(environ),
        service_name=environ.get(env.OTEL_SERVICE_NAME, ""),
    )


def _capture(environ: Mapping[str, str]) -> bool:
    name = env.OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT
    value = environ.get(name, "").strip().upper() or _NO_CONTENT
    if value != _NO_CONTENT and value not in _CAPTURE_ON_SPANS:
        logger.warning("%s: %r is not a known mode; no content is captured", name, value)
    return _CAPTURE_ON_SPANS.get(value, False)


def _size(environ: Mapping[str, str], name: str, default: int) -> int:
    text = environ.get(name, "").strip()
    if not text:
        return default
    if not text.isdecimal():
        logger.warning("%s: %r is not a number of characters; using %d", name, text, default)
        return default
    return int(text)


def _attribute_limit(environ: Mapping[str, str]) -> int | None:
    for name in (env.OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT, env.OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT):
        text = environ.get(name, "").strip()
        if text.isdecimal():
            return int(text)
    return None
