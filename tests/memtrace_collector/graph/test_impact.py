"""What is derived from something, and the smallest part that shows a failure."""

from __future__ import annotations

from memtrace_collector.graph.flags import flag_of, flagged_answers
from memtrace_collector.graph.impact import impact, occurrences_of, outputs_of, texts_of
from memtrace_collector.graph.loader import load_case
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.slice import slice_of
from tests.memtrace_collector.attribution.scripts import Script


def answered() -> tuple[Script, str, str]:
    script = Script()
    message, version = script.remember("My barber is Enzo.")
    script.ask("Who is my barber?")
    script.reply("Enzo.", version)
    return script.flag("Luigi", message), message, version


def test_impact_reaches_facts_records_and_answers_but_not_its_start() -> None:
    script, message, version = answered()
    lookups = Lookups(script.store())
    found = impact(lookups, occurrences_of(lookups, message))
    assert found.complete
    assert message not in {item.ref for item in found.derived}
    assert found.records == ["mem:stub:1"]
    assert found.answers == [script.operations[-1].key]
    assert texts_of(lookups, found.derived)[version] == "My barber is Enzo."


def test_each_derived_thing_says_by_which_chain_it_came() -> None:
    script, message, version = answered()
    lookups = Lookups(script.store())
    found = impact(lookups, occurrences_of(lookups, message))
    answer = found.derived[-1]
    kinds = [step.ref.partition(":")[0] for step in found.chain(answer)]
    assert kinds == ["msg", "fact", "mem", "ctx", "ans"]
    assert found.chain(answer)[2].ref == version
    assert (found.lineage, found.losses) == ("complete", ())


def test_impact_says_that_it_is_inexact_when_a_version_nobody_wrote_was_used() -> None:
    script = Script()
    message, version = script.remember("My barber is Enzo.")
    script.ask("Who is my barber?")
    script.answer("Enzo.", script.assemble(f"{version.partition('@')[0]}@0123456789ab"))
    lookups = Lookups(script.store())
    found = impact(lookups, occurrences_of(lookups, message))
    assert found.answers == [script.operations[-1].key]
    assert found.lineage == "inexact"


def test_impact_counts_what_never_arrived() -> None:
    script, message, _ = answered()
    script.lose(2)
    script.say("After.")
    lookups = Lookups(script.store())
    found = impact(lookups, occurrences_of(lookups, message))
    assert [(loss.process, loss.first, loss.last) for loss in found.losses] == [("reader", 5, 6)]


def test_impact_starts_from_a_record_or_from_what_an_operation_made() -> None:
    script, _, version = answered()
    lookups = Lookups(script.store())
    by_record = occurrences_of(lookups, "mem:stub:1")
    assert [item.ref for item in by_record] == [version]
    created = next(item for item in script.operations if item.step == "create")
    assert outputs_of([created]) == by_record
    assert occurrences_of(lookups, "mem:stub:404") == []


def test_a_slice_keeps_the_operation_that_shows_a_loss() -> None:
    script, _, _ = answered()
    script.day(1)
    script.say("Before.")
    script.lose()
    script.say("After.")
    behind = script.operations[-2]
    store = script.store()
    (flagged,) = flagged_answers(store)
    assert flag_of(store, flagged.answer) == flagged.flag
    part = slice_of(store, load_case(store, *flagged))
    assert behind.key in part.operations
    assert part.gapless == frozenset({"reader"})


def test_several_flags_of_an_answer_are_one() -> None:
    script, message, _ = answered()
    script.flag(None, source="user")
    ((_, flag),) = flagged_answers(script.store())
    assert (flag.expected, flag.evidence) == ("Luigi", (message,))
