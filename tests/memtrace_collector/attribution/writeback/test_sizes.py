"""What is written back fits: shortened between words, never inside an id."""

from __future__ import annotations

import pytest

from memtrace_collector.attribution.writeback import sizes

SPAN = "0123456789abcdef"


def test_what_fits_stays_as_it_is() -> None:
    assert sizes.clipped("née", 4) == "née"


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("it was lost at delete", 12, "it was…"),
        ("it was lost", 9, "it was…"),
        (f"lost at ({SPAN})", 20, "lost at…"),
        (f"{SPAN}:{SPAN}", 20, ""),
        ("été été été", 9, "été…"),
        ("記憶は失われました。理由は", 12, "記憶は…"),
        (f"失われました{'失' * 40}{SPAN}", 18 + 120 + 10, f"失われました{'失' * 40}…"),
    ],
)
def test_it_is_cut_between_words_with_an_ellipsis(text: str, limit: int, expected: str) -> None:
    cut = sizes.clipped(text, limit)
    assert cut == expected
    assert len(cut.encode()) <= limit


def test_every_length_is_kept_and_stays_utf_8() -> None:
    text = "Zoë’s record mem:mem0:4f0c2d1e@9a1b2c3d4e5f 記憶 was \U0001f600 overwritten"
    for limit in range(3, len(text.encode()) + 2):
        cut = sizes.clipped(text, limit)
        assert len(cut.encode()) <= limit
        assert "mem:mem0" not in cut or "mem:mem0:4f0c2d1e@9a1b2c3d4e5f" in cut


def test_ids_that_do_not_fit_are_left_out_and_no_part_of_them_is_sent() -> None:
    long = "user: " + "安" * 200
    kept = sizes.attributes({"memtrace.graph.id": long, "memtrace.hop.versions": ["mem:a@1", long]})
    assert [each.key for each in kept] == ["memtrace.hop.versions"]
    assert [each.string_value for each in kept[0].value.array_value.values] == ["mem:a@1"]


def test_a_list_has_as_many_of_its_first_as_fit_together() -> None:
    (kept,) = sizes.attributes({"memtrace.hop.versions": [f"{n:0200d}" for n in range(20)]})
    assert 5 < len(kept.value.array_value.values) < 20
    assert kept.value.array_value.values[0].string_value == f"{0:0200d}"
