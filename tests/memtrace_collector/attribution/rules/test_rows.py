"""Each row of the decision table holds for its cases, in several wordings."""

from __future__ import annotations

import pytest

from memtrace_collector.attribution.verdict import Verdict
from memtrace_collector.graph.facts import Decision, Dropped, OperationKey
from tests.memtrace_collector.attribution.scripts import Script


def blames(verdict: Verdict, error_type: str, *operations: OperationKey) -> None:
    assert (verdict.error_type, verdict.missing) == (error_type, ()), verdict.explanation
    assert tuple(each.operation for each in verdict.decisive) == operations


def abstains(verdict: Verdict, *missing: str) -> None:
    assert (verdict.stage, verdict.missing) == ("unknown", missing), verdict.explanation
    assert verdict.decisive == ()


# sanity


@pytest.mark.parametrize(
    ("question", "expected", "reply"),
    [
        ("Where does my aunt teach?", "Leeds", "Your aunt teaches in Leeds."),
        ("How many rabbits do I keep?", "four", "You keep 4 rabbits."),
        ("When is the exam?", "12 March 2026", "It takes place on March 12th."),
        ("What did I order?", "ramen and gyoza", "Gyoza as well as ramen."),
        (
            "Am I allowed shellfish?",
            "No, the user is allergic to shellfish",
            "No: you have a shellfish allergy.",
        ),
        ("Which pet do I have?", "", "I do not have that information."),
    ],
)
def test_bad_judge_when_the_reply_is_right_in_other_words(
    question: str, expected: str, reply: str
) -> None:
    script = Script()
    message, version = script.remember("Something about rabbits and noodles and exams.")
    script.ask(question)
    script.reply(reply, version)
    script.flag(expected, message)
    assert script.verdict().error_type == "bad_judge"
    assert script.verdict().decisive == ()


def test_bad_judge_names_the_recorded_judge() -> None:
    script = Script()
    message, version = script.remember("My cello teacher is Ms Okafor.")
    script.ask("Who teaches me the cello?")
    answer = script.reply("Ms Okafor teaches you.", version)
    script.add("judge", inputs=answer.outputs)
    script.flag("Okafor", message, source="evaluator")
    blames(script.verdict(), "bad_judge", script.last("judge"))


@pytest.mark.parametrize(
    ("said", "question", "expected", "reply"),
    [
        (
            "I switched to the night shift in the bakery.",
            "Which shift do I work?",
            "morning",
            "You work the night shift.",
        ),
        (
            "Our dentist is Dr. Palmer.",
            "Who is our dentist?",
            "Dr. Quigley",
            "Dr. Palmer is your dentist.",
        ),
    ],
)
def test_bad_reference_when_the_evidence_supports_the_reply(
    said: str, question: str, expected: str, reply: str
) -> None:
    script = Script()
    message, version = script.remember(said)
    script.ask(question)
    script.reply(reply, version)
    script.flag(expected, message)
    blames(script.verdict(), "bad_reference")
    script.flag(expected, message, source="user")
    assert script.verdict().error_type != "bad_reference"


# told


def test_never_told_when_nothing_said_has_it() -> None:
    for said, question, expected in [
        ("I bought a red bicycle.", "Which language does my tutor speak?", "Basque"),
        ("The roof leaks again.", "What is my locker code?", "7731"),
    ]:
        script = Script()
        _, version = script.remember(said)
        script.ask(question)
        script.reply("I do not know.", version)
        script.flag(expected, source="user")
        blames(script.verdict(), "never_told")


def test_wrong_graph_when_only_another_owner_was_told() -> None:
    for said, question, expected in [
        ("My locker code is 7731.", "What is my locker code?", "7731"),
        ("Our meeting room is called Neptune.", "Which meeting room do we use?", "Neptune"),
    ]:
        script = Script()
        _, version = script.remember("The printer is on the second floor.")
        script.day(1)
        script.graph = "user:other"
        message = script.ref("msg", said, "x/1")
        entered = script.add("ingest", outputs=(message,))
        script.graph = "user:test"
        script.ask(question)
        script.reply("I do not know.", version)
        script.flag(expected, message)
        blames(script.verdict(), "wrong_graph", entered.key)


def test_lost_at_ingest_when_the_chunks_leave_it_out() -> None:
    for said, kept, question, expected in [
        (
            "Parking is free. The gate closes at 22:15.",
            "Parking is free.",
            "When does the gate close?",
            "22:15",
        ),
        ("Bring boots. Lunch costs 14 euros.", "Bring boots.", "What does lunch cost?", "14 euros"),
    ]:
        script = Script().day(0)
        page = script.ref("msg", said, "page")
        script.add("ingest", outputs=(page,), roles={page: "document"})
        chunk = script.ref("doc", kept, "page/0")
        chunking = script.add("ingest", inputs=(page,), outputs=(chunk,))
        script.ask(question)
        script.reply("I do not know.", chunk)
        script.flag(expected, page)
        blames(script.verdict(), "lost_at_ingest", chunking.key)


