"""Rows of the hops found, shown and used, beyond one memory and one declared prompt."""

from __future__ import annotations

from typing import Any

import pytest

from memtrace_collector.attribution.verdict import Verdict
from memtrace_collector.graph.facts import Dropped, OperationKey
from tests.memtrace_collector.attribution.scripts import Script


def blames(verdict: Verdict, error_type: str, *operations: OperationKey) -> None:
    assert (verdict.error_type, verdict.missing) == (error_type, ()), verdict.explanation
    assert tuple(each.operation for each in verdict.decisive) == operations


def _beside(script: Script, graph: str, content: str) -> str:
    """A record of another memory."""
    made = script.ref("mem", content, "stub:beside")
    script.day(1).add("create", graph=graph, outputs=(made,))
    return made


def test_a_search_that_brings_only_what_lies_elsewhere_has_the_wrong_scope() -> None:
    script = Script()
    message, _ = script.remember("My tailor is Moreau.")
    other = _beside(script, "user:neighbour", "User has a goldfish")
    script.ask("Who is my tailor?")
    read = script.retrieve(other, reads=("user:neighbour",))
    script.answer("I do not know.", script.assemble(other))
    script.flag("Moreau", message)
    blames(script.verdict(), "wrong_scope", read.key)


def test_a_search_of_two_memories_that_brings_something_of_both_has_the_right_scope() -> None:
    script = Script()
    message, _ = script.remember("My tailor is Moreau.")
    _, mine = script.remember("I like cake.", record="2")
    other = _beside(script, "corpus:team", "The office closes at six")
    script.ask("Who is my tailor?")
    read = script.retrieve(mine, other, reads=("corpus:team",))
    script.answer("I do not know.", script.assemble(mine, other))
    script.flag("Moreau", message)
    blames(script.verdict(), "not_retrieved", read.key)


def test_what_a_search_of_a_shared_memory_brought_is_nobody_elses_after_a_reranking() -> None:
    script = Script()
    message, mine = script.remember("My tailor is Moreau.")
    other = _beside(script, "corpus:team", "The office tailor is Petit")
    script.ask("Who is my tailor?")
    script.retrieve(mine, other, reads=("corpus:team",))
    rerank = script.add(
        "rerank",
        inputs=(script.query, mine, other),
        delivered=(other,),
        dropped=(Dropped(mine, 0.1, "rerank", 2),),
        limits={"k": 1},
    )
    script.answer("The office tailor is Petit", script.assemble(other))
    script.flag("Moreau", message)
    blames(script.verdict(), "ranked_out", rerank.key)


def test_a_prompt_that_was_found_in_what_the_model_was_sent_counts_as_its_context() -> None:
    script = Script()
    message, mine = script.remember("My tailor is Moreau.")
    _, other = script.remember("I like cake.", record="2")
    script.ask("Who is my tailor?")
    script.retrieve(mine, other)
    prompt = script.assemble(other)
    script.answer("I do not know.", other, shown=(prompt,))
    script.flag("Moreau", message)
    blames(script.verdict(), "cut_from_context", script.last("assemble"))


def _visited(question: str, reply: str, lines: str | None = None) -> Script:
    """A record of which only its own day says when it was."""
    script = Script()
    message = script.say("Yesterday I went bowling with my cousin.")
    (fact,) = script.extract(message, "User went bowling with a cousin yesterday")
    stored = script.create("1", "User went bowling with a cousin yesterday", fact)
    script.ask(question)
    script.retrieve(stored)
    script.answer(reply, script.assemble(stored, text=lines))
    return script.flag("bowling", message)


def test_a_prompt_without_the_day_that_the_question_names_is_garbled() -> None:
    script = _visited("What did I do on 31 December 2025?", "I do not know.")
    verdict = script.verdict()
    blames(verdict, "garbled_in_context", script.last("assemble"))
    assert verdict.aspect == "time"


def test_a_prompt_that_names_its_days_is_not_garbled() -> None:
    dated = "- [1 January 2026] User went bowling with a cousin yesterday"
    script = _visited("What did I do on 31 December 2025?", "I do not know.", dated)
    blames(script.verdict(), "wrong_abstention", script.last("answer"))


