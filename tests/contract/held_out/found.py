"""Found: the search that should have brought the record."""

from __future__ import annotations

from memtrace_otel import semconv
from tests.contract.held_out.registry import scenario
from tests.contract.held_out.story import Expected, Story, blame


@scenario("Nothing was searched in the answer's turn, though its numbers run without a gap.")
def not_searched(s: Story) -> Expected:
    s.day(1)
    told = s.learn("I parked the van on level P4.")
    s.ask("On which level did I park the van?", 3)
    answer = s.answer("I cannot know that.")
    s.flag("level P4", told.message)
    return blame("not_searched", answer)


@scenario("The model has a search tool; this time its first call went straight to the reply.")
def not_searched_by_the_model_with_tools(s: Story) -> Expected:
    s.day(1)
    told = s.learn("My podcast is called Night Ferry.")
    s.ask("What is my podcast called?", 3)
    probe = s.value(semconv.KIND_QUERY, "podcast name")
    s.step("answer", inputs=[s.query], outputs=[probe])
    s.retrieve(told.record, query=probe)
    s.answer("It is called Night Ferry.", told.record)
    s.ask("What is my podcast called, please?", 4)
    answer = s.answer("Your podcast has no name yet.")
    s.flag("Night Ferry", told.message)
    return blame("not_searched", answer)


@scenario("A filter of the search hid the record.")
def filtered_out(s: Story) -> Expected:
    s.day(1)
    told = s.learn("The invoice for the roof was 7200 euros.")
    s.day(2)
    other = s.learn("The roof was repaired by Dachwerk.")
    turn = s.turn(
        "How much was the invoice for the roof?",
        "I do not know the amount.",
        other.record,
        dropped=[[told.record, None, "filter"]],
    )
    s.flag("7200 euros", told.message)
    return blame("wrong_scope", turn.retrieve)


@scenario("The search ran in another user's graph and brought that user's record.")
def searched_for_another_user(s: Story) -> Expected:
    s.day(1)
    told = s.learn("My seat is 14C on the train to Lyon.")
    other = "user:someone-else"
    s.day(2)
    s.add(graph=other)
    message = s.hear("My seat is 2A on the train to Lyon.", graph=other)
    fact = s.extract(message, "Seat is 2A on the train to Lyon", graph=other)
    theirs = s.create("Seat is 2A on the train to Lyon", fact, graph=other)
    s.ask("Which seat do I have on the train to Lyon?", 5)
    found = s.retrieve(theirs, graph=other)
    prompt = s.assemble(theirs)
    s.answer("You have seat 2A.", prompt)
    s.flag("14C", told.message)
    return blame("wrong_scope", found)


@scenario("The rewrite dropped the name of the medicine, and the search missed it.")
def rewrite_lost_the_subject(s: Story) -> Expected:
    s.day(1)
    told = s.learn("Dad takes lisinopril at 7 in the morning.")
    s.day(2)
    other = s.learn("The coffee machine starts at 6 in the morning.")
    s.ask("When does Dad take his lisinopril?", 6)
    short = s.value(semconv.KIND_QUERY, "morning routine schedule")
    rewrite = s.step("rewrite", inputs=[s.query], outputs=[short])
    s.retrieve(other.record, query=short)
    prompt = s.assemble(other.record)
    s.answer("I do not know.", prompt)
    s.flag("at 7 in the morning", told.message)
    return blame("bad_query", rewrite, first_wrong=short)


@scenario("The model's tool call turned last week into a filter for another month.")
def last_week_became_a_wrong_filter(s: Story) -> Expected:
    s.day(15)  # Tuesday, 17 March
    told = s.learn("I met Priya from the design agency.")
    s.day(16)
    other = s.learn("I met the window cleaner.")
    s.ask("Which agency person did I meet last week?", 22)  # 24 March
    query = s.value(semconv.KIND_QUERY, "people met between 2026-01-05 and 2026-01-11")
    chat = s.step("answer", inputs=[s.query], outputs=[query])
    s.retrieve(other.record, query=query)
    s.answer("You met nobody from an agency.", other.record)
    s.flag("Priya", told.message)
    return blame("bad_query", chat)


@scenario("The record existed, and the search never considered it.")
def never_a_candidate(s: Story) -> Expected:
    s.day(1)
    told = s.learn("Grandpa's recipe uses smoked paprika.")
    s.day(2)
    other = s.learn("Grandpa was a carpenter.")
    turn = s.turn("Which spice does Grandpa's recipe use?", "I do not know.", other.record)
    s.flag("smoked paprika", told.message)
    return blame("not_retrieved", turn.retrieve, last_right=told.record)


@scenario("A candidate under the threshold of the search.")
def below_the_threshold(s: Story) -> Expected:
    s.day(1)
    told = s.learn("Das Passwort für den Gast-Account lautet Kirschbaum.")
    s.day(2)
    other = s.learn("Der Gast-Account wurde im Januar angelegt.")
    turn = s.turn(
        "Wie lautet das Passwort für den Gast-Account?",
        "Das ist mir nicht bekannt.",
        other.record,
        dropped=[[told.record, 0.29, "threshold", 2]],
        limits={"k": 5, "threshold": 0.3},
    )
    s.flag("Kirschbaum", told.message)
    return blame("ranked_out", turn.retrieve, last_right=told.record)