def test_unrelated_when_the_answers_own_call_failed() -> None:
    script = Script()
    message, version = script.remember("My yoga class is on Thursdays.")
    script.ask("On which weekday is my yoga class?")
    script.retrieve(version)
    script.answer("", script.assemble(version), error_type="RateLimitError")
    script.flag("Thursday", message)
    blames(script.verdict(), "unrelated")


# first stored


@pytest.mark.parametrize(
    ("said", "kept", "question", "expected"),
    [
        (
            "The soup was fine. By the way, my blood type is AB.",
            "User liked the soup",
            "What is my blood type?",
            "AB",
        ),
        (
            "I hate coriander. Nice weather!",
            "User enjoys the weather",
            "Which herb should you leave out?",
            "coriander",
        ),
    ],
)
def test_omission_blames_the_extraction_that_read_it(
    said: str, kept: str, question: str, expected: str
) -> None:
    script = Script()
    message = script.say(said)
    (fact,) = script.extract(message, kept)
    version = script.create("1", kept, fact)
    script.ask(question)
    script.reply("I do not know.", version)
    script.flag(expected, message)
    verdict = script.verdict()
    blames(verdict, "omission", script.last("extract"))
    assert verdict.decisive[0].last_right == message


def test_omission_in_a_batch_without_edges() -> None:
    script = Script()
    first = script.say("I adopted a greyhound named Zephyr.")
    second = script.ref("msg", "The greyhound park opens at nine.", "m/b")
    script.add("ingest", outputs=(second,))
    (fact,) = script.extract([first, second], "The greyhound park opens at nine")
    version = script.create("1", "The greyhound park opens at nine", fact)
    script.ask("What is my greyhound called?")
    script.reply("I do not know.", version)
    script.flag("Zephyr", first)
    blames(script.verdict(), "omission", script.last("extract"))


def test_omission_said_twice_is_the_earliest_and_the_other_stands_in_also() -> None:
    script = Script()
    for day in (1, 4):
        script.day(day)
        message = script.say("My passport expires in 2031.")
        script.extract(message)
    script.ask("When does my passport expire?")
    script.reply("I do not know.")
    script.flag("2031")
    verdict = script.verdict()
    blames(verdict, "omission", script.first("extract"))
    assert [each.operation for each in verdict.also] == [script.last("extract")]


def test_omission_by_the_model_that_saves_by_tool_calls() -> None:
    script = Script().day(0)
    message = script.ref("msg", "Please remember that my badge number is 5521.", "m/0")
    script.add("ingest", outputs=(message,))
    chat = script.add("answer", inputs=(message,), outputs=(script.ref("ans", "Sure!"),))
    script.ask("What is my badge number?")
    script.reply("I do not know.")
    script.flag("5521", message)
    blames(script.verdict(), "omission", chat.key)


@pytest.mark.parametrize(
    ("said", "kept", "question", "expected", "aspect"),
    [
        (
            "I visited Oslo last month.",
            "User visited Oslo in January 2026",
            "When did I visit Oslo?",
            "December 2025",
            "time",
        ),
        (
            "We signed the lease two days ago.",
            "The lease was signed on 1 January 2026",
            "When did we sign the lease?",
            "30 December 2025",
            "time",
        ),
        (
            "My cousin owes me 40 dollars.",
            "User's cousin owes the user 14 dollars",
            "How much does my cousin owe me?",
            "40",
            "number",
        ),
        (
            "My parrot Kiwi is green.",
            "User's parrot Mango is green",
            "What is my green parrot called?",
            "Kiwi",
            "item",
        ),
    ],
)
def test_distortion_blames_the_extraction_and_says_what_changed(
    said: str, kept: str, question: str, expected: str, aspect: str
) -> None:
    script = Script()
    message = script.say(said)
    (fact,) = script.extract(message, kept)
    script.decide(fact, "ADD")
    version = script.create("1", kept, fact)
    script.ask(question)
    script.reply(kept, version)
    script.flag(expected, message)
    verdict = script.verdict()
    blames(verdict, "distortion", script.last("extract"))
    assert verdict.aspect == aspect
    assert verdict.decisive[0].first_wrong == fact


def test_distortion_by_a_decision_that_writes_its_own_text() -> None:
    script = Script()
    message = script.say("I am training for the Berlin triathlon.")
    (fact,) = script.extract(message, "User is training for the Berlin triathlon")
    wrong = script.ref("fact", "User is training for the Vienna triathlon")
    decide = script.add(
        "decide", inputs=(fact,), outputs=(wrong,), decisions=(Decision(None, "ADD"),)
    )
    version = script.create("1", "User is training for the Vienna triathlon", wrong)
    script.ask("Which triathlon am I training for?")
    script.reply("The Vienna triathlon.", version)
    script.flag("Berlin", message)
    blames(script.verdict(), "distortion", decide.key)


