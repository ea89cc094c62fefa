"""Kept: what happened to a stored record before it was read."""

from __future__ import annotations

from memtrace_otel import semconv
from tests.contract.held_out.registry import scenario
from tests.contract.held_out.story import Expected, Story, blame


@scenario("A fact about another project replaced the deadline; the decision chose the target.")
def overwritten_by_an_extracted_fact(s: Story) -> Expected:
    s.day(1)
    right = s.learn("The Atlas project is due on 3 June.")
    s.day(4)
    _, message = s.say("Borealis, our other project, is due on 21 August.")
    fact = s.extract(message, "The Borealis project is due on 21 August")
    decide = s.decide((fact, "UPDATE", right.record))
    wrong = s.update(right.record, "The Borealis project is due on 21 August", fact)
    s.turn("When is the Atlas project due?", "I only know about Borealis.", wrong)
    s.flag("3 June", right.message)
    return blame("overwritten", decide, last_right=right.record)


@scenario("The update wrote text of its own and lost the allergy; nobody decided.")
def merged_by_the_update_itself(s: Story) -> Expected:
    s.day(1)
    right = s.learn("My daughter Lotte is allergic to walnuts.")
    s.day(5)
    _, message = s.say("Lotte started ballet.")
    fact = s.extract(message, "User's daughter Lotte started ballet")
    update = s.update(right.record, "User's daughter Lotte dances and is a happy child", fact)
    s.turn("What is Lotte allergic to?", "I do not know of an allergy.", update)
    s.flag("walnuts", right.message)
    return blame("merged_wrong", update, last_right=right.record, first_wrong=update)


@scenario("mem0 1.x: a decision without facts wrote the merged text, the update only stored it.")
def merged_by_a_decision_without_facts(s: Story) -> Expected:
    s.day(1)
    right = s.learn("I get 12 pages of Korean homework each week.")
    s.day(5)
    _, message = s.say("Korean class moved to the library.")
    fact = s.extract(message, "Korean class takes place in the library")
    text = "User has Korean class with homework in the library"
    merged = s.value(semconv.KIND_FACT, text)
    decide = s.decide(
        (None, "UPDATE", right.record), inputs=[fact], shown=[right.record], outputs=[merged]
    )
    update = s.update(right.record, text, merged)
    s.turn("How many pages of Korean homework do I get each week?", "I cannot tell.", update)
    s.flag("12 pages", right.message)
    return blame("merged_wrong", decide)


@scenario("An update re-stamps a record whose text keeps the word yesterday.")
def restamped_yesterday(s: Story) -> Expected:
    s.day(1)  # 3 March
    _, message = s.say("I started the antibiotics yesterday.")
    fact = s.extract(message, "User started the antibiotics yesterday")
    said = s.now
    record = s.value(semconv.KIND_MEMORY, "User started the antibiotics yesterday", "house:40")
    s.step("create", inputs=[fact], outputs=[record], times={record: said.isoformat()})
    s.day(8)  # 10 March
    _, later = s.say("The antibiotics make me tired.")
    tired = s.extract(later, "Antibiotics make the user tired")
    text = "User started the antibiotics yesterday and is tired"
    new = s.value(semconv.KIND_MEMORY, text, "house:40")
    update = s.step(
        "update",
        inputs=[tired, record],
        outputs=[new],
        supersedes=[record],
        times={new: s.now.isoformat()},
    )
    s.turn("When did I start the antibiotics?", "You started on 9 March 2026.", new)
    s.flag("2 March 2026", message)
    return blame("merged_wrong", update, aspect="time")


@scenario("Two writers from one base: the later put back a list without the other's item.")
def race_on_a_shared_list(s: Story) -> Expected:
    s.day(1)
    base = s.learn("Groceries to buy: bread and apples.", "Groceries to buy: bread, apples")
    s.day(2, "phone")
    _, oat = s.say("Put oat milk on the groceries to buy.")
    fact = s.extract(oat, "Groceries to buy: oat milk")
    s.update(base.record, "Groceries to buy: bread, apples, oat milk", fact, base.record)
    s.day(2.00001, "speaker")
    _, soap = s.say("Put soap on the groceries to buy.")
    other = s.extract(soap, "Groceries to buy: soap")
    two = s.update(base.record, "Groceries to buy: bread, apples, soap", other, base.record)
    s.turn("Which milk is among the groceries to buy?", "There is no milk on the list.", two)
    s.flag("oat milk", oat)
    return blame("overwritten", two, mechanism="race")


@scenario("Chinese: a summary of three records leaves the passport number out.")
def summarised_away(s: Story) -> Expected:
    s.day(1)
    one = s.learn("我的护照号码是E5583。")
    s.day(2)
    two = s.learn("我喜欢坐靠窗的座位。")
    s.day(3)
    three = s.learn("我四月要去大阪出差。")
    s.day(9, "nightly")
    text = "用户四月去大阪出差，喜欢靠窗的座位。"
    summary = s.value(semconv.KIND_MEMORY, text, "house:77")
    gone = [f"{each.record.ref.rpartition('@')[0]}@deleted" for each in (one, two, three)]
    consolidate = s.step(
        "consolidate",
        inputs=[one.record, two.record, three.record],
        outputs=[summary, *gone],
        supersedes=[one.record, two.record, three.record],
    )
    s.turn("我的护照号码是多少？", "我不知道。", summary)
    s.flag("E5583", one.message)
    return blame("compacted_away", consolidate, last_right=one.record)


