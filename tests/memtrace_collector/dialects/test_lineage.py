"""The fast reading of a lineage says exactly what the careful one says, or nothing."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memtrace_collector.dialects.lineage import LineageReader, is_reference, regular_fields
from memtrace_otel import semconv

REFERENCES = st.sampled_from(["mem:a@1", "fact:b:c@d@2", "query:q@?", "mem:a@deleted"])
STRANGE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=9),
)
TEXTS = st.sampled_from(["user", "2026-01-02T00:00:00Z", "", "limit", "ADD", "add", "é\n"])
POINTERS = st.sampled_from([f"{'ab' * 16}-{'cd' * 8}", f"{'ab' * 16}:{'cd' * 8}", "elsewhere"])
NUMBERS = st.one_of(st.none(), st.integers(-(2**70), 2**70), st.floats(-1e308, 1e308))


def rarely(strange: st.SearchStrategy[Any], usual: st.SearchStrategy[Any]) -> Any:
    return st.one_of(*[usual] * 9, strange)


def lists(items: st.SearchStrategy[Any]) -> Any:
    return rarely(STRANGE, st.lists(rarely(STRANGE, items), max_size=4))


def rows(*parts: st.SearchStrategy[Any]) -> Any:
    whole = st.tuples(*parts).map(list)
    return lists(st.tuples(whole, st.integers(1, len(parts))).map(lambda pair: pair[0][: pair[1]]))


def maps(keys: st.SearchStrategy[str], values: st.SearchStrategy[Any]) -> Any:
    return rarely(STRANGE, st.dictionaries(keys, rarely(STRANGE, values), max_size=3))


LINEAGES = st.fixed_dictionaries(
    {},
    optional={
        **{
            name: lists(REFERENCES)
            for name in ("inputs", "shown", "outputs", "delivered", "supersedes", "inferred", "cut")
        },
        "scores": lists(NUMBERS),
        "score_kind": rarely(STRANGE, TEXTS),
        "dropped": rows(REFERENCES, NUMBERS, TEXTS, NUMBERS),
        "decisions": rows(st.one_of(st.none(), REFERENCES), TEXTS, REFERENCES, TEXTS),
        "edges": rows(REFERENCES, REFERENCES, TEXTS),
        "limits": maps(TEXTS, st.one_of(NUMBERS, TEXTS)),
        "reads": lists(TEXTS),
        "from": maps(REFERENCES, POINTERS),
        "times": maps(REFERENCES, TEXTS),
        "roles": maps(REFERENCES, TEXTS),
        "truncated": maps(TEXTS, st.integers(-1, 2**64)),
        "composite": rarely(STRANGE, st.booleans()),
        "seq": rarely(STRANGE, st.sampled_from(["p:1", "a:b:12", "p:", ":1", "", f"p:{10**19}"])),
        "key": rarely(STRANGE, TEXTS),
        "of a later release": STRANGE,
    },
)


@given(LINEAGES)
def test_both_ways_of_reading_agree(lineage: dict[str, object]) -> None:
    text = json.dumps(lineage)
    fast = regular_fields(text)
    careful = LineageReader(msgspec.json.decode(text))
    fields = careful.fields()
    if fast is not None:
        assert fast == fields and careful.problems == []
        assert [list(map(type, _flat(fast[name]))) for name in fast] == [
            list(map(type, _flat(fields[name]))) for name in fast
        ]


def _flat(value: object) -> list[object]:
    if isinstance(value, dict):
        return [value, *value.values()]
    if isinstance(value, tuple):
        return [value, *(item for part in value for item in _flat(part))]
    return [value]


def test_a_lineage_as_the_contract_has_it_is_read_fast() -> None:
    ref = "mem:mem0:4f0c2d1e@9a1b2c3d4e5f"
    regular: dict[str, object] = {
        "inputs": [ref],
        "outputs": [ref],
        "delivered": [ref],
        "scores": [1, None],
        "dropped": [[ref, None, "limit", 4], [ref]],
        "limits": {"k": 3},
        "decisions": [[None, "NOOP"], [ref, "ADD", None, "done"]],
        "edges": [[ref, ref, "derived_from"]],
        "from": {ref: f"{'ab' * 16}-{'cd' * 8}"},
        "composite": True,
        "seq": "ab12:7",
        "key": "plain",
    }
    assert regular_fields(json.dumps(regular)) is not None


@pytest.mark.parametrize("name", ["inputs", "shown", "outputs", "delivered", "supersedes", "cut"])
def test_what_is_no_reference_is_left_to_the_careful_reading(name: str) -> None:
    assert regular_fields(json.dumps({name: ["mem:a@1", "nonsense"]})) is None


@pytest.mark.parametrize("text", ["", "[]", '{"inputs": ', "[" * 100_000, '{"seq": "\\ud800:1"}'])
def test_what_is_no_lineage_is_left_to_the_careful_reading(text: str) -> None:
    assert regular_fields(text) is None


@given(
    st.lists(st.sampled_from([*semconv.KINDS, ":", "@", "x", "\n", "%"]), max_size=7).map("".join)
)
def test_a_reference_is_split_at_its_first_colon_and_last_at_sign(text: str) -> None:
    kind, _, rest = text.partition(":")
    identifier, _, version = rest.rpartition("@")
    assert is_reference(text) == bool(kind in semconv.KINDS and identifier and version)
