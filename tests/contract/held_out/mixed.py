"""Near misses: what looks like a fault at one hop and belongs to another, or to none."""

from __future__ import annotations

from memtrace_otel import semconv
from tests.contract.held_out.registry import scenario
from tests.contract.held_out.story import Expected, Story, blame


@scenario("Numbers are missing elsewhere; what the reply did with its prompt needs none of them.")
def gap_elsewhere(s: Story) -> Expected:
    s.day(1)
    told = s.learn("The kiln reaches 1260 degrees.")
    s.day(2)
    s.lose(4)
    s.learn("The kiln was serviced.")
    turn = s.turn("How hot does the kiln get?", "It reaches 980 degrees.", told.record)
    s.flag("1260 degrees", told.message)
    return blame("ignored_context", turn.answer)


@scenario("Message, fact and question share no word but the city; the fact still descends.")
def nothing_shared_but_the_value(s: Story) -> Expected:
    s.day(1)
    _, message = s.say("Packing boxes, we are off to Porto for good!")
    fact = s.extract(message, "User lives in Porto")
    s.decide((fact, "ADD", None))
    record = s.create("User lives in Porto", fact)
    s.day(3)
    delete = s.delete(record)
    s.day(4)
    other = s.learn("I like custard tarts.")
    s.turn("Where is my home?", "I do not know.", other.record)
    s.flag("Porto", message)
    return blame("wrongly_deleted", delete)


@scenario("Only today's date stands in the prompt, not the day on which last Saturday was said.")
def shown_with_todays_date_only(s: Story) -> Expected:
    s.day(7)  # Monday, 9 March
    told = s.learn("The regatta took place last Saturday.")
    s.ask("When did the regatta take place?", 30)  # Wednesday, 1 April
    s.retrieve(told.record)
    prompt = s.assemble(
        told.record, text="Today is 2026-04-01.\n* The regatta took place last Saturday."
    )
    s.answer("On 28 March 2026.", prompt)
    s.flag("7 March 2026", told.message)
    return blame("garbled_in_context", prompt)


@scenario("The line shows its own date, so that last Saturday could be counted; it was not.")
def miscounted_from_a_dated_line(s: Story) -> Expected:
    s.day(7)  # Monday, 9 March
    told = s.learn("The regatta took place last Saturday.")
    s.ask("When did the regatta take place?", 30)
    s.retrieve(told.record)
    prompt = s.assemble(told.record, text="* [2026-03-09] The regatta took place last Saturday.")
    answer = s.answer("On 9 March 2026.", prompt)
    s.flag("7 March 2026", told.message)
    return blame("wrong_reasoning", answer, aspect="time")


@scenario("The update added to the record and kept what was needed: no fault of its own.")
def harmless_update(s: Story) -> Expected:
    s.day(1)
    told = s.learn("The allotment is number 27.")
    s.day(3)
    _, message = s.say("The allotment has a new shed.")
    fact = s.extract(message, "Allotment has a new shed")
    s.decide((fact, "UPDATE", told.record))
    both = s.update(told.record, "The allotment is number 27 and has a new shed", fact, told.record)
    turn = s.turn("Which number is the allotment?", "It is number 72.", both)
    s.flag("27", told.message)
    return blame("ignored_context", turn.answer)


@scenario("The reply names all that was expected, and one more that is true.")
def more_items_than_expected(s: Story) -> Expected:
    s.day(1)
    told = s.learn("I play the harp, the lute and the fiddle.")
    s.turn(
        "Which instruments do I play?", "You play the harp, the lute and the fiddle.", told.record
    )
    s.flag("harp and lute", told.message)
    return blame(("bad_judge", "insufficient_evidence"))


@scenario("A hedge before the right answer is no refusal.")
def hedged_but_right(s: Story) -> Expected:
    s.day(1)
    told = s.learn("My fencing coach is Valeria.")
    s.turn(
        "Who is my fencing coach?",
        "I am not entirely sure, but I think it is Valeria.",
        told.record,
    )
    s.flag("Valeria", told.message)
    return blame(("bad_judge", "insufficient_evidence"))