def test_a_prompt_without_days_is_enough_for_a_question_that_has_nothing_to_do_with_time() -> None:
    script = _visited("What did I do with my cousin?", "I do not know.")
    blames(script.verdict(), "wrong_abstention", script.last("answer"))


_TALK = "Ana: Good morning, how was it?\nBen: Fine, thank you.\nAna: It rains again today."
_SAID = "Last Friday I finally visited the old lighthouse with Clara."


def _buffered(question: str, reply: str, prompt: str, **fields: Any) -> Script:
    """A buffer of a whole conversation, of which a message says what is needed."""
    script = Script()
    message = script.say(_SAID)
    buffer = script.create("talk", f"{_TALK}\n[1 January 2026] Ben: {_SAID}", message)
    script.ask(question)
    script.retrieve(buffer)
    dropped = (Dropped(message, None, "budget", 1),) if _SAID not in prompt else ()
    script.answer(reply, script.assemble(buffer, text=prompt, dropped=dropped))
    return script.flag("the 26th of December 2025", message)


def test_a_prompt_that_quotes_the_evidence_with_its_day_has_what_was_needed() -> None:
    prompt = f"{_TALK}\n[1 January 2026] Ben: {_SAID}"
    script = _buffered("When did Ben visit the lighthouse?", "I do not know.", prompt)
    blames(script.verdict(), "wrong_abstention", script.last("answer"))


def test_a_message_of_a_buffer_that_the_assembly_dropped_was_cut_from_the_prompt() -> None:
    script = _buffered("When did Ben visit the lighthouse?", "I do not know.", _TALK)
    blames(script.verdict(), "cut_from_context", script.last("assemble"))


def test_words_scattered_over_a_conversation_do_not_say_it() -> None:
    script = Script()
    lines = "Ana: The red boat is old.\nBen: My door sticks.\nAna: A copper pan.\nBen: The roof!"
    script.create("talk", lines, script.say(lines))
    message, stored = script.remember("Clara's house has a red door and a copper roof.", record="2")
    script.ask("Which house is Clara's?")
    read = script.retrieve()
    script.answer("I do not know.", script.assemble())
    script.flag("red door, copper roof", message)
    verdict = script.verdict()
    blames(verdict, "not_retrieved", read.key)
    assert verdict.decisive[0].last_right == stored


def test_a_prompt_that_quotes_a_carrier_has_it_however_its_sentences_are_cut() -> None:
    script = Script()
    stored = "Plan so far: route by tram no. Then the pier; tickets from Ines, in all 67.50 euros"
    message, version = script.remember("Ines sells the tickets, 67.50 euros in all.", stored)
    script.ask("What is left to do?")
    script.retrieve(version)
    script.answer("I do not know.", script.assemble(version))
    script.flag("Tickets from Ines, in all 67.50 euros", message)
    blames(script.verdict(), "wrong_abstention", script.last("answer"))


def _matched_by_text(prompt: str) -> Script:
    """Nobody was seen to put the prompt together."""
    script = Script()
    message, version = script.remember("My tailor is Moreau from the harbour.")
    script.ask("Who is my tailor?")
    script.retrieve(version)
    made = script.ref("ctx", prompt)
    script.answer("I do not know.", shown=(made,))
    return script.flag("Moreau", message)


def test_a_prompt_with_no_word_of_what_was_read_was_put_together_without_it() -> None:
    script = _matched_by_text("Memories:\n\nQuestion: Who is my tailor?")
    blames(script.verdict(), "cut_from_context", script.last("answer"))


def test_a_prompt_that_may_say_it_in_other_words_shows_no_cut() -> None:
    script = _matched_by_text("Memories: clothes are sewn at the harbour, by the Frenchman")
    assert script.verdict().stage == "unknown"


def _inferred(reply: str) -> Script:
    """The evidence says in words of its own what was expected."""
    script = Script()
    message, version = script.remember("I adopted a pup from a shelter in Stamford last week.")
    script.ask("In which state was my dog adopted?")
    script.reply(reply, version)
    return script.flag("Connecticut", message)


def test_a_reply_with_nothing_of_what_was_asked_or_shown_ignores_the_context() -> None:
    script = _inferred("Spicy noodles, as always")
    blames(script.verdict(), "ignored_context", script.last("answer"))


