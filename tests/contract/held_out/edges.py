"""Corner cases of structure: errors in reads, several rerankings, partial evidence."""

from __future__ import annotations

from memtrace_otel import semconv
from tests.contract.held_out.registry import scenario
from tests.contract.held_out.story import Expected, Story, blame


@scenario("The search itself failed and brought nothing.")
def search_failed(s: Story) -> Expected:
    s.day(1)
    told = s.learn("The spare fuse is taped to the panel.")
    s.ask("Where is the spare fuse?", 4)
    found = s.retrieve(error="TimeoutError")
    prompt = s.assemble(text="(nothing)")
    s.answer("I do not know.", prompt)
    s.flag("taped to the panel", told.message)
    return blame("not_retrieved", found)


@scenario("The first reranking moved it from 2 to 5; a later one only applied the cut (P5).")
def moved_by_the_first_of_two_rerankings(s: Story) -> Expected:
    records = []
    texts = (
        "The sourdough starter is named Gisela.",
        "The sourdough starter is fed at 21:00.",
        "The sourdough loaf bakes for 45 minutes.",
        "The sourdough flour comes from the mill.",
        "The sourdough basket is made of rattan.",
    )
    for day, text in enumerate(texts):
        s.day(day)
        records.append(s.learn(text))
    told = records[1]
    all_refs = [each.record for each in records]
    s.ask("When is the sourdough starter fed?", 9)
    s.retrieve(*all_refs)
    order = [all_refs[0], all_refs[2], all_refs[3], all_refs[4], all_refs[1]]
    first = s.step(
        "rerank",
        inputs=[s.query, *all_refs],
        delivered=order,
        score_kind="cross_encoder",
        limits={"k": 5},
    )
    s.step(
        "rerank",
        inputs=[s.query, *order],
        delivered=order[:3],
        dropped=[[order[3], 0.2, "limit", 4], [order[4], 0.1, "limit", 5]],
        limits={"k": 3},
    )
    prompt = s.assemble(*order[:3])
    s.answer("I do not know when it is fed.", prompt)
    s.flag("21:00", told.message)
    return blame("ranked_out", first)


@scenario("It was already beyond the cut before the reranking, which has it in dropped (P5).")
def already_beyond_the_cut(s: Story) -> Expected:
    records = []
    for day, text in enumerate(
        ("The loft has a skylight.", "The loft is insulated.", "The loft key is under the mat.")
    ):
        s.day(day)
        records.append(s.learn(text))
    refs = [each.record for each in records]
    s.ask("Where is the loft key?", 9)
    s.retrieve(*refs)
    rerank = s.step(
        "rerank",
        inputs=[s.query, *refs],
        delivered=[refs[1]],
        dropped=[[refs[0], 0.3, "rerank", 2], [refs[2], 0.2, "rerank", 3]],
        limits={"k": 1},
    )
    prompt = s.assemble(refs[1])
    s.answer("I do not know.", prompt)
    s.flag("under the mat", records[2].message)
    return blame("ranked_out", rerank)


@scenario("A forgetting job dropped the record and wrote nothing in its place.")
def forgotten_by_a_job(s: Story) -> Expected:
    s.day(1)
    told = s.learn("The notary's office closes at noon on Fridays.")
    s.day(9, "janitor")
    gone = f"{told.record.ref.rpartition('@')[0]}@deleted"
    job = s.step("consolidate", inputs=[told.record], outputs=[gone], supersedes=[told.record])
    s.day(11)
    other = s.learn("The notary is called Frau Ebner.")
    s.turn("When does the notary's office close on Fridays?", "I do not know.", other.record)
    s.flag("at noon", told.message)
    return blame("compacted_away", job)


@scenario("The update stored an extracted fact as it was; no decision is visible.")
def overwritten_without_a_decision(s: Story) -> Expected:
    s.day(1)
    right = s.learn("The Mira contract runs until 2029.")
    s.day(4)
    _, message = s.say("The Nova contract runs until 2026.")
    fact = s.extract(message, "The Nova contract runs until 2026")
    update = s.update(right.record, "The Nova contract runs until 2026", fact)
    s.turn("Until when does the Mira contract run?", "I only know of Nova.", update)
    s.flag("2029", right.message)
    return blame("overwritten", update)