@scenario("A first extraction made nothing of it, a second one did; the search then cut it.")
def extracted_the_second_time(s: Story) -> Expected:
    s.day(1)
    _, message = s.say("The tax adviser's fee is 260 euros.")
    s.extract(message)
    fact = s.extract(message, "Tax adviser's fee is 260 euros")
    s.decide((fact, "ADD", None))
    record = s.create("Tax adviser's fee is 260 euros", fact)
    s.day(2)
    other = s.learn("The tax adviser moved to Kiel.")
    turn = s.turn(
        "What is the tax adviser's fee?",
        "I do not know.",
        other.record,
        dropped=[[record, 0.4, "limit", 2]],
    )
    s.flag("260 euros", message)
    return blame("ranked_out", turn.retrieve)


@scenario("The user corrects with something that memory had and did not find.")
def user_corrects_with_what_was_known(s: Story) -> Expected:
    s.day(1)
    s.learn("We named the van Bluebell.")
    s.day(2)
    other = s.learn("The van needs new tyres.")
    turn = s.turn("What did we name the van?", "You named it Rusty.", other.record)
    s.flag("Bluebell", source="user")
    return blame("not_retrieved", turn.retrieve)


@scenario("The handbook's page was replaced rightly, and the new page was in the prompt.")
def reindexed_document(s: Story) -> Expected:
    book = "corpus:rules"
    s.day(1, "librarian")
    old = s.value(semconv.KIND_DOCUMENT, "Quiet hours begin at 23:00.", "rules/4")
    s.step("ingest", outputs=[old], roles={old: "document"}, graph=book)
    s.day(5, "librarian")
    new = s.value(semconv.KIND_DOCUMENT, "Quiet hours begin at 22:00.", "rules/4")
    s.step("update", inputs=[], outputs=[new], supersedes=[old], graph=book)
    s.ask("When do quiet hours begin?", 20)
    s.retrieve(new, reads=[book])
    prompt = s.assemble(new)
    answer = s.answer("I cannot find that.", prompt)
    s.flag("22:00", new)
    return blame("wrong_abstention", answer)


@scenario("A stale page came from the cache, another read has the new one.")
def stale_document(s: Story) -> Expected:
    book = "corpus:house-rules"
    s.day(1, "librarian")
    old = s.value(semconv.KIND_DOCUMENT, "Quiet hours begin at 23:00.", "rules/4")
    s.step("ingest", outputs=[old], roles={old: "document"}, graph=book)
    s.day(5, "librarian")
    new = s.value(semconv.KIND_DOCUMENT, "Quiet hours begin at 22:00.", "rules/4")
    s.step("update", inputs=[], outputs=[new], supersedes=[old], graph=book)
    turn = s.turn("When do quiet hours begin?", "At 23:00.", old, reads=[book])
    s.day(21, "reader")
    s.retrieve(new, reads=[book])
    s.flag("22:00", new, on=turn.answer)
    return blame("stale_retrieved", turn.retrieve)


@scenario("What the assistant promised is needed; its message was never made a fact.")
def promise_of_the_assistant_omitted(s: Story) -> Expected:
    s.day(1)
    s.add()
    asked = s.hear("Can you pick a playlist for the hike?")
    said = s.hear("Sure, I chose the playlist Mountain Echoes.", role="assistant")
    extract = s.extract([asked, said], "User goes on a hike")
    s.decide((extract, "ADD", None))
    record = s.create("User goes on a hike", extract)
    s.turn("Which playlist did you choose for the hike?", "I do not recall one.", record)
    s.flag("Mountain Echoes", said)
    return blame("omission", extract)


@scenario("The wife's allergy was shown, the user's own was asked for and never said.")
def never_said_of_oneself(s: Story) -> Expected:
    s.day(1)
    told = s.learn("My wife is allergic to shellfish.", "User's wife is allergic to shellfish")
    turn = s.turn("What am I allergic to?", "You are allergic to shellfish.", told.record)
    s.flag("")
    return blame("distracted", turn.answer)


@scenario("The delete was chosen with the wrong target, in a batch with a right one.")
def wrong_target_in_a_batch(s: Story) -> Expected:
    s.day(1)
    keep = s.learn("The piano lesson is at 16:00.")
    s.day(2)
    drop = s.learn("The swimming lesson is at 10:00.")
    s.day(3)
    _, message = s.say("No more swimming lessons for me.")
    fact = s.extract(message, "User stopped swimming lessons")
    decide = s.decide((fact, "DELETE", keep.record), (fact, "DELETE", drop.record))
    s.delete(keep.record)
    s.delete(drop.record)
    s.day(4)
    other = s.learn("I got new sheet music.")
    s.turn("At what time is the piano lesson?", "I do not know.", other.record)
    s.flag("16:00", keep.message)
    return blame("wrongly_deleted", decide)
