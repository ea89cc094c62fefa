"""What tests ask servers with."""

from __future__ import annotations

import httpx

CLIENT = httpx.Client(timeout=60, trust_env=False, limits=httpx.Limits(max_keepalive_connections=0))
"""One for all: a client of its own per request, as ``httpx.get`` makes it, loads certificates for
20 ms each time. It keeps no connection, so that no server waits for it when it ends."""