@scenario("Race with a text that an extraction made: the write that had not read the other.")
def race_with_an_extracted_text(s: Story) -> Expected:
    s.day(1)
    base = s.learn("Fridge rota: nobody this week.")
    s.day(2, "kitchen")
    _, one = s.say("Fridge rota: Amir this week.")
    s.update(
        base.record, "Fridge rota: Amir this week.", s.extract(one, "Fridge rota: Amir this week.")
    )
    s.day(2.00001, "hall")
    _, two = s.say("Fridge rota: please label food.")
    fact = s.extract(two, "Fridge rota: please label food.")
    late = s.update(base.record, "Fridge rota: please label food.", fact)
    s.turn("Who is on the fridge rota this week?", "Nobody is named.", late)
    s.flag("Amir", one)
    return blame("overwritten", late, mechanism="race")


@scenario("A system that only adds: the new value was no candidate, nothing stands aside.")
def additive_and_not_retrieved(s: Story) -> Expected:
    s.day(1)
    _, first = s.say("The sailing lesson is on Saturdays.")
    old = s.create(
        "Sailing lesson is on Saturdays", s.extract(first, "Sailing lesson is on Saturdays")
    )
    s.day(8)
    _, second = s.say("The sailing lesson is on Sundays from now on.")
    new = s.extract(second, "Sailing lesson is on Sundays from now on")
    s.create("Sailing lesson is on Sundays from now on", new)
    s.day(9)
    s.say("Thanks.")
    turn = s.turn("On which day is the sailing lesson?", "On Saturdays.", old)
    s.flag("Sundays", second)
    return blame("not_retrieved", turn.retrieve)


@scenario("The transcription was stored without its second half; the recording had it.")
def transcript_lost_a_half(s: Story) -> Expected:
    s.day(1)
    raw = s.value(
        semconv.KIND_MESSAGE,
        "Voice note: water the ferns. Also the fern fertiliser is in the blue tin.",
        "voice/1",
    )
    kept = s.value(semconv.KIND_MESSAGE, "Water the ferns.", "chat/voice-1")
    s.add(kept)
    ingest = s.step("ingest", inputs=[raw], outputs=[kept], roles={kept: "user"})
    fact = s.extract(kept, "User wants the ferns watered")
    record = s.create("User wants the ferns watered", fact)
    s.turn("Where is the fern fertiliser?", "I do not know.", record)
    s.flag("in the blue tin", raw)
    return blame("lost_at_ingest", ingest)


@scenario("The prompt has what was said, not of whom: the speaker was lost in the assembly.")
def shown_without_its_subject(s: Story) -> Expected:
    s.day(1)
    told = s.learn("Henrik is afraid of elevators.")
    s.ask("Who is afraid of elevators?", 4)
    s.retrieve(told.record)
    prompt = s.assemble(told.record, text="* is afraid of elevators")
    s.answer("You are.", prompt)
    s.flag("Henrik", told.message)
    return blame("garbled_in_context", prompt)


@scenario("The record was put into the prompt only up to a length.")
def shown_only_in_part(s: Story) -> Expected:
    s.day(1)
    told = s.learn("For the migration we agreed on three steps, and the rollback owner is Ximena.")
    s.ask("Who is the rollback owner of the migration?", 4)
    s.retrieve(told.record)
    prompt = s.assemble(told.record, text="* For the migration we agreed on three steps, and")
    s.answer("The notes do not name one.", prompt)
    s.flag("Ximena", told.message)
    return blame("garbled_in_context", prompt)


@scenario("The search ran in a default graph, where nothing of this user is.")
def searched_in_a_default_graph(s: Story) -> Expected:
    s.day(1)
    told = s.learn("My bicycle lock opens with 3847.")
    s.ask("What opens my bicycle lock?", 4)
    found = s.retrieve(graph="user:default")
    prompt = s.assemble(text="(nothing)")
    s.answer("I do not know.", prompt)
    s.flag("3847", told.message)
    return blame("wrong_scope", found)


