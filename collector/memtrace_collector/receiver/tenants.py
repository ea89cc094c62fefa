"""Who is sending: the one place where what a client shows turns into a tenant.

A client never names its tenant; the server maps what it presents to one. Both doors ask here
before they read a body.
"""

from __future__ import annotations

from collections.abc import Callable

from memtrace_collector.access.authentication import Authenticator, DeniedError, Presented
from memtrace_collector.receiver.refusal import Code, RefusedError

TenantOf = Callable[[Presented], str]
"""Raises :class:`~memtrace_collector.receiver.refusal.RefusedError` (UNAUTHENTICATED)."""


def single_tenant(tenant: str) -> TenantOf:
    """Everybody is this tenant: a server without authentication."""
    return lambda presented: tenant  # noqa: ARG005 - the shape of TenantOf


def by_credentials(authenticator: Authenticator) -> TenantOf:
    """The tenant that the authenticator knows, or a refusal that the sender does not retry."""

    def tenant_of(presented: Presented) -> str:
        try:
            tenant = authenticator.authenticate(presented).tenant
        except DeniedError as error:
            raise RefusedError(Code.UNAUTHENTICATED, str(error)) from None
        if not tenant:
            raise RefusedError(Code.UNAUTHENTICATED, "this token only reads metrics")
        return tenant

    return tenant_of