def test_a_kept_relative_phrase_is_no_distortion() -> None:
    script = Script().day(5)
    message, version = script.remember(
        "I ran a marathon yesterday.", "User ran a marathon yesterday"
    )
    script.ask("When did I run a marathon?")
    script.retrieve(version)
    shown = script.assemble(version, text="2026-01-06: User ran a marathon yesterday")
    script.answer("On 6 January 2026.", shown)
    script.flag("5 January 2026", message)
    assert script.verdict().stage == "response"


def test_invented_when_no_input_supports_the_fact() -> None:
    for said, made, question, reply in [
        ("I like long walks.", "User owns a sailing boat", "What do I own?", "A sailing boat."),
        ("Dinner was late.", "User plays the oboe", "Which instrument do I play?", "The oboe."),
    ]:
        script = Script()
        message = script.say(said)
        (fact,) = script.extract(message, made)
        version = script.create("1", made, fact)
        script.ask(question)
        script.reply(reply, version)
        script.flag("")
        verdict = script.verdict()
        blames(verdict, "invented", script.last("extract"))
        assert verdict.decisive[0].first_wrong == fact


def test_invented_by_the_earlier_answer_that_a_fact_repeats() -> None:
    script = Script()
    _, version = script.remember("I like long walks.")
    script.ask("What do I do on Sundays?", day=2)
    script.retrieve(version)
    earlier = script.answer("You play the bassoon.", script.assemble(version))
    script.day(3)
    message = script.ref("msg", "You play the bassoon.", "a/1")
    script.add("ingest", inputs=earlier.outputs, outputs=(message,))
    (fact,) = script.extract(message, "User plays the bassoon")
    invented = script.create("2", "User plays the bassoon", fact)
    script.ask("Which instrument do I play?")
    script.reply("The bassoon.", invented)
    script.flag("")
    blames(script.verdict(), "invented", earlier.key)


@pytest.mark.parametrize("action", ["NOOP", "NONE"])
def test_not_stored_blames_the_decision_that_chose_not_to(action: str) -> None:
    script = Script()
    message = script.say("My landlord is Mr Tanaka.")
    (fact,) = script.extract(message, "User's landlord is Mr Tanaka")
    script.decide(fact, action)
    script.ask("Who is my landlord?")
    script.reply("I do not know.")
    script.flag("Mr Tanaka", message)
    verdict = script.verdict()
    blames(verdict, "not_stored", script.last("decide"))
    assert verdict.decisive[0].last_right == fact


def test_not_stored_blames_the_write_that_failed() -> None:
    script = Script()
    message = script.say("The boiler was serviced by Hartmann.")
    (fact,) = script.extract(message, "The boiler was serviced by Hartmann")
    script.decide(fact, "ADD")
    write = script.add("create", inputs=(fact,), error_type="ConnectionError")
    script.ask("Who serviced the boiler?")
    script.reply("I do not know.")
    script.flag("Hartmann", message)
    verdict = script.verdict()
    blames(verdict, "not_stored", write.key)
    assert verdict.mechanism == "write_failed"


def test_not_stored_blames_the_add_that_swallowed_the_write() -> None:
    script = Script()
    message = script.say("I sing in the Harmonia choir.")
    (fact,) = script.extract(message, "User sings in the Harmonia choir")
    script.decide(fact, "ADD")
    swallowed = script.last("add")
    script.day(2)
    script.say("Thanks!")
    script.ask("Which choir do I sing in?")
    script.reply("I do not know.")
    script.flag("Harmonia", message)
    blames(script.verdict(), "not_stored", swallowed)


def test_a_write_that_may_still_arrive_is_not_called_swallowed() -> None:
    script = Script()
    message = script.say("I sing in the Harmonia choir.")
    (fact,) = script.extract(message, "User sings in the Harmonia choir")
    script.decide(fact, "ADD")
    script.ask("Which choir do I sing in?")
    script.reply("I do not know.")
    script.flag("Harmonia", message)
    verdict = script.verdict()
    assert (verdict.error_type, verdict.missing) == ("insufficient_evidence", ("gap",))


def test_a_decision_to_do_nothing_is_right_when_a_record_carries_it() -> None:
    script = Script()
    message, version = script.remember("My landlord is Mr Tanaka.")
    script.day(3)
    again = script.say("Mr Tanaka is my landlord, as I said.")
    (fact,) = script.extract(again, "User's landlord is Mr Tanaka")
    script.decide(fact, "NOOP")
    script.ask("Who is my landlord?")
    script.reply("Mr Petrov is.", version)
    script.flag("Mr Tanaka", message)
    assert script.verdict().stage == "response"


# kept


def _replaced(authored: bool) -> tuple[Script, str, str]:
    script = Script()
    message, version = script.remember("My gym is FitHaus.", "User's gym is FitHaus")
    script.day(4)
    other = script.say("My neighbour trains at PowerDen.")
    (fact,) = script.extract(other, "User's neighbour trains at PowerDen")
    if authored:
        text = script.ref("fact", "User's gym is PowerDen")
        script.add(
            "decide",
            inputs=(fact,),
            outputs=(text,),
            decisions=(Decision(None, "UPDATE", version),),
        )
        new = script.update(version, "User's gym is PowerDen", text)
    else:
        script.decide(fact, "UPDATE", version)
        new = script.update(version, "User's neighbour trains at PowerDen", fact)
    script.ask("Which gym do I go to?")
    script.reply("PowerDen.", new)
    script.flag("FitHaus", message)
    return script, version, new


