"""First stored: extraction, the decision to store, and the write."""

from __future__ import annotations

from memtrace_otel import semconv
from tests.contract.held_out.registry import scenario
from tests.contract.held_out.story import Expected, Story, blame


@scenario("Japanese: the extraction read of the allergy and made a fact of the appointment only.")
def omission_in_japanese(s: Story) -> Expected:
    s.day(1)
    _, message = s.say("来週の金曜日に歯医者の予約があります。猫のミケは鶏肉アレルギーです。")
    extract = s.extract(message, "ユーザーは来週の金曜日に歯医者に行く")
    s.decide((extract, "ADD", None))
    record = s.create("ユーザーは来週の金曜日に歯医者に行く", extract)
    s.turn("猫のミケは何のアレルギーですか？", "わかりません。", record)
    s.flag("鶏肉", message)
    return blame("omission", extract)


@scenario("The extraction read the message and made nothing of it.")
def omission_without_any_fact(s: Story) -> Expected:
    s.day(1)
    _, message = s.say("By the way, the vet moved Biscuit's booster shot to clinic B.")
    extract = s.extract(message)
    s.day(2)
    other = s.learn("Biscuit likes to swim in the lake.")
    s.turn("At which clinic is Biscuit's booster shot?", "I do not know.", other.record)
    s.flag("clinic B", message)
    return blame("omission", extract)


@scenario("A batch of three messages without edges: nobody made a fact of the second.")
def omission_in_a_batch_without_edges(s: Story) -> Expected:
    s.day(1)
    s.add()
    one = s.hear("I signed up for the marathon in Valencia.")
    two = s.hear("My trainer Goran wants me to rest on Mondays.")
    three = s.hear("New shoes arrived, size 43.")
    extract = s.extract(
        [one, two, three], "User runs the Valencia marathon", "User wears running shoes size 43"
    )
    facts = extract.refs
    s.decide((facts[0], "ADD", None), (facts[1], "ADD", None))
    first = s.create("User runs the Valencia marathon", facts[0])
    second = s.create("User wears running shoes size 43", facts[1])
    s.turn("What is my trainer called?", "I have no note of a trainer.", first, second)
    s.flag("Goran", two)
    return blame("omission", extract)


@scenario("The message was added, but the extraction was given only the one before it.")
def omission_by_the_buffer(s: Story) -> Expected:
    s.day(1)
    add = s.add()
    one = s.hear("Morning! Lovely weather.")
    two = s.hear("The locksmith charges 85 euros per visit.")
    s.extract(one, "User likes the weather")
    s.day(2)
    other = s.learn("The locksmith lives next door.")
    s.turn("What does the locksmith charge?", "I do not know the price.", other.record)
    s.flag("85 euros", two)
    return blame("omission", add)


@scenario("Memory is written by tool calls, and in that turn the model did not call save.")
def omission_by_the_model_that_saves(s: Story) -> Expected:
    s.day(1, "agent")
    hello = s.hear("I am vegetarian.")
    saved = s.value(semconv.KIND_FACT, "User is vegetarian")
    s.step("answer", inputs=[hello], outputs=[saved])
    record = s.create("User is vegetarian", saved)
    s.day(2, "agent")
    told = s.hear("My locker code at the climbing gym is 7731.")
    made = s.value(semconv.KIND_ANSWER, "Good to know!")
    chat = s.step("answer", inputs=[told], outputs=[made])
    s.turn("What is my locker code at the climbing gym?", "I do not know it.", record)
    s.flag("7731", told)
    return blame("omission", chat)


@scenario("A dose of 25 mg became 250 mg in the fact.")
def distorted_number(s: Story) -> Expected:
    s.day(1)
    _, message = s.say("Dr. Amari put me on 25 mg of sertraline.")
    extract = s.extract(message, "User takes 250 mg of sertraline")
    s.decide((extract, "ADD", None))
    record = s.create("User takes 250 mg of sertraline", extract)
    s.turn("What is my dose of sertraline?", "Your dose is 250 mg.", record)
    s.flag("25 mg", message)
    return blame("distortion", extract, aspect="number", last_right=message, first_wrong=extract)


@scenario("German: the rent changed its digits on the way into the fact.")
def distorted_number_in_german(s: Story) -> Expected:
    s.day(1)
    _, message = s.say("Die neue Wohnung kostet 940 Euro Miete im Monat.")
    extract = s.extract(message, "Die Wohnung kostet 490 Euro Miete im Monat")
    s.decide((extract, "ADD", None))
    record = s.create("Die Wohnung kostet 490 Euro Miete im Monat", extract)
    s.turn("Wie hoch ist die Miete der Wohnung?", "Sie beträgt 490 Euro.", record)
    s.flag("940 Euro", message)
    return blame("distortion", extract, aspect="number")


