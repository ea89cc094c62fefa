"""The files for running it in containers, as far as they can be checked without an engine.

What they configure runs for real in ``test_stack.py`` and ``test_otelcol.py``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from memtrace_collector.config import SETTINGS, load
from tests.components import OTELCOL_VERSION
from tests.demo_run import ROOT
from tests.integration.stack import COMPOSE, SERVICES, Stack

LASTING = [name for name, service in SERVICES.items() if service.get("restart") != "no"]
OURS = ["process", "work", "serve"]
WITHOUT_SHELL = "otelcol"
"""Its image holds one program and nothing that could ask for its health."""
HEALTH_OF_THE_IMAGE = OURS
TEXT = (ROOT / "docker-compose.yml").read_text()


def test_the_services_configuration_is_complete_valid_and_under_40_lines():
    text = (ROOT / "collector" / "memtrace.yaml").read_text()
    loaded = load({}, {}, ROOT / "collector" / "memtrace.yaml")
    assert loaded.forward.url == "http://jaeger:4318"
    assert len(text.splitlines()) < 40
    for setting in SETTINGS:
        assert re.search(rf"(^|[{{,])\s*{setting.path.rpartition('.')[2]}:", text, re.MULTILINE), (
            setting
        )


def test_the_compose_file_keeps_to_the_specifications_schema():
    command = [Path(sys.executable).with_name("check-jsonschema")]
    command += ["--builtin-schema", "vendor.compose-spec", ROOT / "docker-compose.yml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_publishes_on_loopback_only_and_has_a_pinned_image(name):
    service = SERVICES[name]
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    assert re.search(r":v?\d+(\.\d+)+(-\w+)?$", service["image"])


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_may_do_no_more_than_it_has_to(name):
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["mem_limit"]
    assert service["logging"]["options"].keys() == {"max-size", "max-file"}
    if name == "prepare":
        assert (service["user"], service["cap_add"]) == ("root", ["CHOWN"])
        assert service["network_mode"] == "none"
    else:
        assert "cap_add" not in service
        # the images of these two have a user of their own
        assert name in ("prometheus", "grafana") or service["user"] != "root"


def test_process_work_and_serve_are_one_image():
    assert len({(SERVICES[name]["image"], str(SERVICES[name]["build"])) for name in OURS}) == 1
    assert [SERVICES[name]["command"][0] for name in OURS] == OURS


def test_the_images_are_named_after_the_version_that_is_in_them():
    project = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.M)[1]
    built = [service["image"] for service in SERVICES.values() if "build" in service]
    assert {image.rpartition(":")[2] for image in built} == {project}
    assert f"\nARG VERSION={project}\n" in (ROOT / "collector" / "Dockerfile").read_text()


@pytest.mark.parametrize("name", SERVICES)
def test_who_is_waited_for_can_say_that_it_is_ready(name):
    for other, how in SERVICES[name].get("depends_on", {}).items():
        condition = how["condition"]
        if condition == "service_healthy":
            assert "healthcheck" in SERVICES[other] or other in HEALTH_OF_THE_IMAGE
        elif condition == "service_completed_successfully":
            assert SERVICES[other]["restart"] == "no"
        else:
            assert other == WITHOUT_SHELL


@pytest.mark.parametrize("name", LASTING)
def test_a_lasting_service_says_how_it_is_and_comes_back(name):
    service = SERVICES[name]
    assert service["restart"] == "unless-stopped"
    assert "healthcheck" in service or name in (*HEALTH_OF_THE_IMAGE, WITHOUT_SHELL)


@pytest.mark.parametrize("name", SERVICES)
def test_what_a_service_mounts_exists(name):
    for volume in SERVICES[name].get("volumes", []):
        source = volume.split(":")[0]
        assert (ROOT / source).exists() if source.startswith("./") else source in COMPOSE["volumes"]


def test_what_is_mounted_from_here_is_mounted_to_be_read():
    mounts = [volume for service in SERVICES.values() for volume in service.get("volumes", [])]
    assert all(volume.endswith(":ro") for volume in mounts if volume.startswith("./"))


def test_every_volume_is_used():
    used = {v.split(":")[0] for service in SERVICES.values() for v in service.get("volumes", [])}
    assert set(COMPOSE["volumes"]) <= used


@pytest.mark.parametrize("name", [*OURS, "demo"])
def test_every_variable_for_our_own_commands_is_one_that_they_know(name):
    known = {setting.variable for setting in SETTINGS}
    known |= {"MEMTRACE_LOG", "MEMTRACE_MODEL_API_KEY", "PGPASSFILE"}
    assert set(SERVICES[name].get("environment", {})) <= known


@pytest.mark.parametrize("name", OURS)
def test_what_a_role_is_told_is_a_valid_configuration(name):
    given = {key: str(value) for key, value in SERVICES[name]["environment"].items() if value}
    loaded = load({}, given, ROOT / "collector" / "memtrace.yaml")
    assert loaded.store == "postgresql://memtrace@postgres/memtrace"
    assert loaded.forward.url == "http://otelcol:4320"


def test_a_role_answers_to_the_names_that_prometheus_has_for_it_and_to_no_other_sites():
    jobs = yaml.safe_load((ROOT / "dashboards" / "prometheus.yml").read_text())["scrape_configs"]
    (scraped,) = [job["static_configs"] for job in jobs if job["job_name"] == "memtrace"]
    hosts = {target.partition(":")[0] for group in scraped for target in group["targets"]}
    for name in OURS:
        assert set(SERVICES[name]["environment"]["MEMTRACE_NAMES"].split(",")) == hosts


def test_no_secret_stands_in_a_file():
    for name, service in SERVICES.items():
        for key, value in service.get("environment", {}).items():
            is_secret = re.search(r"PASSWORD|SECRET|TOKEN|KEY", key) and not key.endswith("_FILE")
            assert not is_secret or value is None or str(value).startswith("/"), (name, key)
    for path in (ROOT / "dashboards/grafana/provisioning").rglob("*.yaml"):
        for line in path.read_text().splitlines():
            assert "password:" not in line or "$__file{" in line


def test_the_addresses_that_the_file_tells_are_published():
    published = {port for service in SERVICES.values() for port in service.get("ports", [])}
    told = {urlsplit(url).port for url in re.findall(r"http://localhost:\d+", TEXT)}
    told |= {int(port) for port in re.findall(r"(?:localhost)?:(\d{4,5}) \((?:gRPC|HTTP)\)", TEXT)}
    assert {4317, 4318, 4319, 16686, 3000} <= told
    assert {f"127.0.0.1:{port}:{port}" for port in told} <= published


def test_grafana_asks_who_is_calling_where_nobody_may_be_anonymous(tmp_path):
    stack = Stack(tmp_path)
    environment = stack.environment("grafana")
    for name in ("GF_AUTH_ANONYMOUS_ENABLED", "GF_AUTH_DISABLE_LOGIN_FORM"):
        assert environment[name] == "${GRAFANA_ANONYMOUS:-true}"
    stack.prepare()
    assert len(Path(environment["GF_SECURITY_ADMIN_PASSWORD__FILE"]).read_text().strip()) == 48


def test_grafana_opens_with_a_dashboard_that_exists(tmp_path):
    opened = Stack(tmp_path).environment("grafana")["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert Path(opened).is_relative_to(ROOT)
    assert Path(opened).exists()


def test_the_collector_is_the_version_that_its_configuration_is_tested_with():
    assert SERVICES["otelcol"]["image"].endswith(f":{OTELCOL_VERSION}")
    manifest = yaml.safe_load((Path(__file__).parent / "otelcol-builder.yaml").read_text())
    assert manifest["dist"]["version"] == OTELCOL_VERSION


def test_passwords_are_made_once_and_are_others_everywhere(tmp_path):
    stacks = [Stack(tmp_path / name) for name in ("here", "there")]
    for stack in stacks:
        stack.folder.mkdir()
    made = [_passwords(stack.prepare()) for stack in (*stacks, stacks[0])]
    assert made[0] == made[2]
    assert not set(made[0].values()) & set(made[1].values())
    assert all(len(made[0][name]) == 48 for name in ("superuser", "owner", "reader", "admin"))


def test_a_password_can_be_read_by_nobody_but_who_needs_it(tmp_path):
    secrets = Stack(tmp_path).prepare()
    needed = {"postgres": 999, "memtrace": 10001, "grafana": 472}
    for path in secrets.iterdir():
        status = path.stat()
        assert status.st_mode & 0o077 == 0
        if os.geteuid() == 0:
            assert status.st_uid == needed.get(path.name.partition(".")[0], 0), path.name


def _passwords(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}