def test_overwritten_by_an_extracted_fact_blames_the_decision() -> None:
    script, version, new = _replaced(authored=False)
    verdict = script.verdict()
    blames(verdict, "overwritten", script.last("decide"))
    assert (verdict.decisive[0].last_right, verdict.decisive[0].first_wrong) == (version, new)


def test_merged_wrong_by_newly_written_text_blames_its_author() -> None:
    script, version, _ = _replaced(authored=True)
    verdict = script.verdict()
    blames(verdict, "merged_wrong", script.last("decide"))
    assert verdict.decisive[0].last_right == version
    assert str(verdict.decisive[0].first_wrong).startswith("fact:")


def test_merged_wrong_without_a_decision_blames_the_update() -> None:
    script = Script()
    message, version = script.remember("The wifi password is tulip88.")
    script.day(2)
    new = script.update(version, "The wifi has a password", version)
    script.ask("What is the wifi password?")
    script.reply("I do not know.", new)
    script.flag("tulip88", message)
    blames(script.verdict(), "merged_wrong", script.last("update"))


def test_overwritten_in_a_race_blames_the_write_that_had_not_read_the_other() -> None:
    script = Script()
    base = script.remember("I work at Nordwind.", "User works at Nordwind")[1]
    script.day(2)
    message = script.say("My desk is number 12 now.")
    (fact,) = script.extract(message, "User's desk is number 12")
    right = script.update(base, "User's desk is number 12", fact)
    script.day(2, "second writer")
    other = script.say("I got a new headset.")
    (headset,) = script.extract(other, "User got a new headset")
    wrong = script.update(base, "User got a new headset", headset)
    script.ask("Which desk number do I have?")
    script.reply("I do not know.", wrong)
    script.flag("12", message)
    verdict = script.verdict()
    blames(verdict, "overwritten", script.last("update"))
    assert verdict.mechanism == "race"
    assert verdict.decisive[0].last_right == right


def test_compacted_away_in_a_summary() -> None:
    for said, summary, question, expected in [
        ("My seat is 14C.", "User flies often", "Which seat do I have?", "14C"),
        (
            "Grandpa turned 90 in Graz.",
            "There was a birthday",
            "Where did grandpa turn 90?",
            "Graz",
        ),
    ]:
        script = Script()
        message, version = script.remember(said)
        script.day(3)
        short = script.ref("mem", summary, "stub:1")
        script.add("consolidate", inputs=(version,), outputs=(short,), supersedes=(version,))
        script.ask(question)
        script.reply("I do not know.", short)
        script.flag(expected, message)
        blames(script.verdict(), "compacted_away", script.last("consolidate"))


def test_wrongly_deleted_blames_the_decision_that_chose_it() -> None:
    script = Script()
    message, version = script.remember("My barber is Enzo.")
    script.day(2)
    other = script.say("I no longer eat meat.")
    (fact,) = script.extract(other, "User no longer eats meat")
    script.decide(None, "DELETE", version, inputs=(fact,))
    script.delete(version)
    script.ask("Who is my barber?")
    script.reply("I do not know.")
    script.flag("Enzo", message)
    blames(script.verdict(), "wrongly_deleted", script.last("decide"))


def test_wrongly_deleted_directly_blames_the_delete() -> None:
    script = Script()
    message, version = script.remember("The spare key is under the blue pot.")
    script.day(2)
    delete = script.delete(version)
    script.ask("Where is the spare key?")
    script.reply("I do not know.")
    script.flag("under the blue pot", message)
    blames(script.verdict(), "wrongly_deleted", delete.key)


def test_said_twice_the_last_carrier_is_decisive_and_the_omission_stands_aside() -> None:
    script = Script()
    first, version = script.remember("My blood type is AB.")
    script.day(3)
    second = script.say("As I said, my blood type is AB.")
    script.extract(second)
    script.day(5)
    delete = script.delete(version)
    script.ask("What is my blood type?")
    script.reply("I do not know.")
    script.flag("AB", first, second)
    verdict = script.verdict()
    blames(verdict, "wrongly_deleted", delete.key)
    assert [each.error_type for each in verdict.also] == ["omission"]


def test_expired_blames_the_write_that_set_the_expiry() -> None:
    script = Script()
    message, version = script.remember("My therapist is Dr. Lund.")
    script.ask("Who is my therapist?")
    script.retrieve(dropped=[Dropped(version, None, "expired")])
    script.answer("I do not know.", script.assemble())
    script.flag("Dr. Lund", message)
    verdict = script.verdict()
    blames(verdict, "wrongly_deleted", script.last("create"))
    assert verdict.mechanism == "expired"


