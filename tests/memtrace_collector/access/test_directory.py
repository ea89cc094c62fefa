from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memtrace_collector.access.directory import Grant, Limits, read_directory
from memtrace_collector.errors import ConfigError
from tests.memtrace_collector.access.tokens import ACME, digest, tokens_file, written


def test_tokens_certificates_and_limits_are_read(tmp_path: Path) -> None:
    path = tokens_file(
        tmp_path,
        certificates={"agent.example": "initech"},
        limits={"acme": {"requests_in_flight": 2, "bytes_per_second": 10}},
    )
    directory = read_directory(path)
    assert directory.tokens[bytes.fromhex(digest(ACME).removeprefix("sha256:"))] == Grant("acme")
    assert directory.tenants() == {"acme", "globex", "initech"}
    assert directory.limits == {"acme": Limits(2, 10)}


def test_yaml_with_times_is_read_as_well(tmp_path: Path) -> None:
    path = tmp_path / "tokens.yaml"
    path.write_text(
        "tokens:\n"
        f"  {digest('a')}: {{tenant: acme, expires: 2027-01-01}}\n"
        f"  {digest('b')}: {{tenant: acme, expires: 2027-01-01T00:00:00+01:00}}\n"
    )
    path.chmod(0o600)
    first, second = (grant.expires for grant in read_directory(path).tokens.values())
    assert first is not None and second is not None and first - second == 3600


@pytest.mark.fault("F32")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = tokens_file(tmp_path)
    path.chmod(mode)
    with pytest.raises(ConfigError, match="chmod 600"):
        read_directory(path)


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ([], "not a mapping"),
        ({"token": {}}, "not a mapping with tokens"),
        ({}, "nobody could come in"),
        ({"tokens": {"canary-x": "acme"}}, "entry 1: neither sha256"),
        ({"tokens": {"sha256:canary-secret-0123": "acme"}}, "entry 1: neither sha256"),
        ({"tokens": {"canary-secret-0123456": "../acme"}}, "entry 1: a tenant is named by"),
        ({"tokens": {"canary-secret-0123456": {"tenant": "a", "until": 1}}}, "knows tenant"),
        ({"tokens": {"canary-secret-0123456": {"tenant": "a", "expires": "soon"}}}, "no time"),
        ({"tokens": {"canary-secret-0123456": {"tenant": "a", "scope": "metrics"}}}, "without a"),
        ({"certificates": {"a": "t"}, "limits": {"t": {"spans": 1}}}, "whole numbers"),
    ],
)
def test_a_wrong_entry_is_named_by_its_number_and_never_shown(
    tmp_path: Path, document: Any, says: str
) -> None:
    with pytest.raises(ConfigError, match=says) as raised:
        read_directory(written(tmp_path, document))
    assert "canary" not in str(raised.value)


def test_text_that_is_no_yaml_is_not_repeated(tmp_path: Path) -> None:
    path = tmp_path / "tokens.yaml"
    path.write_text("tokens:\n  canary-secret: {\n  - ]")
    path.chmod(0o600)
    with pytest.raises(ConfigError, match=r"is not YAML \(line \d\)") as raised:
        read_directory(path)
    assert "canary" not in str(raised.value)


def test_a_file_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_directory(tmp_path / "none")