@scenario("Tomorrow, said on 4 March, became 15 March.")
def distorted_time(s: Story) -> Expected:
    s.day(2)  # Wednesday, 4 March
    _, message = s.say("My tax appointment is tomorrow.")
    extract = s.extract(message, "User has a tax appointment on 15 March 2026")
    s.decide((extract, "ADD", None))
    record = s.create("User has a tax appointment on 15 March 2026", extract)
    s.turn("When was my tax appointment?", "It was on 15 March 2026.", record, day=40)
    s.flag("5 March 2026", message)
    return blame("distortion", extract, aspect="time")


@scenario("The cousin's diet was put down as the user's own.")
def distorted_owner(s: Story) -> Expected:
    s.day(1)
    _, message = s.say("My cousin Ines went vegan in January.")
    extract = s.extract(message, "User went vegan in January")
    s.decide((extract, "ADD", None))
    record = s.create("User went vegan in January", extract)
    s.turn("Who went vegan in January?", "You went vegan in January.", record)
    s.flag("cousin Ines", message)
    return blame("distortion", extract, aspect="owner")


@scenario("No longer taking it became taking it.")
def distorted_negation(s: Story) -> Expected:
    s.day(1)
    _, message = s.say("I no longer take ibuprofen because of my stomach.")
    extract = s.extract(message, "User takes ibuprofen because of stomach")
    s.decide((extract, "ADD", None))
    record = s.create("User takes ibuprofen because of stomach", extract)
    s.turn("Do I take ibuprofen?", "Yes, you take ibuprofen.", record)
    s.flag("No, not any longer", message)
    return blame("distortion", extract, aspect="negation")


@scenario("The right kind of thing, another individual: Biscuit became Cookie.")
def distorted_item(s: Story) -> Expected:
    s.day(1)
    _, message = s.say("We adopted a beagle named Biscuit from the shelter.")
    extract = s.extract(message, "User adopted a beagle named Cookie from the shelter")
    s.decide((extract, "ADD", None))
    record = s.create("User adopted a beagle named Cookie from the shelter", extract)
    s.turn("What is the name of our beagle?", "Your beagle is named Cookie.", record)
    s.flag("Biscuit", message)
    return blame("distortion", extract, aspect="item")


@scenario("The model that saves by tool calls wrote the wrong flight; the write did as told.")
def distorted_by_the_model_that_saves(s: Story) -> Expected:
    s.day(1, "agent")
    told = s.hear("My flight to Oslo is SK 4608.")
    saved = s.value(semconv.KIND_FACT, "Flight to Oslo is SK 4680")
    chat = s.step("answer", inputs=[told], outputs=[saved])
    record = s.create("Flight to Oslo is SK 4680", saved)
    s.turn("Which flight do I take to Oslo?", "You take SK 4680.", record)
    s.flag("SK 4608", told)
    return blame("distortion", chat)


@scenario("A weight nobody ever named stands in the fact; the system should have declined.")
def invented_by_the_extraction(s: Story) -> Expected:
    s.day(1)
    _, message = s.say("We talked to the vet about Milo and his new food.")
    extract = s.extract(message, "Milo weighs 12 kilograms")
    s.decide((extract, "ADD", None))
    record = s.create("Milo weighs 12 kilograms", extract)
    s.turn("How much does Milo weigh?", "Milo weighs 12 kilograms.", record)
    s.flag("")
    return blame("invented", extract)


@scenario("An earlier answer made it up, and the extraction took that answer for a source.")
def invented_by_an_earlier_answer(s: Story) -> Expected:
    s.day(1)
    other = s.learn("I chose the bronze health plan.")
    first = s.turn(
        "Which plan do I have?",
        "The bronze plan, which includes a dental allowance of 600 dollars.",
        other.record,
        day=2,
    )
    s.day(3)
    text = s.text(first.answer)
    s.add()
    repeated = s.hear(text, role="assistant", inputs=[first.answer])
    extract = s.extract(repeated, "User has a dental allowance of 600 dollars")
    s.decide((extract, "ADD", None))
    record = s.create("User has a dental allowance of 600 dollars", extract)
    asked = s.turn("What is my dental allowance?", "It is 600 dollars.", record)
    s.flag("", on=asked.answer)
    return blame("invented", first.answer)


