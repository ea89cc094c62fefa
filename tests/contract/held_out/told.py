"""Sanity and told: what memory is not to blame for, and what never reached it."""

from __future__ import annotations

from memtrace_otel import semconv
from tests.contract.held_out.registry import scenario
from tests.contract.held_out.story import Expected, Story, blame


@scenario("The reply gives the expected day in another notation; nobody recorded a judge.")
def right_day_in_another_notation(s: Story) -> Expected:
    s.day(1)
    told = s.learn("The grant application is due on 14 May 2026.")
    s.turn("When is the grant application due?", "It is due on May 14th, 2026.", told.record)
    s.flag("14 May 2026", told.message)
    return blame("bad_judge")


@scenario("The reply is right in other words; the recorded judge called it wrong.")
def recorded_judge_is_wrong(s: Story) -> Expected:
    s.day(1)
    told = s.learn("I take my thyroid tablets twice a day.")
    turn = s.turn(
        "How often do I take my thyroid tablets?",
        "You take the tablets twice daily.",
        told.record,
    )
    judge = s.step("judge", inputs=[turn.answer])
    s.flag("twice a day", told.message, source="evaluator")
    return blame("bad_judge", judge)


@scenario("A right Spanish answer, shortened: no memory fault whatever the flag says.")
def right_answer_in_spanish(s: Story) -> Expected:
    s.day(1)
    told = s.learn("Tengo clase de cerámica los martes y los jueves.")
    s.turn("¿Qué días tengo clase de cerámica?", "Martes y jueves.", told.record)
    s.flag("los martes y los jueves", told.message)
    return blame(("bad_judge", "insufficient_evidence"))


@scenario("A right number written as a word: no memory fault.")
def right_number_as_a_word(s: Story) -> Expected:
    s.day(1)
    told = s.learn("We ordered 3 replacement filters for the pump.")
    s.turn("How many replacement filters did we order?", "Three of them.", told.record)
    s.flag("3", told.message)
    return blame(("bad_judge", "insufficient_evidence"))


@scenario("The system should have declined, and did; the flag is the judge's mistake.")
def declined_as_it_should(s: Story) -> Expected:
    s.day(1)
    told = s.learn("My hamster Pixel sleeps all day.")
    s.turn("What breed is my parrot?", "You have never mentioned a parrot.", told.record)
    s.flag("")
    return blame("bad_judge")


@scenario("The data set's expected city contradicts its own evidence, which the reply follows.")
def data_set_contradicts_its_evidence(s: Story) -> Expected:
    s.day(1)
    told = s.learn("My sister's wedding will be held in Graz.")
    s.turn("Where will my sister's wedding be held?", "It will be held in Graz.", told.record)
    s.flag("Linz", told.message)
    return blame("bad_reference")


@scenario("A user corrects with what memory could not know: never told, no bad reference.")
def user_corrects_with_news(s: Story) -> Expected:
    s.day(1)
    told = s.learn("My sister's wedding will be held in Graz.")
    s.turn("Where will my sister's wedding be held?", "It will be held in Graz.", told.record)
    s.flag("Linz", source="user")
    return blame("never_told")


@scenario("Nobody ever said what the landlord is called.")
def never_said(s: Story) -> Expected:
    s.day(1)
    told = s.learn("My landlord raised the rent again.")
    s.turn("What is my landlord's name?", "Your landlord is called Mr Okafor.", told.record)
    s.flag("Ms Brandt")
    return blame("never_told")


@scenario("The evidence itself was said only a day after the answer.")
def said_too_late(s: Story) -> Expected:
    s.day(1)
    told = s.learn("I am thinking about which language course to book.")
    turn = s.turn("Which language course did I book?", "I do not know yet.", told.record, day=5)
    s.day(6)
    late = s.learn("I booked the Portuguese course after all.")
    s.flag("the Portuguese course", late.message, on=turn.answer)
    return blame("never_told")


@scenario("Said, but under the account of the other flatmate, which this answer never reads.")
def told_under_another_account(s: Story) -> Expected:
    s.day(1)
    other = "user:flatmate"
    id = "chat/x"
    note = s.value(semconv.KIND_MESSAGE, "The router password is tulip-forty-two.", id)
    s.add(note, graph=other)
    message = s.hear("The router password is tulip-forty-two.", id=id, graph=other)
    fact = s.extract(message, "Router password is tulip-forty-two", graph=other)
    s.create("Router password is tulip-forty-two", fact, graph=other)
    s.day(2)
    told = s.learn("The router is behind the sofa.")
    s.turn("What is the router password?", "I do not have the password.", told.record)
    s.flag("tulip-forty-two", message)
    return blame("wrong_graph", message)


@scenario("The document had the warranty period; none of the chunks made of it has.")
def chunking_loses_a_paragraph(s: Story) -> Expected:
    s.day(1)
    manual = s.value(
        semconv.KIND_MESSAGE,
        "The boiler must be bled in autumn. The warranty runs for seven years. "
        "Call the hotline in case of leaks.",
        "manual/boiler",
    )
    one = s.value(semconv.KIND_DOCUMENT, "The boiler must be bled in autumn.", "boiler/0")
    two = s.value(semconv.KIND_DOCUMENT, "Call the hotline in case of leaks.", "boiler/1")
    ingest = s.step("ingest", inputs=[manual], outputs=[one, two], roles={manual: "document"})
    s.turn("How long does the boiler's warranty run?", "The manual does not say.", one, two)
    s.flag("seven years", manual)
    return blame("lost_at_ingest", ingest)


@scenario("The answer's own model call failed; no memory operation did.")
def model_call_failed(s: Story) -> Expected:
    s.day(1)
    told = s.learn("Our standup is at 9:45 in the blue room.")
    s.ask("When is our standup?", 4)
    s.retrieve(told.record)
    context = s.assemble(told.record)
    s.answer("Sorry, something went wrong.", context, error="timeout")
    s.flag("9:45", told.message)
    return blame("unrelated")


@scenario("World knowledge that no owner ever stored: nothing in memory is to blame.")
def world_knowledge(s: Story) -> Expected:
    s.day(1)
    told = s.learn("I am learning to play the accordion.")
    s.turn("What is the capital of Australia?", "It is Sydney.", told.record)
    s.flag("Canberra")
    return blame(("unrelated", "never_told"))