def test_a_reply_with_some_of_the_evidence_may_be_what_it_says() -> None:
    assert _inferred("Around Stamford").verdict().stage == "unknown"


def test_a_copy_of_the_expected_answer_with_another_word_is_a_wrong_conclusion() -> None:
    script = Script()
    stored = "User has postponed the lessons on pairing wine with salty food until March"
    message, version = script.remember("Those pairings can wait, let us see in spring.", stored)
    script.ask("What about the course?")
    wrong = "User has cancelled the lessons on pairing wine with salty food until March"
    script.reply(wrong, version)
    script.flag(stored, message)
    assert script.verdict().stage == "response"


def test_a_line_of_a_shown_conversation_is_another_item_of_the_prompt() -> None:
    script = Script()
    talk = "Ana: Good morning, how was it?\nBen: My kite is torn.\nAna: Clara paints her barn."
    message = script.say("I finally sold the red bicycle to Igor.")
    buffer = script.create("talk", f"{talk}\nBen: I finally sold the red bicycle to Igor.", message)
    script.ask("Who bought the red bicycle?")
    script.reply("Clara paints her barn.", buffer)
    script.flag("Igor", message)
    blames(script.verdict(), "distracted", script.last("answer"))


def test_an_answer_that_read_nothing_was_not_searched_wherever_the_carrier_lies() -> None:
    script = Script()
    script.remember("I like cake.")
    message = script.ref("msg", "Our canteen closes at 15:10.", "team/1")
    chunk = script.ref("doc", "Our canteen closes at 15:10.", "team/1")
    script.day(1).add("ingest", graph="corpus:team", inputs=(message,), outputs=(chunk,))
    script.ask("When does our canteen close?")
    answer = script.answer("I do not know.")
    script.flag("15:10", message)
    blames(script.verdict(), "not_searched", answer.key)


def test_the_last_stage_that_dropped_a_carrier_ranked_it_out() -> None:
    script = Script()
    message, mine = script.remember("My tailor is Moreau.")
    _, other = script.remember("I like cake.", record="2")
    script.ask("Who is my tailor?")
    script.retrieve(other, dropped=[Dropped(mine, 0.1, "limit", 2)])
    script.retrieve(mine, other)
    rerank = script.add(
        "rerank",
        inputs=(script.query, other, mine),
        delivered=(other,),
        dropped=(Dropped(mine, 0.1, "rerank", 2),),
        limits={"k": 1},
    )
    script.answer("I do not know.", script.assemble(other))
    script.flag("Moreau", message)
    blames(script.verdict(), "ranked_out", rerank.key)


def test_words_of_many_items_are_no_support_of_an_answer_to_the_unanswerable() -> None:
    script = Script()
    _, one = script.remember("The piano tuner came in June.")
    _, two = script.remember("We play cards in the garden.", record="2")
    script.ask("What does Tim want to see in Paris?")
    script.reply("Play the piano", one, two)
    script.flag("")
    blames(script.verdict(), "hallucinated", script.last("answer"))


def test_a_reply_with_one_of_two_parts_that_two_messages_say_is_not_right() -> None:
    script = Script()
    one, first = script.remember("Tim has begun to learn the piano.")
    two, _ = script.remember("Tim has taken up the violin as well.", record="2")
    script.ask("Which instruments does Tim learn?")
    read = script.retrieve(first)
    script.answer("Tim learns the piano.", script.assemble(first))
    script.flag("piano, violin", one, two)
    blames(script.verdict(), "not_retrieved", read.key)


def test_a_reranking_that_orders_anew_is_the_author_of_what_it_cuts() -> None:
    script = Script()
    message, mine = script.remember("My tailor is Moreau.")
    _, one = script.remember("I like cake.", record="2")
    _, two = script.remember("I like tea.", record="3")
    script.ask("Who is my tailor?")
    script.retrieve(mine, one, two)
    script.add("rerank", inputs=(script.query, mine, one, two), delivered=(one, mine, two))
    rerank = script.add(
        "rerank",
        inputs=(script.query, one, mine, two),
        delivered=(two,),
        dropped=(Dropped(one, 0.2, "rerank", 2), Dropped(mine, 0.1, "rerank", 3)),
        limits={"k": 1},
    )
    script.answer("I do not know.", script.assemble(two))
    script.flag("Moreau", message)
    blames(script.verdict(), "ranked_out", rerank.key)


