"""How the processes of `up` write their own logs: all to one standard error."""

from __future__ import annotations

import logging


def log_to_stderr(level: int = logging.INFO) -> None:
    """Set up the root logger, once, for a service."""
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