def test_not_updated_when_both_values_were_delivered_in_a_system_that_supersedes() -> None:
    script = Script()
    _, old = script.remember("My phone provider is Telco.", "User's phone provider is Telco")
    script.day(5)
    message = script.say("My phone provider is Zoomfon from today.")
    (fact,) = script.extract(message, "User's phone provider is Zoomfon")
    script.decide(fact, "ADD", shown=(old,))
    new = script.create("2", "User's phone provider is Zoomfon", fact)
    script.ask("Who is my phone provider?")
    script.reply("Your phone provider is Telco.", old, new)
    script.flag("Zoomfon", message)
    verdict = script.verdict()
    blames(verdict, "not_updated", script.last("decide"))
    assert verdict.decisive[0].first_wrong == old


def test_conflicting_values_shown_with_dates_are_the_models_to_judge() -> None:
    script = Script()
    _, old = script.remember("My phone provider is Telco.", "User's phone provider is Telco")
    script.day(5)
    message, new = script.remember(
        "My phone provider is Zoomfon.", "User's phone provider is Zoomfon", "2"
    )
    script.ask("Who is my phone provider?")
    script.retrieve(old, new)
    text = "2026-01-01 User's phone provider is Telco\n2026-01-06 User's phone provider is Zoomfon"
    answer = script.answer("Your phone provider is Telco.", script.assemble(old, new, text=text))
    script.flag("Zoomfon", message)
    blames(script.verdict(), "wrong_reasoning", answer.key)


def test_conflicting_values_in_a_system_that_only_adds_are_the_models_with_the_write_aside() -> (
    None
):
    script = Script()
    first = script.say("My phone provider is Telco.")
    (telco,) = script.extract(first, "Telco is the provider")
    old = script.create("1", "User's phone provider is Telco", telco)
    script.day(5)
    message = script.say("My phone provider is Zoomfon from today.")
    (fact,) = script.extract(message, "User's phone provider is Zoomfon")
    new = script.create("2", "User's phone provider is Zoomfon", fact)
    script.ask("Who is my phone provider?")
    answer = script.reply("Your phone provider is Telco.", old, new)
    script.flag("Zoomfon", message)
    verdict = script.verdict()
    blames(verdict, "wrong_reasoning", answer.key)
    (aside,) = verdict.also
    assert (aside.operation, aside.error_type) == (script.last("create"), "not_updated")


def test_not_deleted_when_asked_to_forget() -> None:
    script = Script()
    _, version = script.remember("My ex is called Robin.")
    script.day(2)
    request = script.say("Please forget everything about my ex.")
    (fact,) = script.extract(request, "User wants the ex forgotten")
    script.decide(fact, "NOOP")
    script.ask("What is my ex called?")
    script.reply("Robin.", version)
    script.flag("", request)
    verdict = script.verdict()
    blames(verdict, "not_deleted", script.last("decide"))
    assert verdict.decisive[0].first_wrong == version


# found


def test_not_searched_blames_the_answer() -> None:
    script = Script()
    message, _ = script.remember("My bus line is the 63.")
    script.ask("Which bus line do I take?")
    answer = script.answer("I do not know.")
    script.flag("63", message)
    blames(script.verdict(), "not_searched", answer.key)


def test_wrong_scope_when_a_filter_hid_it() -> None:
    script = Script()
    message, version = script.remember("My tailor is Moreau.")
    script.ask("Who is my tailor?")
    read = script.retrieve(dropped=[Dropped(version, None, "filter")])
    script.answer("I do not know.", script.assemble())
    script.flag("Moreau", message)
    blames(script.verdict(), "wrong_scope", read.key)


def test_bad_query_blames_the_rewrite_that_lost_the_users_words() -> None:
    script = Script()
    message, _ = script.remember("My sourdough starter is named Gustav.")
    _, other = script.remember("User likes cake", record="2")
    script.ask("What is my sourdough starter named?")
    short = script.ref("query", "favourite cake recipes")
    rewrite = script.add("rewrite", inputs=(script.query,), outputs=(short,))
    script.retrieve(other, inputs=(short,))
    script.answer("I do not know.", script.assemble(other))
    script.flag("Gustav", message)
    verdict = script.verdict()
    blames(verdict, "bad_query", rewrite.key)
    assert verdict.decisive[0].first_wrong == short


def _moved(later: bool) -> tuple[Script, OperationKey, OperationKey]:
    script = Script()
    _, old = script.remember("My office is in room 4.", "User's office is in room 4")
    script.day(3)
    message = script.say("They moved my office to room 9.")
    (fact,) = script.extract(message, "User's office is in room 9")
    script.decide(fact, "UPDATE", old)
    new = script.update(old, "User's office is in room 9", fact)
    script.ask("In which room is my office?")
    read = script.retrieve(old)
    script.answer("Room 4.", script.assemble(old))
    script.flag("room 9", message)
    script.day(25, "reader")
    script.retrieve(new if later else old)
    return script, read.key, script.first("update")


