"""Why something was recalled for an answer, or was not: each case there is, in sentences."""

from __future__ import annotations

from memtrace_collector.graph import receipt
from memtrace_collector.graph.facts import Dropped, Flag
from memtrace_collector.graph.loader import load_case
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.questions.recalled import Recalled, Told, recalled
from tests.memtrace_collector.attribution.scripts import Script

RECORD = "mem:stub:1"


def ask(script: Script, what: str) -> Recalled:
    """Ask of the last answer."""
    store = script.store()
    answer = [item for item in script.operations if item.step == "answer"][-1]
    case = load_case(store, answer, Flag(graph_id=script.graph))
    return recalled(Lookups(store), case, receipt.receipt(case), what)


def only(script: Script, what: str) -> Told:
    (told,) = ask(script, what).told
    return told


def text(told: Told) -> str:
    return " ".join(line.text for line in told.says)


def read_by(script: Script, *delivered: str, dropped: tuple[Dropped, ...] = ()) -> Script:
    script.ask("Who cuts her hair?")
    script.retrieve(*delivered, scores=(0.9,) * len(delivered), dropped=dropped)
    script.answer("Enzo does.", script.assemble(*delivered[:1]))
    return script


def test_what_went_into_the_prompt_says_its_rank_and_whether_the_reply_shows_it() -> None:
    script = Script()
    _, version = script.remember("Enzo cuts her hair.")
    told = only(read_by(script, version), RECORD)
    assert (told.outcome, told.graph_id, told.ref) == ("injected", script.graph, version)
    assert text(told).startswith(
        "search_memory returned it at rank 1 of 1 with 0.900, and it went into the prompt; "
        "the reply has words of it."
    )
    assert told.says[0].operation == script.last("retrieve")


def test_what_was_returned_and_left_out_of_the_prompt_says_so() -> None:
    script = Script()
    _, other = script.remember("She likes tea.", record="2")
    _, version = script.remember("Enzo cuts her hair.")
    told = only(read_by(script, other, version), RECORD)
    assert told.outcome == "returned"
    assert "at rank 2 of 2 with 0.900, but it did not go into the prompt" in text(told)


def test_what_was_cut_says_why_and_what_beat_it() -> None:
    script = Script()
    _, other = script.remember("She likes tea.", record="2")
    _, version = script.remember("Enzo cuts her hair.")
    told = only(read_by(script, other, dropped=(Dropped(version, 0.31, "limit", 14),)), RECORD)
    assert (told.outcome, told.beaten_by) == ("cut", (other,))
    assert "at rank 14 with 0.310; it was cut: it was beyond the limit of results (k=1)" in text(
        told
    )
    assert f"the last that it returned is {other} with 0.900" in text(told)


def test_what_was_stored_and_never_considered_says_both() -> None:
    script = Script()
    _, other = script.remember("She likes tea.", record="2")
    script.remember("Enzo cuts her hair.")
    told = only(read_by(script, other), "Enzo cuts her hair")
    assert (told.record, told.outcome) == (RECORD, "not_considered")
    assert "It was v1 then, written 2026-01-01T" in text(told)
    assert "search_memory did not consider it" in text(told)


def test_a_search_of_another_graph_is_no_search_that_missed_it() -> None:
    script = Script()
    script.remember("Enzo cuts her hair.")
    script.ask("Who cuts her hair?")
    other = script.retrieve("doc:handbook:1@0123456789ab", graph="corpus:handbook")
    script.answer("Nobody.", script.assemble())
    told = only(script, RECORD)
    assert told.outcome == "not_searched"
    assert "search_memory searched corpus:handbook, where it is not." in text(told)
    assert "No search of user:test was recorded" in text(told)
    assert other.key in {line.operation for line in told.says}


def test_an_overwritten_text_is_told_from_what_the_record_held_then() -> None:
    script = Script()
    _, other = script.remember("She likes tea.", record="2")
    _, first = script.remember("Enzo cuts her hair.")
    second = script.update(first, "Ugo repairs the roof.")
    replaced = script.last("update")
    says = "What was asked about is the text of v1, which update_memory replaced 2026-01-01T"
    for delivered in (other, second):
        told = only(read_by(script, delivered), "Enzo cuts her hair")
        assert (told.outcome, told.ref) == ("replaced", second)
        assert told.says[0].text.startswith(says)
        assert told.says[0].operation == replaced


def test_what_was_deleted_before_or_written_after_says_when() -> None:
    script = Script()
    _, version = script.remember("Enzo cuts her hair.")
    script.delete(version)
    read_by(script)
    script.day(40)
    script.remember("Her barber moved to Oslo.", record="3")
    gone, later = only(script, RECORD), only(script, "mem:stub:3")
    assert (gone.outcome, later.outcome) == ("deleted", "later")
    assert "It had been deleted before this answer, 2026-01-01T" in text(gone)
    assert "It was first written after this answer, 2026-02-10T" in text(later)


def test_another_owners_record_is_told_with_its_graph() -> None:
    script = Script()
    script.remember("She likes tea.", record="2")
    script.graph = "user:other"
    script.remember("Enzo cuts her hair.", record="9")
    script.graph = "user:test"
    read_by(script)
    by_name, by_text = only(script, "mem:stub:9"), only(script, "Enzo cuts her hair")
    assert by_name.outcome == by_text.outcome == "foreign"
    assert by_name.graph_id == "user:other"
    assert "It belongs to another graph, user:other." in text(by_name)


def test_what_was_said_and_never_stored_goes_as_far_as_it_came() -> None:
    script = Script()
    message = script.say("Enzo cuts my hair on Fridays.")
    read_by(script)
    told = only(script, "cuts my hair on Fridays")
    assert (told.outcome, told.ref) == ("never_stored", message)
    assert "no fact, and no record" in text(told)
    assert only(script, message).outcome == "never_stored"
    script.extract(message, "Enzo cuts her hair.")
    assert "a fact was made from it, and no record" in text(only(script, message))


def test_what_was_said_and_stored_in_other_words_leads_to_its_record() -> None:
    script = Script()
    message, _ = script.remember("Fridays I see Enzo for my haircut.", "Barber: Enzo.")
    read_by(script)
    said, told = ask(script, "Fridays I see Enzo for my haircut").told
    assert (said.ref, said.outcome) == (message, "left_out")
    assert text(said).endswith("What was stored from it does not have these words:")
    assert (told.record, told.outcome) == (RECORD, "not_searched")
    assert f"{RECORD} was made from it." in text(told)
    assert only(script, message) == told


def test_what_nobody_recorded_is_told_with_what_comes_nearest() -> None:
    script = Script()
    script.remember("Enzo cuts her hair.")
    read_by(script)
    nothing = ask(script, "zebra")
    assert (nothing.told, nothing.says) == (
        (),
        "nothing that was recorded for this owner matches 'zebra'",
    )
    near = ask(script, "Enzo painted the whole cathedral yellow")
    assert near.says.endswith("; the nearest that is stored:")
    assert [told.record for told in near.told] == [RECORD]


def test_a_record_nobody_wrote_says_that() -> None:
    script = Script()
    read_by(script)
    told = only(script, "mem:stub:404")
    assert (told.outcome, told.graph_id) == ("unwritten", "")
    assert only(script, "msg:none@0123456789ab").outcome == "unwritten"
