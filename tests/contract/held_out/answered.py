"""Shown and used: the prompt, and what the model made of it."""

from __future__ import annotations

from memtrace_otel import semconv
from tests.contract.held_out.registry import scenario
from tests.contract.held_out.story import Expected, Story, blame


@scenario("Retrieved second, then cut from the prompt for want of budget.")
def cut_for_budget(s: Story) -> Expected:
    s.day(1)
    other = s.learn("The greenhouse has twelve panes.")
    s.day(2)
    told = s.learn("The greenhouse heater is set to 8 degrees.")
    s.ask("What is the greenhouse heater set to?", 5)
    s.retrieve(other.record, told.record)
    prompt = s.assemble(
        other.record, dropped=[[told.record, None, "budget"]], limits={"budget_tokens": 12}
    )
    s.answer("I do not know.", prompt)
    s.flag("8 degrees", told.message)
    return blame("cut_from_context", prompt, last_right=told.record)


@scenario("No assembly is visible: of two records delivered one was found in the prompt.")
def cut_from_an_inferred_prompt(s: Story) -> Expected:
    s.day(1)
    other = s.learn("The violin lesson takes place at the music school.")
    s.day(2)
    told = s.learn("The violin lesson costs 35 euros an hour.")
    s.ask("What does the violin lesson cost?", 5)
    s.retrieve(other.record, told.record)
    context = s.value(semconv.KIND_CONTEXT, "The violin lesson takes place at the music school.")
    answer = s.answer(
        "I do not know.",
        context,
        other.record,
        inferred=[other.record.ref],
        attributes={semconv.MEMTRACE_CAPTURE: semconv.CAPTURE_INFERRED},
    )
    s.flag("35 euros", told.message)
    return blame("cut_from_context", answer, last_right=told.record)


@scenario("The prompt shows the day only as last Saturday, without the record's date.")
def shown_without_its_date(s: Story) -> Expected:
    s.day(7)  # Monday, 9 March
    _, message = s.say("The twins were born last Saturday.")
    fact = s.extract(message, "The twins were born last Saturday")
    record = s.value(semconv.KIND_MEMORY, "The twins were born last Saturday", "house:31")
    s.step("create", inputs=[fact], outputs=[record], times={record: s.now.isoformat()})
    s.ask("When were the twins born?", 30)  # 1 April
    s.retrieve(record)
    prompt = s.assemble(record)
    s.answer("They were born on 28 March 2026.", prompt)
    s.flag("7 March 2026", message)
    return blame("garbled_in_context", prompt)


@scenario("German: the prompt has it, the reply declines.")
def declined_in_german(s: Story) -> Expected:
    s.day(1)
    told = s.learn("Mein Zahnarzttermin ist am 12. Mai um 15 Uhr.")
    turn = s.turn(
        "Um wie viel Uhr ist mein Zahnarzttermin?", "Das weiß ich leider nicht.", told.record
    )
    s.flag("15 Uhr", told.message)
    return blame("wrong_abstention", turn.answer)


@scenario("Chinese: the prompt has it, the reply declines.")
def declined_in_chinese(s: Story) -> Expected:
    s.day(1)
    told = s.learn("我弟弟在成都开了一家面馆。")
    turn = s.turn("我弟弟在哪里开了面馆？", "抱歉，我不知道。", told.record)
    s.flag("成都", told.message)
    return blame("wrong_abstention", turn.answer)


@scenario("The reply gives the other tenant's arrears, which stand in the same prompt.")
def took_the_neighbouring_item(s: Story) -> Expected:
    s.day(1)
    told = s.learn("Unit 3 owes 410 euros for heating.")
    s.day(2)
    other = s.learn("Unit 8 owes 95 euros for water.")
    turn = s.turn("What does unit 3 owe?", "It owes 95 euros.", told.record, other.record)
    s.flag("410 euros", told.message)
    return blame("distracted", turn.answer)


@scenario("The right record was used, and the subtraction went wrong.")
def subtracted_wrongly(s: Story) -> Expected:
    s.day(1)
    told = s.learn("Of the workshop budget of 2400 euros, 900 euros are spent, 1500 euros left.")
    turn = s.turn(
        "How much of the workshop budget is left?",
        "Of the 2400 euros, 900 are spent, so 1600 euros are left.",
        told.record,
    )
    s.flag("1500 euros", told.message)
    return blame("wrong_reasoning", turn.answer)


@scenario("The prompt has the gate; the reply's gate stands nowhere.")
def ignored_the_prompt(s: Story) -> Expected:
    s.day(1)
    told = s.learn("The night bus leaves from gate K22.")
    turn = s.turn("Which gate does the night bus leave from?", "From gate D7.", told.record)
    s.flag("gate K22", told.message)
    return blame("ignored_context", turn.answer)


@scenario("No prompt was recorded: the answer read the record itself and said something else.")
def ignored_a_record_read_directly(s: Story) -> Expected:
    s.day(1)
    told = s.learn("The rehearsal tempo is 96 beats per minute.")
    s.ask("What is the rehearsal tempo?", 4)
    s.retrieve(told.record)
    answer = s.answer("It is 132 beats per minute.", told.record)
    s.flag("96 beats per minute", told.message)
    return blame("ignored_context", answer)


@scenario("Nothing anywhere says it, the system should have declined, and the reply asserts.")
def made_up_by_the_reply(s: Story) -> Expected:
    s.day(1)
    told = s.learn("I play squash with Ferdinand.")
    turn = s.turn("What is Ferdinand's job?", "Ferdinand is a notary.", told.record)
    s.flag("")
    return blame("hallucinated", turn.answer)


@scenario("It should have declined and gave the brother's boat as the user's.")
def took_the_brothers_item(s: Story) -> Expected:
    s.day(1)
    told = s.learn("My brother Timo sails a catamaran.")
    turn = s.turn("What kind of boat do I sail?", "You sail a catamaran.", told.record)
    s.flag("")
    return blame("distracted", turn.answer)
