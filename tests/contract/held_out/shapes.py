"""What real telemetry looks like: gaps, no content, plain scripts, late flags."""

from __future__ import annotations

from memtrace_otel import semconv
from tests.contract.held_out.registry import scenario
from tests.contract.held_out.story import Expected, Story, blame


@scenario("A number is missing exactly where the record would have been written.")
def gap_where_the_write_would_be(s: Story) -> Expected:
    s.day(1)
    other = s.learn("The sauna is in the basement.")
    s.day(2)
    _, message = s.say("The sauna heats up in 40 minutes.")
    fact = s.extract(message, "The sauna heats up in 40 minutes")
    s.decide((fact, "ADD", None))
    s.lose()
    s.day(3)
    s.learn("The pool is closed.")
    s.turn("How long does the sauna take to heat up?", "I do not know.", other.record)
    s.flag("40 minutes", message)
    return blame("insufficient_evidence", missing=("gap",))


@scenario("Numbers are missing where the extraction would be: no omission may be claimed.")
def gap_where_the_extraction_would_be(s: Story) -> Expected:
    s.day(1)
    other = s.learn("The ferry crosses twice a day.")
    s.day(2)
    _, message = s.say("The last ferry leaves at 18:20.")
    s.lose(3)
    s.day(3)
    s.learn("Ferries are loud.")
    s.turn("When does the last ferry leave?", "I do not know.", other.record)
    s.flag("18:20", message)
    return blame("insufficient_evidence", missing=("gap",))


@scenario("Without content an omission cannot be told from a fact in other words.")
def omission_without_content(s: Story) -> Expected:
    s.captured = False
    s.day(1)
    _, message = s.say("My shoe size is 44.")
    extract = s.extract(message, "User talked about shoes")
    s.decide((extract, "ADD", None))
    record = s.create("User talked about shoes", extract)
    s.turn("What is my shoe size?", "I do not know.", record)
    s.flag("44", message)
    return blame("insufficient_evidence", missing=("no_content",))


@scenario("Without content the structure still shows which record was cut at the limit.")
def ranked_out_without_content(s: Story) -> Expected:
    s.captured = False
    s.day(1)
    told = s.learn("My shoe size is 44.")
    s.day(2)
    other = s.learn("I like red socks.")
    turn = s.turn(
        "What is my shoe size?",
        "I do not know.",
        other.record,
        dropped=[[told.record, 0.4, "limit", 2]],
    )
    s.flag("44", told.message)
    return blame(("ranked_out", "insufficient_evidence"), turn.retrieve)


@scenario("Without content the structure still shows a superseded record, whose author decided.")
def deleted_without_content(s: Story) -> Expected:
    s.captured = False
    s.day(1)
    told = s.learn("The wine is stored at 13 degrees.")
    s.day(3)
    delete = s.delete(told.record)
    s.day(4)
    other = s.learn("The cellar has a new door.")
    s.turn("At what temperature is the wine stored?", "I do not know.", other.record)
    s.flag("13 degrees", told.message)
    return blame(("wrongly_deleted", "insufficient_evidence"), delete)


@scenario("The message was cut on the way: absence of words in it proves nothing.")
def message_was_cut(s: Story) -> Expected:
    s.day(1)
    id = "chat/long"
    shortened = s.value(semconv.KIND_MESSAGE, "Minutes of the board meeting: first we", id)
    s.add(shortened)
    s.step("ingest", outputs=[shortened], roles={shortened: "user"}, cut=[shortened])
    extract = s.extract(shortened, "The board met")
    s.decide((extract, "ADD", None))
    record = s.create("The board met", extract)
    s.turn("Who was elected treasurer by the board?", "I do not know.", record)
    s.flag("Ulrike", shortened)
    return blame("insufficient_evidence", missing=("cut",))