def test_stale_retrieved_when_a_later_read_delivers_the_new_version() -> None:
    script, read, _ = _moved(later=True)
    blames(script.verdict(), "stale_retrieved", read)


def test_a_version_that_no_read_ever_delivers_was_not_stored() -> None:
    script, _, write = _moved(later=False)
    blames(script.verdict(), "not_stored", write)


@pytest.mark.parametrize("reason", ["limit", "threshold"])
def test_ranked_out_blames_the_search_that_cut_it(reason: str) -> None:
    script = Script()
    message, version = script.remember("My vet is Dr. Osei.")
    _, other = script.remember("My vet bill was high.", record="2")
    script.ask("Who is my vet?")
    read = script.retrieve(other, dropped=[Dropped(version, 0.4, reason, 2)])
    script.answer("I do not know.", script.assemble(other))
    script.flag("Dr. Osei", message)
    blames(script.verdict(), "ranked_out", read.key)


def test_ranked_out_blames_the_reranking_that_moved_it_below_the_cut() -> None:
    script = Script()
    message, version = script.remember("My vet is Dr. Osei.")
    _, other = script.remember("My vet bill was high.", record="2")
    script.ask("Who is my vet?")
    script.retrieve(version, other)
    moved = script.add("rerank", inputs=(version, other), delivered=(other, version))
    script.add(
        "rerank",
        inputs=(other, version),
        delivered=(other,),
        limits={"k": 1},
        dropped=(Dropped(version, 0.1, "limit", 2),),
    )
    script.answer("I do not know.", script.assemble(other))
    script.flag("Dr. Osei", message)
    blames(script.verdict(), "ranked_out", moved.key)


def test_not_retrieved_blames_the_search_and_names_what_was_not_updated() -> None:
    script = Script()
    _, old = script.remember("My gym is FitHaus.", "User's gym is FitHaus")
    script.day(4)
    message, _ = script.remember("My gym is PowerDen now.", "User's gym is PowerDen", "2")
    script.ask("What is my gym?")
    read = script.retrieve(old)
    script.answer("FitHaus is your gym.", script.assemble(old))
    script.flag("PowerDen", message)
    verdict = script.verdict()
    blames(verdict, "not_retrieved", read.key)
    assert [each.error_type for each in verdict.also] == ["not_updated"]


# shown


def test_cut_from_context_blames_the_assembly() -> None:
    script = Script()
    message, version = script.remember("My pin is 8841.")
    _, other = script.remember("My bank is friendly.", record="2")
    script.ask("What is my pin?")
    script.retrieve(other, version)
    script.answer(
        "I do not know.", script.assemble(other, dropped=(Dropped(version, None, "budget"),))
    )
    script.flag("8841", message)
    blames(script.verdict(), "cut_from_context", script.last("assemble"))


def test_cut_from_an_inferred_prompt_blames_the_answer() -> None:
    script = Script()
    message, version = script.remember("My favourite painter is Klimt, by far.")
    _, other = script.remember("I went to the museum on a rainy day.", record="2")
    script.ask("Who is my favourite painter?")
    script.retrieve(other, version)
    answer = script.answer("I do not know.", other, inferred=(other,))
    script.flag("Klimt", message)
    verdict = script.verdict()
    blames(verdict, "cut_from_context", answer.key)
    assert "inferred" in verdict.basis


def test_a_prompt_in_which_nothing_was_found_proves_no_cut() -> None:
    script = Script()
    message, version = script.remember("My favourite painter is Klimt, by far.")
    script.ask("Who is my favourite painter?")
    script.retrieve(version)
    script.answer("I do not know.")
    script.flag("Klimt", message)
    abstains(script.verdict())


def test_garbled_in_context_blames_the_assembly() -> None:
    for said, shown, question, expected in [
        (
            "The code for the shed is 4410.",
            "The code for the shed is",
            "What is the code for the shed?",
            "4410",
        ),
        (
            "My niece Ada was born in Turku.",
            "My niece Ada was born in",
            "Where was my niece born?",
            "Turku",
        ),
    ]:
        script = Script()
        message, version = script.remember(said)
        script.ask(question)
        script.retrieve(version)
        script.answer("I do not know.", script.assemble(version, text=shown))
        script.flag(expected, message)
        blames(script.verdict(), "garbled_in_context", script.last("assemble"))


# used


@pytest.mark.parametrize(
    ("reply", "error_type"),
    [
        ("I'm sorry, I don't have any information about that.", "wrong_abstention"),
        ("You named it Tuscany.", "ignored_context"),
        ("It is named Pebble.", "distracted"),
    ],
)
def test_the_answer_is_to_blame_when_the_prompt_had_it(reply: str, error_type: str) -> None:
    script = Script()
    message, version = script.remember(
        "I named my boat Albatross.", "User's boat is named Albatross"
    )
    _, other = script.remember("My cat is Pebble.", "User's cat is Pebble", "2")
    script.ask("What is my boat named?")
    answer = script.reply(reply, version, other)
    script.flag("Albatross", message)
    blames(script.verdict(), error_type, answer.key)