@scenario("The oldest line of a conversation buffer was trimmed before it was needed.")
def trimmed_buffer(s: Story) -> Expected:
    s.day(1, "agent")
    told = s.hear("The gate code for the allotment is 6690.")
    full = s.value(
        semconv.KIND_MEMORY,
        "user: The gate code for the allotment is 6690.\nassistant: Noted.",
        "house:buffer",
    )
    s.step("create", inputs=[told], outputs=[full])
    s.day(2, "agent")
    short = s.value(semconv.KIND_MEMORY, "assistant: Noted.", "house:buffer")
    trim = s.step("consolidate", inputs=[full], outputs=[short], supersedes=[full])
    s.turn("What is the gate code for the allotment?", "I do not remember.", short)
    s.flag("6690", told)
    return blame("compacted_away", trim)


@scenario("The decision put a new phone plan beside the old one, and the reader got both.")
def not_updated(s: Story) -> Expected:
    s.day(1)
    old = s.learn("My phone plan costs 30 dollars a month.")
    s.day(9)
    _, message = s.say("My phone plan costs 18 dollars a month now.")
    fact = s.extract(message, "My phone plan costs 18 dollars a month now")
    decide = s.decide((fact, "ADD", None), shown=[old.record])
    new = s.create("My phone plan costs 18 dollars a month now", fact)
    context = "* My phone plan costs 18 dollars a month\n* My phone plan costs 30 dollars a month"
    s.ask("What does my phone plan cost a month?", 20)
    s.retrieve(old.record, new)
    prompt = s.assemble(old.record, new, text=context)
    s.answer("It costs 30 dollars a month.", prompt)
    s.flag("18 dollars", message)
    return blame("not_updated", decide)


@scenario("Both values were shown with their dates: choosing was the model's task.")
def conflict_shown_with_dates(s: Story) -> Expected:
    s.day(1)
    old = s.learn("My desk is on the second floor.")
    s.day(9)
    new = s.learn("My desk is on the fifth floor.")
    s.ask("On which floor is my desk?", 20)
    s.retrieve(old.record, new.record)
    prompt = s.assemble(
        old.record,
        new.record,
        text="* 2026-03-03: My desk is on the second floor.\n"
        "* 2026-03-11: My desk is on the fifth floor.",
    )
    answer = s.answer("Your desk is on the second floor.", prompt)
    s.flag("fifth floor", new.message)
    return blame("wrong_reasoning", answer)


@scenario("Both values shown without the dates that their records have.")
def conflict_shown_without_its_dates(s: Story) -> Expected:
    records = []
    for day, text in ((1, "Team lunch is on Tuesdays."), (9, "Team lunch is on Thursdays.")):
        s.day(day)
        _, message = s.say(text)
        fact = s.extract(message, text)
        record = s.value(semconv.KIND_MEMORY, text, f"house:{day + 50}")
        s.step("create", inputs=[fact], outputs=[record], times={record: s.now.isoformat()})
        records.append(record)
    s.ask("On which day is team lunch?", 20)
    s.retrieve(*records)
    prompt = s.assemble(*records)
    s.answer("Team lunch is on Tuesdays.", prompt)
    s.flag("Thursdays", message)
    return blame("garbled_in_context", prompt)


@scenario("A system that only adds showed both without dates: the reply's choice, the add aside.")
def conflict_in_an_additive_system(s: Story) -> Expected:
    s.day(1)
    _, first = s.say("Our cat Nori weighs 4 kilos.")
    one = s.create("Cat Nori weighs 4 kilos", s.extract(first, "Cat Nori weighs 4 kilos"))
    s.day(9)
    _, second = s.say("Our cat Nori weighs 5 kilos.")
    two = s.create("Cat Nori weighs 5 kilos", s.extract(second, "Cat Nori weighs 5 kilos"))
    turn = s.turn("How much does our cat Nori weigh?", "Nori weighs 4 kilos.", one, two)
    s.flag("5 kilos", second)
    return blame(("wrong_reasoning", "distracted"), turn.answer)


@scenario("The new value never came up; the contradiction left standing is only aside.")
def conflict_of_which_one_was_ranked_out(s: Story) -> Expected:
    s.day(1)
    old = s.learn("My gym membership costs 40 francs.")
    s.day(9)
    _, message = s.say("My gym membership costs 55 francs since the price rise.")
    fact = s.extract(message, "My gym membership costs 55 francs since the price rise")
    decide = s.decide((fact, "ADD", None), shown=[old.record])
    new = s.create("My gym membership costs 55 francs since the price rise", fact)
    turn = s.turn(
        "What does my gym membership cost?",
        "It costs 40 francs.",
        old.record,
        dropped=[[new, 0.6, "limit", 2]],
    )
    s.flag("55 francs", message)
    return blame("ranked_out", turn.retrieve, also=((decide, "not_updated"),))