@scenario("One day off, and the moment from which tomorrow counts is only assumed.")
def one_day_off_with_an_unknown_clock(s: Story) -> Expected:
    s.day(2.61)  # 4 March, 23:38 UTC
    _, message = s.say("The plumber comes tomorrow.", dated=False)
    extract = s.extract(message, "The plumber comes on 6 March 2026")
    s.decide((extract, "ADD", None))
    record = s.create("The plumber comes on 6 March 2026", extract)
    s.turn("When did the plumber come?", "On 6 March 2026.", record, day=30)
    s.flag("5 March 2026", message)
    return blame("insufficient_evidence", missing=("clock",))


@scenario("A plain script: every operation is a trace of its own.")
def plain_script_without_enclosing_trace(s: Story) -> Expected:
    s.day(1)
    told = s.learn("The beehives stand behind the orchard.")
    s.day(2)
    other = s.learn("The beehives were painted yellow.")
    s.day(5, "script")
    s.query = s.value(semconv.KIND_QUERY, "Where do the beehives stand?")
    found = s.retrieve(other.record, dropped=[[told.record, 0.3, "limit", 2]], limits={"k": 1})
    s.day(5.0001, "script")
    s.answer(
        "I only know that they are yellow.",
        other.record,
        **{"from": {other.record.ref: f"{found.trace_id}-{found.span_id}"}},
    )
    s.flag("behind the orchard", told.message)
    return blame("ranked_out", found)


@scenario("The flag came later, as a span of its own that names the conversation's trace.")
def flagged_later_by_a_span(s: Story) -> Expected:
    s.day(1)
    told = s.learn("The cottage key hangs under the third flowerpot.")
    turn = s.turn("Where does the cottage key hang?", "It hangs by the front door.", told.record)
    s.day(21, "support")
    s.step(
        "flag",
        counted=False,
        attributes={
            semconv.MEMTRACE_FLAG_TRACE_ID: turn.answer.trace_id,
            semconv.MEMTRACE_EXPECTED: "under the third flowerpot",
            semconv.MEMTRACE_FLAG_SOURCE: "user",
        },
    )
    return blame("ignored_context", turn.answer)


@scenario("No evidence is named: the message is found by its words, the loss by structure.")
def evidence_has_to_be_found(s: Story) -> Expected:
    s.day(1)
    for text in ("The hedge needs cutting.", "The mower is electric."):
        s.learn(text)
    s.day(2)
    told = s.learn("The chainsaw chain has 52 links.")
    s.day(4)
    delete = s.delete(told.record)
    s.day(5)
    other = s.learn("The chainsaw is red.")
    s.turn("How many links does the chainsaw chain have?", "I do not know.", other.record)
    s.flag("52 links")
    return blame("wrongly_deleted", delete)


@scenario("A document and a user's record are both readable: the document's chunk was cut.")
def ranked_out_of_a_shared_corpus(s: Story) -> Expected:
    corpus = "corpus:contracts"
    s.day(1, "librarian")
    told = s.value(semconv.KIND_DOCUMENT, "Either party may terminate with 90 days' notice.", "c/4")
    s.step("ingest", outputs=[told], roles={told: "document"}, graph=corpus)
    s.day(2)
    mine = s.learn("I want to terminate the contract this year.")
    s.ask("How many days' notice does termination need?", 6)
    found = s.retrieve(
        mine.record, dropped=[[told, 0.44, "limit", 2]], limits={"k": 1}, reads=[corpus]
    )
    prompt = s.assemble(mine.record)
    s.answer("The contract does not say.", prompt)
    s.flag("90 days", told)
    return blame("ranked_out", found)


@scenario("The model answered with an added detail: right, so no memory fault.")
def right_with_more_words(s: Story) -> Expected:
    s.day(1)
    told = s.learn("The bakery closes at 2 pm on Saturdays.")
    s.turn(
        "When does the bakery close on Saturdays?",
        "On Saturdays the bakery closes at 14:00, so better go in the morning.",
        told.record,
    )
    s.flag("2 pm", told.message)
    return blame(("bad_judge", "insufficient_evidence"))