def test_wrong_reasoning_when_the_right_item_is_used_wrongly() -> None:
    script = Script().day(8)
    message, version = script.remember("I moved in two weeks ago.", "User moved in two weeks ago")
    script.ask("When did I move in?")
    script.retrieve(version)
    shown = script.assemble(version, text="2026-01-09: User moved in two weeks ago")
    answer = script.answer("On 9 January 2026.", shown)
    script.flag("26 December 2025", message)
    verdict = script.verdict()
    blames(verdict, "wrong_reasoning", answer.key)
    assert verdict.aspect == "time"


def test_ignored_context_with_an_inferred_prompt_names_the_record() -> None:
    script = Script()
    message, version = script.remember("My driving instructor is Ms Varga.")
    script.ask("Who is my driving instructor?")
    script.retrieve(version)
    answer = script.answer("Mr Smith is.", version, inferred=(version,))
    script.flag("Ms Varga", message)
    verdict = script.verdict()
    blames(verdict, "ignored_context", answer.key)
    assert verdict.decisive[0].last_right == version


def test_hallucinated_when_it_should_have_declined() -> None:
    for question, reply in [
        ("Which car do I drive?", "A red Volvo."),
        ("Where was I born?", "In Trieste."),
    ]:
        script = Script()
        _, version = script.remember("I like tea.")
        script.ask(question)
        answer = script.reply(reply, version)
        script.flag("")
        blames(script.verdict(), "hallucinated", answer.key)


# no fault may be claimed


def test_a_gap_forbids_a_claim_of_absence() -> None:
    script = Script()
    message = script.say("My landlord is Mr Tanaka.")
    (fact,) = script.extract(message, "User's landlord is Mr Tanaka")
    script.decide(fact, "ADD")
    script.lose(2)
    script.day(2)
    script.say("Thanks!")
    script.ask("Who is my landlord?")
    script.reply("I do not know.")
    script.flag("Mr Tanaka", message)
    verdict = script.verdict()
    abstains(verdict, "gap")
    assert verdict.absence == "broken"


def test_a_gap_elsewhere_forbids_nothing_that_was_seen() -> None:
    script, _, _ = _replaced(authored=False)
    script.day(30, "unrelated process")
    script.lose(5)
    assert script.verdict().error_type == "overwritten"


def test_without_content_structure_still_decides() -> None:
    script = Script(captured=False)
    message, version = script.remember("My barber is Enzo.")
    script.day(2)
    delete = script.delete(version)
    script.ask("Who is my barber?")
    script.reply("I do not know.")
    script.flag("Enzo", message)
    verdict = script.verdict()
    blames(verdict, "wrongly_deleted", delete.key)
    assert verdict.basis == ("structure",)


def test_without_content_a_reply_is_not_judged() -> None:
    script = Script(captured=False)
    message, version = script.remember("My barber is Enzo.")
    script.ask("Who is my barber?")
    script.reply("Your barber is Enzo.", version)
    script.flag("Enzo", message)
    abstains(script.verdict(), "no_content")


def test_a_version_nobody_was_seen_to_write_is_not_called_stale() -> None:
    script = Script()
    message, _ = script.remember("My office is in room 4.", "User's office is in room 4")
    script.ask("In which room is my office?")
    unknown = script.ref("mem", "User's office is somewhere else", "stub:1")
    script.reply("Somewhere else.", unknown)
    script.flag("room 4", message)
    abstains(script.verdict(), "unseen_writer")


def test_a_day_off_with_an_assumed_clock_is_no_fault() -> None:
    script = Script().day(5)
    message = script.ref("msg", "I ran a marathon yesterday.", "m/1")
    script.add("ingest", outputs=(message,))
    (fact,) = script.extract(message, "User ran a marathon yesterday")
    version = script.create("1", "User ran a marathon yesterday", fact)
    script.ask("When did I run a marathon?")
    script.reply("On 4 January 2026.", version)
    script.flag("4 January 2026", message)
    assert script.verdict().stage in ("not_memory", "unknown")


@pytest.mark.parametrize("reply", ["You work at Acme.", "At Acme, as a nurse.", "Acme"])
def test_partly_or_fully_right_replies_are_never_blamed(reply: str) -> None:
    script = Script()
    message, version = script.remember("I work as a nurse at Acme in Cork.")
    script.day(2)
    script.delete(version)
    script.ask("Where do I work?")
    script.reply(reply)
    script.flag("as a nurse at Acme in Cork", message)
    assert script.verdict().stage in ("not_memory", "unknown")


def test_a_reply_from_nowhere_is_made_up_although_nobody_said_what_was_right() -> None:
    script = Script()
    _, version = script.remember("I like tea.")
    script.ask("Which car do I drive?")
    script.reply("A red Volvo.", version)
    script.flag(None, source="user")
    verdict = script.verdict()
    blames(verdict, "hallucinated", verdict.answer)
    assert verdict.score <= 0.6


