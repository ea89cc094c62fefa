"""The versions of a record: what changed in each, and who was given it."""

from __future__ import annotations

from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.versions import diff, versions
from tests.memtrace_collector.attribution.scripts import Script


def test_a_text_that_returns_has_the_readers_of_its_own_time() -> None:
    script = Script()
    _, first = script.remember("Lives in Rome.")
    script.ask("Where?", day=1)
    early = script.retrieve(first)
    second = script.update(first, "Lives in Oslo.")
    third = script.update(second, "Lives in Rome.")
    assert third == first
    script.ask("Where now?", day=3)
    late = script.retrieve(third)
    found = versions(Lookups(script.store()), script.graph, "mem:stub:1")
    assert [item.write.version for item in found] == [first, second, third]
    readers = [[reader.operation for reader in item.readers] for item in found]
    assert readers == [[early], [], [late]]
    assert found[1].diff == ("-Lives in Rome.", "+Lives in Oslo.")
    assert found[0].diff == ()


def test_a_version_whose_text_is_unknown_has_no_diff() -> None:
    script = Script(captured=False)
    _, first = script.remember("Lives in Rome.")
    script.delete(first)
    found = versions(Lookups(script.store()), script.graph, "mem:stub:1")
    assert [(item.text, item.diff) for item in found] == [(None, ()), (None, ())]


def test_a_diff_shows_lines_that_look_like_its_own_marks() -> None:
    assert diff("a\n-- b\nc", "a\n++ d\nc") == ("--- b", "+++ d")
    assert diff("same", "same") == ()
    assert diff(None, "new") == ()
