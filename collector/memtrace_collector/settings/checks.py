"""What several sections check of their settings."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from memtrace_collector.errors import ConfigError


def check(path: str, holds: bool, expected: str) -> None:
    if not holds:
        raise ConfigError(f"{path}: expected {expected}")


def check_url(path: str, url: str) -> None:
    parts = urlsplit(url)
    check(
        path,
        parts.scheme in ("http", "https", "grpc", "grpcs") and bool(parts.hostname),
        "a URL such as http://localhost:4318 or grpc://localhost:4317",
    )


def check_endpoint(path: str, url: str, example: str = "http://localhost:8000/v1") -> None:
    parts = urlsplit(url)
    usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    check(path, usable, f"a URL such as {example}")


def is_loopback(host: str) -> bool:
    """Only this machine reaches ``host``."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
