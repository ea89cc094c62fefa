"""Optional components of the test suite: real servers and second environments.

On a user's machine a test whose component is missing skips with the command that enables it;
with ``MEMTRACE_REQUIRE_COMPONENTS=1`` (as ``.ci/run`` sets it) it fails instead.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "memtrace-otel"
JAEGER_VERSION = "v1.76.0"
OTELCOL_VERSION = "0.160.0"
OTELCOL_BINARY = f"otelcol-{OTELCOL_VERSION}-2"
"""With the list of components that integration/otelcol-builder.yaml has, the second one."""
NODE_SDK = "node-sdk-2.12.0"
_DEBIAN_POSTGRESQL = Path("/usr/lib/postgresql")

HINTS = {
    "jaeger": "make jaeger",
    "otelcol": "make otelcol",
    "node-sdk": "make node-sdk",
    "prometheus": "apt-get install prometheus",
    "mem0-2": "make venv-mem0-2",
    "postgresql": "apt-get install postgresql",
    "chromium": "apt-get install chromium",
}


def missing(name: str) -> NoReturn:
    """Skip (or, where components are required, fail) for want of ``name``."""
    reason = f"{name} is not installed; to enable this test: {HINTS[name]}"
    if os.environ.get("MEMTRACE_REQUIRE_COMPONENTS") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def jaeger() -> Path:
    """Path of the Jaeger v2 binary."""
    path = CACHE / "bin" / f"jaeger-{JAEGER_VERSION}"
    return path if path.exists() else missing("jaeger")


def otelcol() -> Path:
    """Path of an OpenTelemetry Collector with the components of ``collector/otelcol.yaml``."""
    path = CACHE / "bin" / OTELCOL_BINARY
    return path if path.exists() else missing("otelcol")


def node_sdk() -> Path:
    """Folder whose ``node_modules`` hold the OpenTelemetry SDK for Node, for ``node``."""
    path = CACHE / NODE_SDK
    return path if path.exists() and shutil.which("node") else missing("node-sdk")


def prometheus() -> Path:
    """Path of the Prometheus server."""
    path = shutil.which("prometheus")
    return Path(path) if path else missing("prometheus")


def postgresql() -> Path:
    """Folder of the programs of a PostgreSQL server, of the newest where there are several."""
    on_path = shutil.which("postgres")
    if on_path:
        return Path(on_path).resolve().parent
    # Debian keeps the versions apart and puts none of them on the path
    found = [path for path in _DEBIAN_POSTGRESQL.glob("*/bin") if (path / "initdb").exists()]
    if not found:
        missing("postgresql")
    return max(found, key=lambda path: int(path.parent.name))


def chromium() -> Path:
    """Path of the Chromium browser."""
    path = shutil.which("chromium")
    return Path(path) if path else missing("chromium")


def mem0_2_python() -> Path:
    """Python of the environment that holds mem0ai 2.x."""
    path = Path(__file__).parent.parent / ".venv-mem0-2" / "bin" / "python"
    return path if path.exists() else missing("mem0-2")