def test_a_cut_in_the_order_of_the_reranking_before_it_leaves_that_the_author() -> None:
    script = Script()
    message, mine = script.remember("My tailor is Moreau.")
    _, other = script.remember("I like cake.", record="2")
    script.ask("Who is my tailor?")
    script.retrieve(mine, other)
    rerank = script.add("rerank", inputs=(script.query, mine, other), delivered=(other, mine))
    script.add(
        "rerank",
        inputs=(script.query, other, mine),
        delivered=(other,),
        dropped=(Dropped(mine, 0.1, "limit", 2),),
        limits={"k": 1},
    )
    script.answer("I do not know.", script.assemble(other))
    script.flag("Moreau", message)
    blames(script.verdict(), "ranked_out", rerank.key)


@pytest.mark.parametrize(
    ("said", "question", "reply", "expected"),
    [
        ("Rome is a city to see.", "Where should Tim go?", "The answer is Rome.", "Turnips"),
        ("Max never misses a frisbee.", "What can Max do?", "It is: misses no frisbee", "Lager"),
    ],
)
def test_bad_reference_when_the_evidence_says_what_a_sentence_says_of_its_subject(
    said: str, question: str, reply: str, expected: str
) -> None:
    script = Script()
    message, version = script.remember(said)
    script.ask(question)
    script.reply(reply, version)
    script.flag(expected, message)
    assert script.verdict().error_type == "bad_reference"


def test_a_year_beside_a_day_accepts_no_other_month() -> None:
    script = Script()
    message, version = script.remember("On the 19th I sprained my ankle in the park.")
    script.ask("When did Ida sprain her ankle?")
    script.reply("June, 2025", version)
    script.flag("between October 19 and 24, 2025", message)
    assert script.verdict().error_type != "bad_judge"


def test_a_message_that_says_most_of_an_item_leaves_another_messages_part_needed() -> None:
    script = Script()
    one, _ = script.remember("We explored the coast up in the pacific northwest.")
    two, _ = script.remember("I plan to visit the coast in the east.", record="2")
    script.ask("Which areas has John been to?")
    first = script.ref("mem", "We explored the coast up in the pacific northwest.", "stub:1")
    read = script.retrieve(first)
    script.answer("Up in the pacific northwest.", script.assemble(first))
    script.flag("pacific northwest, east coast", one, two)
    blames(script.verdict(), "not_retrieved", read.key)


def test_a_prompt_whose_values_none_says_it_does_not_say_it_by_its_words_together() -> None:
    script = Script()
    message, _ = script.remember("I made some goodies to thank my neighbours for the fence.")
    _, one = script.remember("Neighbours are thanked on the radio.", record="2")
    _, two = script.remember("Tim made a good speech.", record="3")
    script.ask("What did I make to thank my neighbours?")
    read = script.retrieve(one, two)
    script.answer("I do not know.", script.assemble(one, two))
    script.flag("goodies", message)
    blames(script.verdict(), "not_retrieved", read.key)


def test_another_length_of_time_is_wrong_whatever_numbers_stand_beside_it() -> None:
    script = Script()
    message, version = script.remember("The hike took us two hours and it was stunning.")
    script.ask("How long did the hike take?")
    script.reply("The hike took five hours (said on 2 April 2025)", version)
    script.flag("Two hours", message)
    assert script.verdict().stage == "response"


def test_a_record_with_another_length_of_time_is_an_older_version_not_a_carrier() -> None:
    script = Script()
    _, old = script.remember("The hike took five hours (said on 2 April 2025)")
    message = script.say("The hike took us two hours, in fact.")
    (fact,) = script.extract(message, "The hike took two hours (said on 4 August 2025)")
    script.decide(fact, "UPDATE", old)
    new = script.update(old, "The hike took two hours (said on 4 August 2025)", fact)
    script.ask("How long did the hike take?")
    read = script.retrieve(old)
    script.answer("The hike took five hours.", script.assemble(old))
    script.flag("Two hours", message)
    script.day(25, "reader")
    script.retrieve(new)
    blames(script.verdict(), "stale_retrieved", read.key)
