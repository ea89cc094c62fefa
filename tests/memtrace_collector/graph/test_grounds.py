"""From what a version was written."""

from __future__ import annotations

from memtrace_collector.graph.grounds import MAX_USES, Grounds, grounds_of
from memtrace_collector.graph.lookups import Lookups
from tests.memtrace_collector.attribution.scripts import Script


def grounds(script: Script, record: str = "mem:stub:1") -> list[Grounds]:
    lookups = Lookups(script.store())
    return grounds_of(lookups, lookups.history(script.graph, record))


def test_a_version_goes_back_to_its_message_and_to_the_decision_that_chose_it() -> None:
    script = Script()
    message, _ = script.remember("My barber is Enzo.")
    (found,) = grounds(script)
    (said,) = found.messages.values()
    assert (said.ref, said.operation.step) == (message, "ingest")
    ((decider, decision),) = found.decisions
    assert decider.key == script.last("decide")
    assert decision is not None and decision.action == "ADD"
    assert (list(found.records), found.status, found.is_all) == ([], "complete", True)


def test_what_another_version_was_made_from_is_not_told_again() -> None:
    script = Script()
    _, first = script.remember("My barber is Enzo.")
    script.day(1)
    message = script.say("Now it is Ugo.")
    (fact,) = script.extract(message, "The barber is Ugo.")
    script.update(first, "The barber is Ugo, before that Enzo.", fact, first)
    _, second = grounds(script)
    assert list(second.messages) == [message]
    assert list(second.records) == [first]


def test_a_message_nobody_took_in_is_told_with_who_read_it() -> None:
    script = Script()
    made = script.ref("msg", "I moved.", "m/1")
    script.create("1", "Moved.", made)
    (found,) = grounds(script)
    assert [said.operation.step for said in found.messages.values()] == ["create"]


def test_one_of_very_many_messages_says_that_it_is_not_all() -> None:
    script = Script()
    messages = [script.ref("msg", f"Message {n}.", f"m/{n}") for n in range(MAX_USES + 1)]
    script.create("1", "All of them.", *messages)
    (found,) = grounds(script)
    assert (len(found.messages), found.is_all) == (MAX_USES, False)
