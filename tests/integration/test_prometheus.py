"""A real Prometheus scrapes a real run; every query of the Grafana dashboard returns data."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import components
from tests.contract import scenarios
from tests.integration.conftest import ROOT, eventually, get, running, up
from tests.ports import free_port

DASHBOARD = ROOT / "dashboards" / "grafana" / "dashboards" / "memtrace.json"
QUERIES = [
    (panel["title"], target["expr"])
    for panel in json.loads(DASHBOARD.read_text())["panels"]
    for target in panel["targets"]
]


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Prometheus that has scraped an `up` with operations and verdicts."""
    binary = components.prometheus()
    folder = tmp_path_factory.mktemp("prometheus")
    with up(folder / "store") as server:
        for name in ("overwritten", "stale_retrieved"):
            server.send(scenarios.request(name).SerializeToString())
        server.post("/attribute", {})
        configuration = _configuration(folder, server.addresses["api"])
        address = f"127.0.0.1:{free_port()}"
        command = [
            str(binary), f"--config.file={configuration}", f"--web.listen-address={address}",
            f"--storage.tsdb.path={folder / 'data'}", "--log.level=warn",
        ]  # fmt: skip
        with running(command, folder / "prometheus.log"):
            url = f"http://{address}"
            scraped = "memtrace_verdicts"
            eventually(lambda: _query(url, f"count_over_time({scraped}[1m]) > 2"), "three scrapes")
            yield url


def _configuration(folder: Path, api: str) -> Path:
    """``dashboards/prometheus.yml``, scraping this run every second."""
    document = yaml.safe_load((ROOT / "dashboards" / "prometheus.yml").read_text())
    document["global"]["scrape_interval"] = "1s"
    document["scrape_configs"][0]["static_configs"][0]["targets"] = [api.removeprefix("http://")]
    path = folder / "prometheus.yml"
    path.write_text(yaml.safe_dump(document))
    return path


def _query(url: str, expression: str) -> list[dict[str, Any]] | None:
    response = get(f"{url}/api/v1/query", query=expression)
    return response.json()["data"]["result"] if response else None


@pytest.mark.parametrize(("title", "expression"), QUERIES, ids=[e[:60] for _, e in QUERIES])
def test_a_dashboard_query_returns_data(prometheus, title, expression):
    expression = expression.replace("$__rate_interval", "10s").replace("$__range", "1h")
    assert _query(prometheus, expression), title


def test_the_verdicts_are_told_apart_by_stage_and_type(prometheus):
    found = _query(prometheus, "memtrace_verdicts")
    assert {(item["metric"]["stage"], item["metric"]["type"]) for item in found} == {
        ("update", "overwritten"),
        ("retrieval", "stale_retrieved"),
    }


def test_the_dashboard_names_the_data_source_that_is_provisioned():
    sources = yaml.safe_load(
        (ROOT / "dashboards/grafana/provisioning/datasources/prometheus.yaml").read_text()
    )["datasources"]
    used = {panel["datasource"]["uid"] for panel in json.loads(DASHBOARD.read_text())["panels"]}
    assert used <= {source["uid"] for source in sources}
