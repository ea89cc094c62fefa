"""Servers and demos that several of these tests share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from playwright.sync_api import Browser

from tests.browser.chromium import launched
from tests.demo_run import DemoRun, run_demo, send_again
from tests.integration.installation import Installation, running_installation
from tests.integration.servers import Jaeger, eventually, jaeger_server, up


@pytest.fixture(scope="session")
def jaeger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jaeger]:
    with jaeger_server(tmp_path_factory.mktemp("jaeger")) as found:
        yield found


@pytest.fixture(scope="session")
def forwarded_demo(
    demo: DemoRun, jaeger: Jaeger, tmp_path_factory: pytest.TempPathFactory
) -> DemoRun:
    """The demo once more, in a store whose `up` sent all of it on to Jaeger."""
    store = tmp_path_factory.mktemp("forwarded") / "demo"
    with up(store, "--forward", jaeger.otlp_http) as server:
        send_again(demo, server.addresses["otlp_http"])
        eventually(lambda: len(server.get("/verdicts")) == len(demo.cases), "every verdict")
        case_traces = [case["verdict"]["case_trace"] for case in demo.cases]
        eventually(lambda: all(map(jaeger.trace, case_traces)), "every case in Jaeger")
    return replace(demo, store=store)


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """The compose file's services; a test may kill what it starts again."""
    with running_installation(tmp_path_factory.mktemp("stack")) as found:
        yield found


@pytest.fixture(scope="session")
def installed_demo(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> DemoRun:
    """The demo, sent through the front door of the installation."""
    stack = installation.stack
    to = ("--endpoint", stack.url("otelcol", 4318), "--api", stack.url("serve", 4319))
    return run_demo(tmp_path_factory.mktemp("installed"), *to)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium; each test opens a context of its own. While it is there this thread has an event
    loop, and tests of other modules could not run theirs."""
    with launched() as found:
        yield found