@scenario("The reranking moved it from place 1 to below the cut (P5).")
def reranked_below_the_cut(s: Story) -> Expected:
    s.day(1)
    told = s.learn("The tent pegs are in the grey crate.")
    s.day(2)
    one = s.learn("The tent is green.")
    s.day(3)
    two = s.learn("The grey crate is heavy.")
    s.ask("Where are the tent pegs?", 9)
    s.retrieve(told.record, one.record, two.record)
    rerank = s.step(
        "rerank",
        inputs=[s.query, told.record, one.record, two.record],
        delivered=[one.record, two.record],
        scores=[0.8, 0.7],
        score_kind="cross_encoder",
        dropped=[[told.record, 0.2, "rerank", 3]],
        limits={"k": 2},
    )
    prompt = s.assemble(one.record, two.record)
    s.answer("I do not know where they are.", prompt)
    s.flag("in the grey crate", told.message)
    return blame("ranked_out", rerank)


@scenario("The search had already cut it; the reranking never saw it (P5).")
def cut_before_the_reranking(s: Story) -> Expected:
    s.day(1)
    told = s.learn("The bike's frame number is WTU 114.")
    s.day(2)
    one = s.learn("The bike is orange.")
    s.day(3)
    two = s.learn("The frame of the mirror is oak.")
    s.ask("What is the frame number of the bike?", 9)
    found = s.retrieve(
        one.record, two.record, dropped=[[told.record, 0.31, "limit", 31]], limits={"k": 2}
    )
    s.step(
        "rerank",
        inputs=[s.query, one.record, two.record],
        delivered=[one.record],
        dropped=[[two.record, 0.1, "rerank", 2]],
        limits={"k": 1},
    )
    prompt = s.assemble(one.record)
    s.answer("I do not know the frame number.", prompt)
    s.flag("WTU 114", told.message)
    return blame("ranked_out", found)


@scenario("One of three records of a list was cut at the limit.")
def one_record_of_a_list_cut(s: Story) -> Expected:
    told = []
    for day, text in enumerate(
        ("Nadia speaks Polish.", "Nadia speaks Swahili.", "Nadia speaks Dutch.")
    ):
        s.day(day)
        told.append(s.learn(text))
    turn = s.turn(
        "Which languages does Nadia speak?",
        "Nadia speaks Polish and Swahili.",
        told[0].record,
        told[1].record,
        dropped=[[told[2].record, 0.5, "limit", 3]],
    )
    s.flag("Polish, Swahili and Dutch", *[each.message for each in told])
    return blame("ranked_out", turn.retrieve, last_right=told[2].record)


@scenario("A cache returned the old version; the next read has the new one.")
def stale_from_a_cache(s: Story) -> Expected:
    s.day(1)
    old = s.learn("The boat leaves from pier 9.")
    s.day(3)
    _, message = s.say("The boat leaves from pier 12, they changed it.")
    fact = s.extract(message, "The boat leaves from pier 12")
    s.decide((fact, "UPDATE", old.record))
    new = s.update(old.record, "The boat leaves from pier 12", fact)
    turn = s.turn("Which pier does the boat leave from?", "From pier 9.", old.record, day=4)
    s.day(5, "reader")
    s.retrieve(new)
    s.flag("pier 12", message, on=turn.answer)
    return blame("stale_retrieved", turn.retrieve, last_right=new, first_wrong=old.record)


@scenario("An old version was delivered, and no later read ever delivers the new one.")
def stale_for_ever(s: Story) -> Expected:
    s.day(1)
    old = s.learn("The boat leaves from pier 9.")
    s.day(3)
    _, message = s.say("The boat leaves from pier 12, they changed it.")
    fact = s.extract(message, "The boat leaves from pier 12")
    s.decide((fact, "UPDATE", old.record))
    write = s.update(old.record, "The boat leaves from pier 12", fact)
    turn = s.turn("Which pier does the boat leave from?", "From pier 9.", old.record, day=4)
    s.day(5, "reader")
    s.retrieve(old.record)
    s.flag("pier 12", message, on=turn.answer)
    return blame("not_stored", write)


@scenario("A delivered version that nobody was seen to write, and that is no old version.")
def unseen_writer(s: Story) -> Expected:
    s.day(1)
    told = s.learn("The alarm code of the shop is 5512.")
    id = told.record.ref.partition(":")[2].rpartition("@")[0]
    unknown = s.value(semconv.KIND_MEMORY, "The alarm code of the shop is 9004", id)
    s.turn("What is the alarm code of the shop?", "It is 9004.", unknown)
    s.flag("5512", told.message)
    return blame("insufficient_evidence", missing=("unseen_writer",))
