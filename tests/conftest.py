"""What every test may ask for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.demo_run import DemoRun, run_demo
from tests.postgres import Cluster


@pytest.fixture(scope="session")
def postgres_cluster() -> Iterator[Cluster]:
    """A PostgreSQL server for the whole run."""
    cluster = Cluster()
    yield cluster
    cluster.close()


@pytest.fixture
def postgres_url(postgres_cluster: Cluster) -> str:
    """The URL of a database whose tables, if there are any yet, are empty."""
    return postgres_cluster.emptied_database()


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> DemoRun:
    """The demo, run once for whoever looks at what it leaves behind; none changes its store."""
    return run_demo(tmp_path_factory.mktemp("demo"))