@scenario("Shared memory: another agent's extraction made up the budget that this answer gives.")
def invented_by_another_agent(s: Story) -> Expected:
    s.day(1, "scout")
    _, message = s.say("The committee met about the summer festival.")
    invented = s.extract(message, "The summer festival has a budget of 9000 euros")
    record = s.create("The summer festival has a budget of 9000 euros", invented)
    s.turn("What budget does the summer festival have?", "9000 euros.", record)
    s.flag("")
    return blame("invented", invented)


@scenario("Spanish: the decision chose to do nothing with a fact that no record carries.")
def nothing_chosen(s: Story) -> Expected:
    s.day(1)
    other = s.learn("Mi abuela vive en Sevilla.")
    s.day(2)
    _, message = s.say("Mi abuela cumple años el 9 de octubre.")
    fact = s.extract(message, "La abuela del usuario cumple años el 9 de octubre")
    decide = s.decide((fact, "NOOP", other.record))
    s.turn("¿Cuándo cumple años mi abuela?", "No lo sé.", other.record)
    s.flag("el 9 de octubre", message)
    return blame("not_stored", decide, mechanism="noop")


@scenario("The library took the fact for a duplicate and dropped it; its add says so.")
def dropped_as_duplicate(s: Story) -> Expected:
    s.day(1)
    other = s.learn("The spare key is with Mrs Lindqvist.")
    s.day(2)
    id = "chat/dup"
    note = s.value(semconv.KIND_MESSAGE, "The cellar key is in the toolbox.", id)
    fact = s.value(semconv.KIND_FACT, "The cellar key is in the toolbox")
    add = s.add(note, dropped=[[fact, None, "dedup"]])
    message = s.hear("The cellar key is in the toolbox.", id=id)
    s.extract(message, "The cellar key is in the toolbox")
    s.turn("Where is the cellar key?", "I only know about a spare key.", other.record)
    s.flag("in the toolbox", message)
    return blame("not_stored", add, mechanism="dedup")


@scenario("The decision was right, and the write failed.")
def failed_write(s: Story) -> Expected:
    s.day(1)
    other = s.learn("I have a storage unit near the harbour.")
    s.day(2)
    _, message = s.say("The storage unit has number 218.")
    fact = s.extract(message, "Storage unit has number 218")
    s.decide((fact, "ADD", None))
    write = s.step("create", inputs=[fact], error="ConnectionError")
    s.turn("Which number does my storage unit have?", "I do not know.", other.record)
    s.flag("218", message)
    return blame("not_stored", write, mechanism="write_failed")


@scenario("The decision chose to add, no write ever followed, and no number is missing.")
def swallowed_write(s: Story) -> Expected:
    s.day(1)
    other = s.learn("The choir rehearses in the old chapel.")
    s.day(2)
    add, message = s.say("Choir rehearsals start at 19:30.")
    fact = s.extract(message, "Choir rehearsals start at 19:30")
    s.decide((fact, "ADD", None))
    s.day(3)
    s.learn("I sing second alto.")
    s.turn("When do choir rehearsals start?", "No idea.", other.record)
    s.flag("19:30", message)
    return blame("not_stored", add)


@scenario("Of four ingredients one is lost in the extraction: a list is strict.")
def one_ingredient_omitted(s: Story) -> Expected:
    s.day(1)
    _, message = s.say("For the paella I need rice, saffron, mussels and peppers.")
    extract = s.extract(message, "Paella needs rice, mussels and peppers")
    s.decide((extract, "ADD", None))
    record = s.create("Paella needs rice, mussels and peppers", extract)
    s.turn("What do I need for the paella?", "Rice, mussels and peppers.", record)
    s.flag("rice, saffron, mussels and peppers", message)
    return blame("omission", extract)


@scenario("Two items of one list are lost at two operations; only both repairs would do.")
def two_items_lost_at_two_places(s: Story) -> Expected:
    s.day(1)
    kayak = s.learn("On weekends I go kayaking.")
    s.day(2)
    _, pottery = s.say("I also do pottery on weekends, it is so calming.")
    extract = s.extract(pottery)
    s.day(3)
    chess = s.learn("On weekends I play chess in the park.")
    turn = s.turn(
        "Which hobbies do I have on weekends?",
        "You go kayaking.",
        kayak.record,
        dropped=[[chess.record, 0.4, "limit", 2]],
    )
    s.flag("kayaking, pottery, chess", kayak.message, pottery, chess.message)
    return blame("omission", extract, turn.retrieve, then=("ranked_out",))
