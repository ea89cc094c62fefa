"""These tests need mem0ai 2.x: ``test_mem0_v2_environment`` runs them where that is installed."""

from __future__ import annotations

from importlib.metadata import version

collect_ignore_glob = [] if version("mem0ai").startswith("2.") else ["test_*"]
