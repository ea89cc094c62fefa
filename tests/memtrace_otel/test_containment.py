from __future__ import annotations

import json
import random
import threading
import time

import pytest

from memtrace_otel.containment import MAX_SCANNED_CHARS, Kind, RecentValues, normalise

ORIGIN = ("a" * 32, "b" * 16)


def kept(*values: tuple[str, str], kind: Kind = "delivered") -> RecentValues:
    recent = RecentValues()
    for ref, text in values:
        recent.add(ref, text, ORIGIN, "user:ann", kind)
    return recent


def refs(recent: RecentValues, *texts: str) -> list[str]:
    return [match.ref for match in recent.find(texts)]


def test_a_delivered_value_is_found_with_its_origin_graph_and_message_index() -> None:
    recent = kept(("mem:m:1@a", "Ann moved to Lisbon in May"))
    [match] = recent.find(["You are kind.", "Memories:\n- Ann moved to Lisbon in May\nAnswer."])
    assert (match.ref, match.origin, match.graph_id, match.kind) == (
        "mem:m:1@a",
        ORIGIN,
        "user:ann",
        "delivered",
    )
    assert (match.indexes, match.whole) == ((1,), ())


def test_white_space_and_unicode_composition_do_not_matter() -> None:
    recent = kept(("mem:m:1@a", "The cafe\u0301 opens  at\nnine"))
    assert refs(recent, "note: the The café opens at nine o'clock") == ["mem:m:1@a"]


def test_a_value_dumped_as_json_into_the_prompt_is_found() -> None:
    text = 'Ann said "hi" at the café 🎉\nand left early'
    recent = kept(("mem:m:1@a", text))
    assert refs(recent, json.dumps({"memories": [text]})) == ["mem:m:1@a"]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("Rex is a dog", True),
        ("Rex is dogs", False),  # 11 characters
        ("extraordinary circumstances", False),  # two words
        ("他喜欢在早上喝一杯热咖啡", True),  # 12 characters, no spaces
        ("他喜欢喝热咖啡", False),
        ("ชอบดื่มกาแฟตอนเช้า", True),
    ],
)
def test_a_value_needs_twelve_characters_and_three_words(value: str, found: bool) -> None:
    recent = kept(("mem:m:1@a", value))
    assert bool(refs(recent, f"know: {value}.")) is found


@pytest.mark.parametrize("kind", ["message", "query", "answer"])
def test_a_short_message_is_found_only_as_a_whole_text(kind: Kind) -> None:
    recent = kept(("msg:1@a", "Why?"), kind=kind)
    assert refs(recent, "Tell me. Why? Now.") == []
    [match] = recent.find(["Hello", "  Why? \n"])
    assert (match.indexes, match.whole) == ((1,), (1,))


def test_a_short_delivered_value_is_never_matched_by_content() -> None:
    assert refs(kept(("mem:m:1@a", "yes")), "yes") == []


def test_a_value_cut_inside_a_word_is_not_contained() -> None:
    recent = kept(("mem:m:1@a", "Ann likes green tea"))
    assert refs(recent, "Ann likes green teapots") == []
    assert refs(recent, "JoAnn likes green tea") == []
    assert refs(recent, "(Ann likes green tea)") == ["mem:m:1@a"]


def test_longest_first_then_most_recent() -> None:
    recent = kept(
        ("mem:m:1@a", "Ann likes green tea"),
        ("mem:m:2@a", "Ann likes green tea in the morning"),
        ("mem:m:3@a", "Bob likes black tea"),
    )
    text = "Ann likes green tea in the morning. Bob likes black tea."
    assert refs(recent, text) == ["mem:m:2@a", "mem:m:3@a", "mem:m:1@a"]


def test_an_older_version_is_reported_only_when_it_stands_by_itself() -> None:
    recent = kept(
        ("mem:m:1@old", "Ann likes green tea"),
        ("mem:m:1@new", "Ann likes green tea and coffee"),
    )
    assert refs(recent, "- Ann likes green tea and coffee") == ["mem:m:1@new"]
    both = "- Ann likes green tea and coffee\n- Ann likes green tea"
    assert refs(recent, both) == ["mem:m:1@new", "mem:m:1@old"]


