"""Console script `memtrace-otel`: the command line, or how to get it."""

from __future__ import annotations

import importlib
import sys

NEEDED = ("click", "grpc", "httptools", "httpx", "networkx", "starlette", "uvicorn", "yaml")
HINT = 'the command line needs the collector: pip install "memtrace-otel[collector]"'


def main() -> None:
    """Run the command line; without the extra ``[collector]``, print the command and exit 2."""
    try:
        cli = importlib.import_module("memtrace_collector.cli")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in NEEDED:
            raise
        sys.stderr.write(f"memtrace-otel: {HINT} (missing: {error.name})\n")
        sys.exit(2)
    cli.main()


if __name__ == "__main__":
    main()
