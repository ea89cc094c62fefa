"""What Grafana is provisioned with is what the dashboards use."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from tests.dashboards import grafana
from tests.dashboards.grafana import ROOT, Dashboard
from tests.dashboards.sources import READER

PROVISIONING = ROOT / "dashboards" / "grafana" / "provisioning"
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
BOARDS = grafana.dashboards()
SECRET = re.compile(r"\$__file\{[^}]+\}|\$\{?[A-Z_]+\}?")
"""A secret that Grafana reads from a file or its environment when it starts."""


def sources() -> dict[str, dict[str, Any]]:
    """Data sources by uid."""
    found: list[dict[str, Any]] = []
    for path in sorted((PROVISIONING / "datasources").glob("*.yaml")):
        document = yaml.safe_load(path.read_text("utf-8"))
        assert document["apiVersion"] == 1
        found += document["datasources"]
    assert len({each["uid"] for each in found}) == len(found)
    return {each["uid"]: each for each in found}


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_a_dashboard_starts_with_data_sources_that_are_provisioned(board: Dashboard) -> None:
    chosen = [each for each in board.variables if each["type"] == "datasource"]
    assert chosen
    for variable in chosen:
        source = sources()[variable["current"]["value"]]
        assert (source["type"], source["name"]) == (variable["query"], variable["current"]["text"])


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_a_dashboard_names_its_data_sources_by_variables_alone(board: Dashboard) -> None:
    known = {f"${{{each['name']}}}" for each in board.variables if each["type"] == "datasource"}
    used = {panel["datasource"]["uid"] for panel in board.panels}
    used |= {target["datasource"]["uid"] for panel in board.panels for target in panel["targets"]}
    used |= {each["datasource"]["uid"] for each in board.variables if "datasource" in each}
    assert used <= known


def test_an_exemplar_opens_jaeger() -> None:
    (destination,) = sources()["prometheus"]["jsonData"]["exemplarTraceIdDestinations"]
    assert destination["name"] == "trace_id"
    assert sources()[destination["datasourceUid"]]["type"] == "jaeger"


def test_the_database_is_read_by_the_role_of_the_views_without_a_password_in_a_file() -> None:
    source = sources()["postgresql"]
    assert source["user"] == READER
    assert SECRET.fullmatch(source["secureJsonData"]["password"])
    assert "password" not in source.get("jsonData", {})


def test_dashboards_come_from_the_folder_that_is_mounted_and_cannot_be_changed() -> None:
    document = yaml.safe_load((PROVISIONING / "dashboards" / "memtrace.yaml").read_text())
    (provider,) = document["providers"]
    assert provider["allowUiUpdates"] is False
    mounted = dict(volume.split(":")[:2] for volume in COMPOSE["grafana"]["volumes"])
    assert mounted["./dashboards/grafana/dashboards"] == provider["options"]["path"]
    assert mounted["./dashboards/grafana/provisioning"] == "/etc/grafana/provisioning"
    home = COMPOSE["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert (grafana.FOLDER / home.removeprefix(f"{provider['options']['path']}/")).exists()


def test_prometheus_reads_the_alerts() -> None:
    document = yaml.safe_load((ROOT / "dashboards" / "prometheus.yml").read_text())
    mounted = dict(volume.split(":")[:2] for volume in COMPOSE["prometheus"]["volumes"])
    (rules,) = document["rule_files"]
    assert mounted["./dashboards/prometheus/alerts.yml"] == f"/etc/prometheus/{rules}"
