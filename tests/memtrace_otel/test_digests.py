"""References and digests against the contract and against independent implementations."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import rfc8785
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memtrace_otel import canonical_json, digest_key, variables
from memtrace_otel.config import Config
from memtrace_otel.digests import Digests, Recent
from memtrace_otel.variables import PLAIN, DigestKey

VECTORS = json.loads(
    (Path(__file__).parent.parent / "contract" / "vectors" / "digests.json").read_text()
)
# A busy machine is no failure.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
KEYS = (PLAIN, DigestKey(b"k"), DigestKey(b"long " * 40))
IDS = st.one_of(
    st.text(max_size=300), st.uuids().map(str), st.integers(min_value=0).map(str), st.integers()
)
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(1 - 2**53, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs",))),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=("Cs",))), inner, max_size=4)
    ),
    max_leaves=20,
)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: repr(vector["text"]))
def test_references_of_the_contract_are_reproduced(vector: dict[str, object]) -> None:
    secret = vector["key"]
    key = PLAIN if secret is None else DigestKey(str(secret).encode())
    kind, _, _ = str(vector["reference"]).partition(":")
    parts = (kind, vector["text"], vector.get("id"), "", "", vector.get("state"))
    made = variables.make(
        kind, vector["text"], key=key, id=vector.get("id"), state=vector.get("state")
    )
    assert str(made) == vector["reference"]
    assert Digests(key).reference(parts) == vector["reference"]


@unhurried
@given(JSON_VALUES)
def test_canonical_json_agrees_with_the_reference_implementation(value: object) -> None:
    assert canonical_json.dumps(value).encode() == rfc8785.dumps(value)


@unhurried
@given(st.one_of(st.text(max_size=1_500), JSON_VALUES), st.sampled_from(KEYS))
def test_quick_digests_equal_the_plain_ones(content: object, key: DigestKey) -> None:
    digests = Digests(key)
    assert digests.digest(content) == key.digest(content)[:32]


SCALARS = st.sampled_from([0, 1, 1.0, True, False, "1", "True", "", None, "text", "x" * 2_000])


@unhurried
@given(st.lists(st.tuples(SCALARS, SCALARS), max_size=30), st.sampled_from(KEYS))
def test_remembered_references_are_never_those_of_equal_looking_values(
    given_parts: list[tuple[object, object]], key: DigestKey
) -> None:
    digests = Digests(key)
    for content, identifier in given_parts * 2:
        fresh = Digests(key).reference(("mem", content, identifier, "lib", "", None))
        assert digests.reference(("mem", content, identifier, "lib", "", None)) == fresh


def test_remembered_references_are_bounded() -> None:
    digests = Digests(PLAIN)
    made = {digests.reference(("fact", f"{number}", None, "", "", None)) for number in range(9_999)}
    assert len(made) == 9_999
    assert len(digests._references) <= 4_096


@unhurried
@given(IDS, st.text(max_size=90), st.text(max_size=90), st.sampled_from(KEYS))
def test_quick_library_ids_equal_the_plain_ones(
    identifier: object, system: str, store: str, key: DigestKey
) -> None:
    digests = Digests(key)
    expected = variables.library_id(system, identifier, key, store)
    assert digests.library_id(system, identifier, store) == expected
    assert digests.library_id(system, identifier, store) == expected


def test_what_was_not_used_lately_is_forgotten() -> None:
    recent: Recent[int, int] = Recent(10)
    for number in range(1_000):
        recent.set(number, number)
        recent.get(0)
    assert len(recent) <= 22
    assert recent.get(0) == 0
    assert recent.get(500) is None


def test_key_comes_from_the_environment_first(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("from file\n")
    config = Config(digest_key="given", digest_key_file=str(file), state_folder=tmp_path)
    assert digest_key.load(config) == DigestKey(b"given")
    assert digest_key.load(Config(digest_key_file=str(file))) == DigestKey(b"from file")
    assert digest_key.load(Config(digest_key="plain")) is PLAIN


def test_key_file_is_made_once_and_is_private(tmp_path: Path) -> None:
    config = Config(state_folder=tmp_path)
    first = digest_key.load(config)
    path = tmp_path / digest_key.KEY_FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert digest_key.load(config) == first
    assert [file.name for file in path.parent.iterdir()] == ["digest.key"]


def test_an_unusable_key_file_means_a_random_key_and_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    config = Config(digest_key_file=str(tmp_path / "missing"))
    keys = {
        digest_key.load(config),
        digest_key.load(Config(digest_key_file=str(tmp_path / "file"))),
        digest_key.load(Config(state_folder=tmp_path / "file")),
    }
    assert len(keys) == 3
    assert len(caplog.records) == 3


def test_processes_that_start_at_once_share_one_key(tmp_path: Path) -> None:
    program = (
        "from memtrace_otel import runtime; import sys; sys.stdin.readline();"
        "print(runtime.get().key.name)"
    )
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    environment.pop("MEMTRACE_DIGEST_KEY", None)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )
        for _ in range(4)
    ]
    for process in processes:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    names = {process.communicate(timeout=60)[0].strip() for process in processes}
    assert len(names) == 1
    assert names != {""}
