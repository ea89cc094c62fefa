"""Fuzzing one reader until it breaks, or as long as libFuzzer's arguments say.

    python -m tests.fuzz json                              # until it breaks
    python -m tests.fuzz lineage -max_total_time=600 CORPUS

Without a corpus it begins with the contract's vectors, in a folder that is thrown away.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["memtrace_collector", "memtrace_otel"]):
    from tests.contract import scenarios
    from tests.fuzz.targets import TARGETS

SEEDS = 8


def seeds(target: str) -> list[bytes]:
    """Inputs to begin with."""
    paths = [scenarios.FOLDER / f"{name}.otlp.json" for name in scenarios.NAMES[:SEEDS]]
    requests = [scenarios.request_of(json.loads(path.read_text())) for path in paths]
    if target == "protobuf":
        return [b"\0" + request.SerializeToString() for request in requests]
    if target == "json":
        return [b"\0" + path.read_bytes() for path in paths]
    if target == "gzip":
        return [b"\1\2\3\4" + gzip.compress(path.read_bytes()[:2_000]) for path in paths]
    attributes = [
        item
        for request in requests
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
        for item in span.attributes
    ]
    return [a.value.string_value.encode() for a in attributes if a.key == "memtrace.lineage"]


def main(target: str, arguments: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        if all(argument.startswith("-") for argument in arguments):
            for number, seed in enumerate(seeds(target)):
                (Path(folder) / str(number)).write_bytes(seed)
            arguments = [*arguments, folder]
        atheris.Setup([sys.argv[0], *arguments], TARGETS[target])
        atheris.Fuzz()


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        sys.exit(f"name one of {', '.join(TARGETS)}")
    main(sys.argv[1], sys.argv[2:])