@scenario("mem0 1.x: a decision without a fact deleted the record.")
def deleted_by_a_decision(s: Story) -> Expected:
    s.day(1)
    right = s.learn("I am allergic to latex gloves.")
    s.day(6)
    _, message = s.say("I bought new gardening gloves.")
    fact = s.extract(message, "User bought gardening gloves")
    decide = s.decide((None, "DELETE", right.record), inputs=[fact], shown=[right.record])
    s.delete(right.record)
    s.day(7)
    other = s.learn("My garden is full of tulips.")
    s.turn("Which gloves am I allergic to?", "You have no allergy on record.", other.record)
    s.flag("latex gloves", right.message)
    return blame("wrongly_deleted", decide, last_right=right.record)


@scenario("A cleanup job deleted the record; nobody decided.")
def deleted_by_a_job(s: Story) -> Expected:
    s.day(1)
    right = s.learn("The piano tuner comes every March.")
    s.day(6, "cleanup")
    delete = s.delete(right.record)
    s.day(7)
    other = s.learn("The piano stands in the hall.")
    s.turn("When does the piano tuner come?", "I do not know.", other.record)
    s.flag("every March", right.message)
    return blame("wrongly_deleted", delete, last_right=right.record)


@scenario("Said twice: stored and deleted once, not extracted the other time.")
def said_twice(s: Story) -> Expected:
    s.day(1)
    right = s.learn("My blood type is AB negative.")
    s.day(3)
    _, again = s.say("As I said, my blood type is AB negative.")
    extract = s.extract(again)
    s.day(5)
    delete = s.delete(right.record)
    s.day(6)
    other = s.learn("I donate blood every spring.")
    s.turn("What is my blood type?", "I do not know your blood type.", other.record)
    s.flag("AB negative", right.message, again)
    return blame("wrongly_deleted", delete, also=((extract, "omission"),))


@scenario("Doing nothing was right while a record carried it; that record was deleted later.")
def nothing_chosen_rightly(s: Story) -> Expected:
    s.day(1)
    right = s.learn("Our wifi network is called Moonbase.")
    s.day(2)
    _, again = s.say("Our wifi network is called Moonbase.")
    fact = s.extract(again, "Our wifi network is called Moonbase.")
    s.decide((fact, "NOOP", right.record))
    s.day(4)
    delete = s.delete(right.record)
    s.day(5)
    other = s.learn("Our wifi is slow in the attic.")
    s.turn("What is our wifi network called?", "I do not know.", other.record)
    s.flag("Moonbase", right.message, again)
    return blame("wrongly_deleted", delete)


@scenario("The write gave the record a week to live; the need came later.")
def expired(s: Story) -> Expected:
    s.day(1)
    _, message = s.say("The parcel locker PIN is 40917.")
    fact = s.extract(message, "Parcel locker PIN is 40917")
    create = s.create("Parcel locker PIN is 40917", fact, state={"expires": "2026-03-10T00:00:00Z"})
    s.day(2)
    other = s.learn("The parcel locker is at the station.")
    s.turn(
        "What is the parcel locker PIN?",
        "I do not have it.",
        other.record,
        dropped=[[create, None, "expired"]],
    )
    s.flag("40917", message)
    return blame("wrongly_deleted", create, mechanism="expired")


@scenario("Asked to forget; the decision did nothing, and the reply gave it away.")
def not_forgotten(s: Story) -> Expected:
    s.day(1)
    record = s.learn("My ex-wife Clara's number is 0664 2201.").record
    s.day(4)
    _, message = s.say("Please forget my ex-wife Clara's number.")
    fact = s.extract(message, "User wants ex-wife Clara's number forgotten")
    decide = s.decide((fact, "NOOP", record))
    s.turn("What is Clara's number?", "Clara's number is 0664 2201.", record)
    s.flag("")
    return blame("not_deleted", decide)


@scenario("The carrier lived in a shared handbook that this user's agent reads.")
def overwritten_in_a_shared_graph(s: Story) -> Expected:
    book = "corpus:handbook"
    s.day(1, "librarian")
    right = s.value(semconv.KIND_DOCUMENT, "Travel advances are capped at 800 euros.", "hb/3")
    s.step("ingest", outputs=[right], roles={right: "document"}, graph=book)
    s.day(5, "librarian")
    wrong = s.value(semconv.KIND_DOCUMENT, "Meal vouchers are handed out in May.", "hb/3")
    s.hear("Meal vouchers are handed out in May.", graph=book, id="mail/1")
    update = s.step("update", inputs=[], outputs=[wrong], supersedes=[right], graph=book)
    s.ask("At what amount are travel advances capped?", 20)
    s.retrieve(wrong, reads=[book])
    prompt = s.assemble(wrong)
    s.answer("The handbook does not say.", prompt)
    s.flag("800 euros", right)
    return blame(("overwritten", "merged_wrong"), update, last_right=right)
