"""Rows of the hops told, first stored and kept: several messages, stages, and changed words."""

from __future__ import annotations

from memtrace_collector.attribution.verdict import Verdict
from memtrace_collector.graph.facts import OperationKey
from tests.memtrace_collector.attribution.scripts import Script


def blames(verdict: Verdict, error_type: str, *operations: OperationKey) -> None:
    assert (verdict.error_type, verdict.missing) == (error_type, ()), verdict.explanation
    assert tuple(each.operation for each in verdict.decisive) == operations


def _ask(script: Script, question: str, reply: str, *records: str) -> None:
    script.ask(question)
    script.retrieve(*records)
    script.answer(reply, script.assemble(*records))


def _extracted(script: Script, day: int, said: str, *facts: str) -> tuple[str, OperationKey]:
    """A message and the extraction that made these facts of it, each stored."""
    script.day(day)
    message = script.ref("msg", said)
    script.add("ingest", outputs=(message,))
    made = tuple(script.ref("fact", fact) for fact in facts)
    extract = script.add("extract", inputs=(message,), outputs=made)
    for place, fact in enumerate(facts):
        record = script.ref("mem", fact, f"stub:{day}-{place}")
        script.add("create", inputs=(made[place],), outputs=(record,))
    return message, extract.key


def test_what_two_messages_say_and_no_fact_has_is_omitted_at_both() -> None:
    script = Script()
    first, one = _extracted(script, 1, "We bought a telescope for the attic.")
    second, other = _extracted(script, 2, "We got a harpsichord for the attic.")
    _ask(script, "What is in the attic?", "I do not know.")
    script.flag("a telescope and a harpsichord", first, second)
    blames(script.verdict(), "omission", one, other)


def test_a_fact_that_denies_what_was_said_is_a_distortion_although_it_has_the_words() -> None:
    script = Script()
    message, extract = _extracted(
        script, 1, "We moved to Lisbon in May.", "User did not move to Lisbon in May"
    )
    _ask(script, "Where did I move?", "I do not know.")
    script.flag("Lisbon", message)
    blames(script.verdict(), "distortion", extract)


def test_a_fact_that_has_the_replys_word_in_the_place_of_the_expected_is_a_distortion() -> None:
    script = Script()
    message, extract = _extracted(
        script,
        1,
        "My first garden project was building a greenhouse.",
        "User's first garden project was building a henhouse",
    )
    _ask(script, "What was my project?", "It was building a henhouse in the first garden")
    script.flag("building a greenhouse in the first garden", message)
    blames(script.verdict(), "distortion", extract)
