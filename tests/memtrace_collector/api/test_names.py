"""Under which names a server answers that others may reach: in a container, where it must listen
on every address though it is published on loopback alone."""

from __future__ import annotations

from contextlib import closing

import pytest
from starlette.testclient import TestClient

from memtrace_collector.api.server import build
from memtrace_collector.config import load
from memtrace_collector.errors import ConfigError
from memtrace_collector.telemetry.telemetry import Telemetry


def status(names: tuple[str, ...], asked: str) -> int:
    with closing(Telemetry("test")) as telemetry:
        app = build(
            pytest.fail,  # nothing is asked
            telemetry,
            lambda: "",
            host="0.0.0.0",
            names=names,
            max_request_bytes=1024,
        )
        with TestClient(app) as client:
            return client.get("/healthz", headers={"host": asked}).status_code


@pytest.mark.parametrize("asked", ["serve", "SERVE:4319", "localhost:4319", "127.0.0.1"])
def test_it_answers_to_the_names_it_was_told_and_to_those_of_its_machine(asked: str) -> None:
    assert status(("process", "Serve"), asked) == 200


@pytest.mark.parametrize("asked", ["attacker.example", "serve.attacker.example", ""])
def test_a_name_that_it_was_not_told_is_refused(asked: str) -> None:
    assert status(("process", "serve"), asked) == 400


def test_without_any_it_answers_to_all() -> None:
    assert status((), "memtrace.example") == 200


def test_names_come_from_the_environment_as_a_list() -> None:
    assert load({}, {"MEMTRACE_NAMES": "process, work"}).server.names == ("process", "work")
    with pytest.raises(ConfigError, match=r"server\.names"):
        load({"server.names": [""]}, {})
