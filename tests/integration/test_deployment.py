"""The files for running it in containers, as far as they can be checked without an engine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from memtrace_collector.config import SETTINGS, load
from tests.components import OTELCOL_VERSION
from tests.integration.conftest import ROOT

COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]


def test_the_services_configuration_is_complete_valid_and_under_40_lines():
    text = (ROOT / "collector" / "memtrace.yaml").read_text()
    loaded = load({}, {}, ROOT / "collector" / "memtrace.yaml")
    assert loaded.forward.url == "http://jaeger:4318"
    assert len(text.splitlines()) < 40
    for setting in SETTINGS:
        assert re.search(rf"(^|[{{,])\s*{setting.path.rpartition('.')[2]}:", text, re.MULTILINE), (
            setting
        )


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_publishes_on_loopback_only_and_has_a_pinned_image(name):
    service = SERVICES[name]
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    assert "build" in service or re.search(r":v?\d+(\.\d+)+$", service["image"])


@pytest.mark.parametrize("name", SERVICES)
def test_what_a_service_mounts_exists(name):
    for volume in SERVICES[name].get("volumes", []):
        source = volume.split(":")[0]
        assert (ROOT / source).exists() if source.startswith("./") else source in COMPOSE["volumes"]


def test_the_image_copies_what_exists():
    lines = (ROOT / "collector" / "Dockerfile").read_text().splitlines()
    copied = [name for line in lines if line.startswith("COPY ") for name in line.split()[1:-1]]
    assert copied
    assert all((ROOT / name).exists() for name in copied)


def test_the_collector_is_the_version_that_its_configuration_is_tested_with():
    assert SERVICES["otelcol"]["image"].endswith(f":{OTELCOL_VERSION}")
    manifest = yaml.safe_load((Path(__file__).parent / "otelcol-builder.yaml").read_text())
    assert manifest["dist"]["version"] == OTELCOL_VERSION
