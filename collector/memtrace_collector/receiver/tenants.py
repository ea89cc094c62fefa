"""Who is sending: the one place where credentials turn into a tenant.

A client never names its tenant; the server maps what it presents to one. Both doors ask here
before they read a body.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

Credentials = Mapping[str, str]
"""Request headers or call metadata, names in lower case."""

TenantOf = Callable[[Credentials], str]
"""Raises :class:`~memtrace_collector.receiver.refusal.RefusedError` (UNAUTHENTICATED)."""


def single_tenant(tenant: str) -> TenantOf:
    """Everybody is this tenant: a server without authentication."""
    return lambda credentials: tenant  # noqa: ARG005 - the shape of TenantOf