def test_equal_texts_of_different_records_and_graphs_are_all_reported() -> None:
    recent = RecentValues()
    recent.add("mem:m:1@a", "Ann likes green tea", None, "g1", "delivered")
    recent.add("mem:m:2@a", "Ann likes green tea", None, "g2", "delivered")
    found = recent.find(["Ann likes green tea"])
    assert {(match.ref, match.graph_id) for match in found} == {
        ("mem:m:1@a", "g1"),
        ("mem:m:2@a", "g2"),
    }


def test_a_value_seen_again_is_the_most_recent_with_its_new_origin() -> None:
    recent = RecentValues(max_items=2)
    recent.add("mem:m:1@a", "Ann likes green tea", None, "g", "delivered")
    recent.add("mem:m:2@a", "Bob likes black tea", None, "g", "delivered")
    recent.add("mem:m:1@a", "Ann likes green tea", ORIGIN, "g", "delivered")
    recent.add("mem:m:3@a", "Cid likes plain water", None, "g", "delivered")
    [match] = recent.find(["Ann likes green tea. Bob likes black tea."])
    assert (match.ref, match.origin, match.age) == ("mem:m:1@a", ORIGIN, 1)


def test_items_and_characters_are_bounded_and_losses_counted() -> None:
    recent = RecentValues(max_items=3, max_chars=100)
    for number in range(10):
        recent.add(f"mem:m:{number}@a", f"memory number {number} of ten", None, "g", "delivered")
    assert (len(recent), recent.evicted) == (3, 7)
    recent.add("mem:m:long@a", "word " * 30, None, "g", "delivered")
    assert (len(recent), recent.evicted) == (3, 8)
    recent.add("mem:m:most@a", "word " * 18, None, "g", "delivered")
    assert (len(recent), recent.evicted) == (1, 11)
    assert recent.chars <= 100


def test_nothing_is_left_of_what_was_evicted() -> None:
    recent = RecentValues(max_items=50)
    generator = random.Random(7)
    for number in range(2_000):
        words = " ".join(generator.choice("abcdefgh") * 5 for _ in range(generator.randint(1, 30)))
        recent.add(f"mem:m:{number % 90}@{number}", words, None, "g", "delivered")
    for number in range(50):
        recent.add(f"mem:m:last{number}@a", f"!{number}", None, "g", "delivered")
    assert recent._nodes == {}
    assert len(recent._by_text) == 50


def test_agrees_with_naive_search() -> None:
    generator = random.Random(11)
    vocabulary = ["tea", "Ann", "likes", "green", "in", "the", "morning", "咖啡", "3pm", "Lisbon"]
    values = [
        " ".join(generator.choice(vocabulary) for _ in range(generator.randint(3, 14)))
        for _ in range(400)
    ]
    recent = kept(*((f"mem:m:{n}@a", value) for n, value in enumerate(values)))
    text = " ".join(generator.choice(vocabulary) for _ in range(3_000)) + " " + values[5]
    naive = {
        f"mem:m:{n}@a"
        for n, value in enumerate(values)
        if len(value) >= 12 and f" {value} " in f" {text} "
    }
    # A value that ends in an unspaced script needs no space after it; none here does.
    assert set(refs(recent, text)) == naive
    assert "mem:m:5@a" in naive


def test_the_part_of_a_prompt_over_the_limit_is_counted_not_searched() -> None:
    recent = kept(("mem:m:1@a", "Ann likes green tea"))
    assert refs(recent, "x" * MAX_SCANNED_CHARS, "Ann likes green tea") == []
    assert recent.unscanned_chars == len("Ann likes green tea")


def test_cost_hardly_depends_on_the_number_of_values() -> None:
    def seconds(count: int) -> float:
        recent = RecentValues()
        for number in range(count):
            text = f"The user likes item {number} very much, more than item {number + 1}"
            recent.add(f"mem:m:{number}@a", text, None, "g", "delivered")
        prompt = " ".join(f"The user likes thing {number} a lot." for number in range(2_000))
        best = float("inf")
        for _ in range(3):
            start = time.thread_time()
            recent.find([prompt])
            best = min(best, time.thread_time() - start)
        return best

    assert seconds(8_000) < 10 * seconds(80)


def test_threads_may_add_and_search_at_once() -> None:
    recent = RecentValues(max_items=100)
    failures: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            for number in range(300):
                text = f"thread {thread} saw value number {number}"
                recent.add(f"mem:m:{thread}-{number}@a", text, None, "g", "delivered")
                recent.find([text])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(recent) == 100


def test_normalise_survives_lone_surrogates() -> None:
    assert normalise(" a\ud800b ") == "a\ufffdb"
