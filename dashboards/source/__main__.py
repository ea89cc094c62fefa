"""``python -m dashboards.source`` writes the dashboards and alerts; ``--check`` only compares."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from dashboards.source import alerts, failures, memory_health, pipeline
from dashboards.source.frame import Addresses

HERE = Path(__file__).resolve().parents[1]
BOARDS = {
    "memory-health": memory_health.build,
    "failures": failures.build,
    "pipeline": pipeline.build,
}


def written(addresses: Addresses) -> Iterator[tuple[Path, str]]:
    """Every file, by its path below ``dashboards``."""
    for name, build in BOARDS.items():
        yield Path("grafana", "dashboards", f"{name}.json"), to_json(build(addresses))
    yield Path("prometheus", "alerts.yml"), alerts.to_yaml()


def to_json(page: Dashboard) -> str:
    """As Grafana's own export looks, its panels numbered: links name a panel by its number."""
    built = page.build()
    for number, panel in enumerate(built.panels or (), 1):
        panel.id_val = number
    return json.dumps(built, cls=JSONEncoder, indent=2, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m dashboards.source", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    parser.add_argument("--explorer", default=Addresses.explorer, help="URL of memtrace's page")
    parser.add_argument("--jaeger", default=Addresses.jaeger, help="URL of Jaeger's page")
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write below")
    given = parser.parse_args(arguments)
    stale = 0
    for path, text in written(Addresses(given.explorer, given.jaeger)):
        file = given.out / path
        if file.exists() and file.read_text("utf-8") == text:
            continue
        stale += 1
        if not given.check:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        print(f"{'differs' if given.check else 'written'}: {path}")
    return 1 if given.check and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