def test_a_flag_without_expectation_is_judged_by_the_one_record_on_the_question() -> None:
    script = Script()
    script.remember("My car is a green Fiat.", "User drives a car: green Fiat")
    _, other = script.remember("I like tea.", record="2")
    script.ask("Which car do I drive?")
    read = script.retrieve(other)
    script.answer("I do not know.", script.assemble(other))
    script.flag(None, source="user")
    verdict = script.verdict()
    blames(verdict, "not_retrieved", read.key)
    assert verdict.score <= 0.6


def test_an_answer_alone_in_its_trace_proves_no_missing_search() -> None:
    script = Script()
    message, _ = script.remember("My bus line is the 63.")
    script.day(20, "reader")
    script.query = script.ref("query", "Which bus line do I take?")
    script.answer("I do not know.")
    script.flag("63", message)
    abstains(script.verdict())


def test_a_right_reply_in_other_common_words_is_not_called_ignoring() -> None:
    script = Script()
    message, version = script.remember("I relax with long walks along quiet rivers.")
    script.ask("How do I relax?")
    script.reply("Strolling beside peaceful streams.", version)
    script.flag("long walks along quiet rivers", message)
    abstains(script.verdict())


def test_evidence_that_is_not_in_the_store_is_no_proof_of_silence() -> None:
    script = Script()
    _, version = script.remember("I like tea.")
    script.ask("What is my locker code?")
    script.reply("I do not know.", version)
    script.flag("7731", "msg:elsewhere/9@0123456789ab")
    abstains(script.verdict(), "retention")


def test_many_turns_in_one_trace_are_told_apart() -> None:
    script = Script().day(1)
    message = script.ref("msg", "My vet is Dr. Osei. I like tea.", "m/1")
    script.add("ingest", outputs=(message,))
    vet, tea = script.extract(message, "User's vet is Dr. Osei", "User likes tea")
    version = script.create("1", "User's vet is Dr. Osei", vet)
    other = script.create("2", "User likes tea", tea)
    script.query = script.ref("query", "Tell me about my vet.")
    script.add("ingest", outputs=(script.query,))
    script.retrieve(version)
    script.answer("Dr. Osei is your vet.", script.assemble(version))
    script.query = script.ref("query", "Who is my vet?")
    script.add("ingest", outputs=(script.query,))
    read = script.retrieve(other)
    script.answer("I do not know.", script.assemble(other))
    script.flag("Dr. Osei", message)
    blames(script.verdict(), "not_retrieved", read.key)


def test_two_messages_that_say_it_together_blame_the_one_left_out() -> None:
    script = Script()
    first = script.say("My trip goes to Peru.")
    (fact,) = script.extract(first, "User's trip goes to Peru")
    version = script.create("1", "User's trip goes to Peru", fact)
    script.day(1)
    second = script.say("For that trip I booked the Quetzal lodge.")
    script.extract(second)
    script.ask("Where does my trip sleep?")
    script.reply("I do not know.", version)
    script.flag("Quetzal lodge, Peru", first, second)
    blames(script.verdict(), "omission", script.last("extract"))


# several items


def test_a_list_names_the_loss_of_each_missing_item() -> None:
    script = Script()
    first, one = script.remember("I play chess.", "User plays chess")
    script.day(1)
    second, _ = script.remember("I also play darts.", "User plays darts", "2")
    script.day(3)
    gone = script.delete(one)
    script.ask("Which games do I play?")
    read = script.retrieve()
    script.answer("None that I remember: I do not know.", script.assemble())
    script.flag("chess and darts", first, second)
    verdict = script.verdict()
    assert [(each.operation, each.error_type) for each in verdict.decisive] == [
        (gone.key, "wrongly_deleted"),
        (read.key, "not_retrieved"),
    ]


# a batch decision of mem0 1.x never says which fact it is about


def test_a_batch_decision_that_left_a_fact_out_chose_not_to_store_it() -> None:
    script = Script()
    message = script.say("I play chess. My coach is Ivanov.")
    facts = script.extract(
        message,
        "Plays chess",
        "Coach is Ivanov",
        edges=(),
    )
    decide = script.add(
        "decide",
        inputs=tuple(facts),
        outputs=(facts[0],),
        decisions=(Decision(None, "ADD"), Decision(None, "NOOP")),
    )
    version = script.create("1", "Plays chess", facts[0])
    script.ask("Who is my coach?")
    script.reply("I do not know.", version)
    script.flag("Ivanov", message)
    blames(script.verdict(), "not_stored", decide.key)


def test_a_message_stored_as_it_is_can_be_lost_later() -> None:
    script = Script()
    message = script.say("The alarm code is 9921.")
    version = script.create("1", "The alarm code is 9921.", message)
    script.day(2)
    gone = script.delete(version)
    script.ask("What is the alarm code?")
    script.reply("I do not know.")
    script.flag("9921", message)
    blames(script.verdict(), "wrongly_deleted", gone.key)
