"""Which nodes and links are drawn of some operations."""

from __future__ import annotations

from memtrace_collector.api.explorer.elements import Elements, Link, elements
from memtrace_collector.graph.facts import Dropped, Operation, OperationKey
from tests.memtrace_collector.graph.build import key, operation

MSG, FACT, OLD, NEW = "msg:m@1", "fact:f@1", "mem:s:1@a", "mem:s:1@b"
Parents = dict[OperationKey, tuple[OperationKey, ...]]


def links(found: Elements) -> set[tuple[str, str, str, str]]:
    """Operations by their short names."""
    names = {str(key(path)): path for path in ("t/in", "t/ex", "t/de", "t/up", "u/re", "u/an")}
    return {
        (names.get(link.source, link.source), names.get(link.target, link.target), *link[2:4])
        for link in found.links
    }


def story() -> tuple[list[Operation], Parents]:
    """A message becomes a fact, which replaces a record that is then recalled."""
    operations = [
        operation("t/in", "ingest", 1, outputs=[MSG]),
        operation("t/ex", "extract", 2, inputs=[MSG], outputs=[FACT]),
        operation("t/de", "decide", 3, inputs=[FACT], shown=[OLD]),
        operation("t/up", "update", 4, inputs=[FACT], outputs=[NEW], supersedes=[OLD]),
        operation("u/re", "retrieve", 5, delivered=[NEW]),
        operation("u/an", "answer", 6, inputs=[NEW], outputs=["ans:x@1"]),
    ]
    parents = {
        key("t/ex"): (key("t/in"),),
        key("t/de"): (key("t/ex"),),
        key("t/up"): (key("t/ex"), key("t/de")),
        key("u/re"): (key("t/up"),),
        key("u/an"): (key("u/re"),),
    }
    return operations, parents


def test_links_run_the_way_information_flows() -> None:
    found = elements(*story())
    assert links(found) == {
        ("t/in", MSG, "produced", "exact"),
        (MSG, "t/ex", "used", "exact"),
        ("t/ex", FACT, "produced", "exact"),
        (FACT, "t/de", "used", "exact"),
        (FACT, "t/up", "used", "exact"),
        ("t/de", "t/up", "decided", "exact"),
        ("t/up", NEW, "produced", "exact"),
        (NEW, "u/re", "delivered", "exact"),
        ("u/re", "u/an", "delivered", "exact"),
        ("u/an", "ans:x@1", "produced", "exact"),
    }
    assert [node.id for node in found.nodes][:2] == [str(key("t/in")), MSG]


def test_a_replaced_version_and_a_marked_one_that_was_only_shown_are_linked() -> None:
    operations, parents = story()
    first = operation("t/in", "ingest", 0, outputs=[MSG, OLD])
    found = links(elements([first, *operations[1:]], parents, marked=[OLD]))
    assert (OLD, "t/up", "superseded", "exact") in found
    assert (OLD, "t/de", "shown", "exact") in found
    assert (OLD, "t/de", "shown", "exact") not in links(elements(operations, parents))


def test_a_candidate_that_was_dropped_is_drawn_where_it_is_looked_for() -> None:
    search = operation("u/re", "retrieve", 5, dropped=[Dropped(OLD, 0.2, "limit", 7)])
    assert elements([search], {}).links == ()
    assert links(elements([search], {}, marked=[OLD])) == {(OLD, "u/re", "dropped", "exact")}


def test_what_is_not_certain_is_said() -> None:
    twice = [
        operation("t/in", "ingest", 1, outputs=[MSG]),
        operation("t/up", "ingest", 1.5, outputs=[MSG]),
        operation("t/ex", "extract", 2, inputs=[MSG, "ctx:c@1"], inferred=["ctx:c@1"]),
    ]
    both = {key("t/ex"): (key("t/in"), key("t/up"))}
    assert {(MSG, "t/ex", "used", "ambiguous"), ("ctx:c@1", "t/ex", "used", "inferred")} <= links(
        elements(twice, both)
    )
    other = [
        operation("t/up", "update", 1, outputs=[OLD]),
        operation("u/an", "answer", 2, inputs=["mem:s:1@?"]),
    ]
    assert (OLD, "u/an", "used", "inexact") in links(elements(other, {key("u/an"): (key("t/up"),)}))


def test_references_that_pass_along_one_link_are_counted_once_each() -> None:
    delivered = [f"mem:s:{n}@a" for n in range(5)]
    found = elements(
        [
            operation("u/re", "retrieve", 1, delivered=delivered),
            operation("u/an", "answer", 2, inputs=delivered),
        ],
        {key("u/an"): (key("u/re"),)},
    )
    passed = Link(str(key("u/re")), str(key("u/an")), "delivered", "exact", 5)
    assert passed in found.links and len(found.links) == 6


def test_composites_and_references_that_do_not_count_are_left_out() -> None:
    whole = operation("t/in", "add", 1, inputs=[MSG], outputs=[NEW], composite=True)
    met = operation("u/re", "retrieve", 2, delivered=[OLD, NEW])
    found = elements([whole, met], {}, counts=lambda _, ref: ref == NEW)
    assert [node.id for node in found.nodes if node.operation] == [str(met.key)]
    assert links(found) == {(NEW, "u/re", "delivered", "exact")}