@scenario("Evidence is named without its version and joins by its record.")
def evidence_without_version(s: Story) -> Expected:
    s.day(1)
    told = s.learn("The co-op meets in the red barn.")
    s.day(3)
    delete = s.delete(told.record)
    s.day(4)
    other = s.learn("The co-op has forty members.")
    s.turn("Where does the co-op meet?", "I do not know.", other.record)
    s.flag("in the red barn", f"{told.message.ref.rpartition('@')[0]}@?")
    return blame("wrongly_deleted", delete)


@scenario("The evidence is not in the store: silence about it proves nothing.")
def evidence_unknown_to_the_store(s: Story) -> Expected:
    s.day(1)
    other = s.learn("The caravan has a new awning.")
    s.turn("What is the caravan's number plate?", "I do not know.", other.record)
    s.flag("KX 221", "msg:archive/99@0123456789ab")
    return blame("insufficient_evidence", missing=("retention",))


@scenario("Two searches in one turn; the second one brought it, the reply ignored it.")
def second_search_brought_it(s: Story) -> Expected:
    s.day(1)
    other = s.learn("The theatre has a balcony.")
    s.day(2)
    told = s.learn("Our theatre seats are in row M.")
    s.ask("In which row are our theatre seats?", 5)
    s.retrieve(other.record)
    s.retrieve(told.record)
    prompt = s.assemble(other.record, told.record)
    answer = s.answer("They are in row C.", prompt)
    s.flag("row M", told.message)
    return blame("ignored_context", answer)


@scenario("A thumbs-down that says no more; the reply is neither of the two records shown.")
def flag_without_expectation(s: Story) -> Expected:
    s.day(1)
    one = s.learn("The cabin has a wood stove.")
    s.day(2)
    two = s.learn("The cabin has a gas heater.")
    s.turn("What does the cabin have?", "A fireplace.", one.record, two.record)
    s.flag(None, source="user")
    return blame(("insufficient_evidence", "ignored_context"))


@scenario("The message was read straight into the prompt: no extraction is missing.")
def buffer_of_raw_messages(s: Story) -> Expected:
    s.day(1, "agent")
    told = s.hear("Our table at Nonna's is booked for 20:15.")
    buffer = s.value(
        semconv.KIND_MEMORY, "user: Our table at Nonna's is booked for 20:15.", "house:buffer"
    )
    s.step("create", inputs=[told], outputs=[buffer])
    s.ask("For what time is our table at Nonna's booked?", 1.5, "agent")
    s.retrieve(buffer)
    prompt = s.assemble(buffer)
    answer = s.answer("It is booked for 19:00.", prompt)
    s.flag("20:15", told)
    return blame("ignored_context", answer)


@scenario("mem0 1.x: a batch of facts, decisions without facts, one of them left out.")
def left_out_of_a_batch_decision(s: Story) -> Expected:
    s.day(1)
    s.add()
    one = s.hear("Our daughter Pia plays the oboe.")
    two = s.hear("Pia's oboe teacher is Mr Sand.")
    extract = s.extract([one, two], "Daughter Pia plays the oboe", "Pia's oboe teacher is Mr Sand")
    decide = s.decide((None, "ADD", None), inputs=list(extract.refs))
    record = s.create("Daughter Pia plays the oboe", extract.refs[0])
    s.day(2)
    s.say("Good night.")
    s.turn("Who is Pia's oboe teacher?", "I do not know.", record)
    s.flag("Mr Sand", two)
    return blame("not_stored", decide)


@scenario("The assistant's answer was right; an update of tags alone made a new version, no loss.")
def only_the_tags_changed(s: Story) -> Expected:
    s.day(1)
    told = s.learn("The sound engineer is called Bo.")
    s.day(2)
    tagged = s.update(told.record, s.text(told.record), told.record, state={"tags": ["band"]})
    turn = s.turn("What is the sound engineer called?", "I do not know.", tagged)
    s.flag("Bo", told.message)
    return blame("wrong_abstention", turn.answer)
