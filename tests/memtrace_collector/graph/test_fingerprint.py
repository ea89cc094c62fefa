"""The hash of a graph does not depend on how facts are held in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from memtrace_collector.dialects import registry
from memtrace_collector.graph.facts import DEFAULT_TENANT
from memtrace_collector.graph.fingerprint import graph_hash
from memtrace_collector.receiver.decode import decode

VECTORS = Path(__file__).parents[2] / "contract" / "vectors"
KNOWN = {
    "ranked_out": "df6d327341172ee2beec4120693a634b5669483cfccf54accffff289e67eaa3e",
    "overwritten": "e4f31d4f0f4105bd9be1044e052e0c9a1bbeb3d852a2d1b49eae95dd72a119cf",
    "two_graphs": "ec24cd2ba5b15bf4a1a79fdb8657afdb7d019b07fb7300e65d84067fc47687c9",
    "user_correction": "169469fd47f3d193d678ff8936b619ecc567403c2f9f4fbcc1d64ac74fd9b43a",
}
"""Of all facts of a vector together, as an earlier release gave them."""


@pytest.mark.parametrize("name", KNOWN)
def test_a_vector_keeps_the_hash_that_it_always_had(name: str) -> None:
    request = decode("traces", "json", (VECTORS / f"{name}.otlp.json").read_bytes())
    facts = list(registry.read_request(DEFAULT_TENANT, request))
    found = graph_hash(
        [item.operation for item in facts if item.operation is not None],
        [value for item in facts for value in item.values],
        [flag for item in facts for flag in item.flags],
    )
    assert found == KNOWN[name]
