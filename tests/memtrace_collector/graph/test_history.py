"""The life of a record in the right order, with clocks as they are."""

from __future__ import annotations

from msgspec import structs

from memtrace_collector.graph.facts import Operation
from memtrace_collector.graph.history import current_at, home_of, order_writes
from tests.memtrace_collector.graph.build import SECOND, operation

RECORD = "mem:s:1"


def write(path: str, at: float, version: str, base: str = "", **fields: object) -> Operation:
    supersedes = [f"{RECORD}@{base}"] if base else []
    step = "delete" if version == "deleted" else "update"
    return operation(
        path, step, at, outputs=[f"{RECORD}@{version}"], supersedes=supersedes, **fields
    )


def versions(*writers: Operation, readers: tuple[Operation, ...] = ()) -> str:
    found = order_writes(RECORD, writers, readers)
    return " ".join(item.version.rpartition("@")[2] for item in found)


def test_writes_come_in_order_of_time() -> None:
    assert versions(write("3/w", 3, "c"), write("1/w", 1, "a"), write("2/w", 2, "b")) == "a b c"


def test_an_explicit_predecessor_beats_the_clock() -> None:
    assert versions(write("1/w", 9, "a"), write("2/w", 5, "b", base="a")) == "a b"


def test_a_value_that_returns_is_a_write_of_its_own() -> None:
    found = (
        write("1/w", 1, "a"),
        write("2/w", 2, "b", base="a"),
        write("3/w", 3, "a", base="b"),
        write("4/w", 4, "deleted", base="a"),
    )
    assert versions(*found[::-1]) == "a b a deleted"


def test_two_writers_from_one_base_are_both_kept() -> None:
    assert (
        versions(
            write("1/w", 1, "a"), write("3/w", 3, "c", base="a"), write("2/w", 2, "b", base="a")
        )
        == "a b c"
    )


def test_equal_times_are_ordered_by_what_a_later_read_delivered() -> None:
    one, two = write("1/w", 1, "a"), write("2/w", 1, "b")
    for version, order in (("a", "b a"), ("b", "a b")):
        read = operation("r/r", "retrieve", 5, delivered=[f"{RECORD}@{version}"])
        assert versions(one, two, readers=(read,)) == order


def test_contradictory_predecessors_end_with_every_write_once() -> None:
    circle = (write("1/w", 1, "a", base="b"), write("2/w", 2, "b", base="a"))
    assert sorted(versions(*circle).split()) == ["a", "b"]


def test_an_enclosing_operation_is_not_a_second_write() -> None:
    outer = operation("t/add", "add", 1, took=5, outputs=[f"{RECORD}@a"], composite=True)
    inner = write("t/w", 2, "a", parent="add")
    assert versions(outer, inner) == "a"


def test_the_current_version_at_a_moment() -> None:
    writes = order_writes(RECORD, [write("1/w", 1, "a"), write("2/w", 5, "b")])
    at_four = current_at(writes, 4 * SECOND)
    assert at_four is not None and at_four.version.endswith("@a")
    assert current_at(writes, 0) is None


def test_a_record_lives_where_it_was_written_for_whoever_meets_it_from_another_graph() -> None:
    writers = (write("1/w", 1, "a"), write("2/w", 2, "b"))
    writes = order_writes(RECORD, (writers[0], structs.replace(writers[1], graph_id="user:b")))
    own = writers[0].graph_id
    assert home_of(writes, ["session:1", own]) == own
    assert home_of(writes, ["user:b", own]) == "user:b"
    assert home_of(writes, ["session:1"]) == "user:b"
    assert home_of((), ["session:1", own]) == "session:1"
