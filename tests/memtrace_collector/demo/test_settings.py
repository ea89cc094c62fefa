"""What a run of the demo may be told."""

from __future__ import annotations

import pytest

from memtrace_collector.demo.settings import Settings
from memtrace_collector.errors import WrongUseError

OTLP, API = "http://localhost:4318", "http://localhost:4319"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"endpoint": OTLP}, "give both"),
        ({"api": API}, "give both"),
        ({"endpoint": "localhost:4318", "api": API}, "--endpoint"),
        ({"endpoint": OTLP, "api": "ftp://localhost"}, "--api"),
        ({"endpoint": OTLP, "api": API, "forward": OTLP}, "--forward"),
    ],
)
def test_what_does_not_go_together_is_refused(given, says, tmp_path):
    with pytest.raises(WrongUseError, match=says):
        Settings(store=tmp_path, **given).validate()


def test_a_folder_that_holds_something_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(WrongUseError, match="is not empty"):
        Settings(store=tmp_path).validate()


@pytest.mark.parametrize("given", [{}, {"forward": OTLP}, {"endpoint": OTLP, "api": API}])
def test_an_installation_of_its_own_or_a_running_one_is_taken(given, tmp_path):
    Settings(store=tmp_path, **given).validate()
