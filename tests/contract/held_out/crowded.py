"""Fuller memories: long conversations, lists, several people, other languages."""

from __future__ import annotations

from memtrace_otel import semconv
from tests.contract.held_out.registry import scenario
from tests.contract.held_out.story import Expected, Learned, Story, blame

SMALL_TALK = (
    "The tram was late again this morning.",
    "I tried the new ramen place near the office.",
    "My neighbour Olek is repainting his balcony.",
    "The printer on the third floor is broken.",
    "We watched a documentary about octopuses.",
    "I need new batteries for the smoke detector.",
    "Olek borrowed my ladder until the weekend.",
    "The yoga class was moved to the small hall.",
    "I read forty pages of the Norwegian novel.",
    "The basil on the window sill is dying.",
)


def _chatter(s: Story, first_day: int = 0) -> list[Learned]:
    learned = []
    for number, text in enumerate(SMALL_TALK):
        s.day(first_day + number)
        learned.append(s.learn(text))
    return learned


@scenario("Among ten other messages the one extraction that read it is named, evidence or not.")
def omission_in_a_long_conversation(s: Story) -> Expected:
    chatter = _chatter(s)
    s.day(11)
    _, message = s.say("By the way, Olek's balcony colour is called Adriatic Blue.")
    extract = s.extract(message, "User talked about Olek")
    s.decide((extract, "ADD", None))
    record = s.create("User talked about Olek", extract)
    s.turn(
        "What is the colour of Olek's balcony called?",
        "I do not know its name.",
        record,
        chatter[2].record,
    )
    s.flag("Adriatic Blue")
    return blame("omission", extract)


@scenario("Four of ten records were delivered, the needed one was the fifth.")
def ranked_fifth_of_ten(s: Story) -> Expected:
    chatter = _chatter(s)
    refs = [chatter[i].record for i in (2, 0, 3, 7)]
    dropped = [[chatter[6].record, 0.51, "limit", 5], [chatter[1].record, 0.2, "limit", 6]]
    turn = s.turn(
        "Until when did Olek borrow my ladder?", "I do not know.", *refs, dropped=dropped, day=30
    )
    s.flag("until the weekend")
    return blame("ranked_out", turn.retrieve, last_right=chatter[6].record)


@scenario("The reply names the page count of another reading, which stands in the prompt.")
def distracted_in_a_crowd(s: Story) -> Expected:
    chatter = _chatter(s)
    s.day(11)
    other = s.learn("My sister read ninety pages of a cookbook.")
    turn = s.turn(
        "How many pages of the Norwegian novel did I read?",
        "You read ninety pages.",
        chatter[8].record,
        other.record,
        chatter[4].record,
        day=30,
    )
    s.flag("forty")
    return blame("distracted", turn.answer)


@scenario("German list: of three groceries one never became part of a fact.")
def list_item_omitted_in_german(s: Story) -> Expected:
    s.day(1)
    _, message = s.say("Für den Kuchen brauche ich Mohn, Quark und Zimt.")
    extract = s.extract(message, "Der Kuchen braucht Mohn und Quark")
    s.decide((extract, "ADD", None))
    record = s.create("Der Kuchen braucht Mohn und Quark", extract)
    s.turn("Was brauche ich für den Kuchen?", "Mohn und Quark.", record)
    s.flag("Mohn, Quark und Zimt", message)
    return blame("omission", extract)


@scenario("Spanish list in three records: the one about the fish was cut at the limit.")
def list_item_ranked_out_in_spanish(s: Story) -> Expected:
    told = []
    for day, text in enumerate(
        ("Mi hijo odia el brócoli.", "Mi hijo odia el queso.", "Mi hijo odia el pescado.")
    ):
        s.day(day)
        told.append(s.learn(text))
    turn = s.turn(
        "¿Qué comidas odia mi hijo?",
        "Odia el brócoli y el queso.",
        told[0].record,
        told[1].record,
        dropped=[[told[2].record, 0.4, "limit", 3]],
    )
    s.flag("brócoli, queso y pescado", *[each.message for each in told])
    return blame("ranked_out", turn.retrieve)


@scenario("German: only function words are shared with the record that was shown.")
def german_function_words_are_no_subject(s: Story) -> Expected:
    s.day(1)
    told = s.learn("Der Ersatzschlüssel ist in der grauen Kiste.")
    s.day(2)
    other = s.learn("Die graue Kiste ist für die Werkstatt.")
    turn = s.turn(
        "Wo ist der Ersatzschlüssel?",
        "Das ist mir nicht bekannt.",
        other.record,
        dropped=[[told.record, 0.4, "limit", 2]],
    )
    s.flag("in der grauen Kiste", told.message)
    return blame("ranked_out", turn.retrieve)


@scenario("Chinese: nobody ever said it.")
def never_said_in_chinese(s: Story) -> Expected:
    s.day(1)
    told = s.learn("我的房东又涨房租了。")
    s.turn("我的房东姓什么？", "您的房东姓陈。", told.record)
    s.flag("姓赵")
    return blame("never_told")


@scenario("The consolidation kept everyone's role but mixed up one of them.")
def summary_swapped_a_role(s: Story) -> Expected:
    s.day(1)
    one = s.learn("Ravi leads the payments team.")
    s.day(2)
    two = s.learn("Sofia leads the search team.")
    s.day(5, "nightly")
    text = "The payments team is led by Sofia, the search team too"
    summary = s.value(semconv.KIND_MEMORY, text, "house:90")
    gone = [f"{each.record.ref.rpartition('@')[0]}@deleted" for each in (one, two)]
    job = s.step(
        "consolidate",
        inputs=[one.record, two.record],
        outputs=[summary, *gone],
        supersedes=[one.record, two.record],
    )
    s.turn("Who leads the payments team?", "Sofia leads it.", summary)
    s.flag("Ravi", one.message)
    return blame("compacted_away", job, last_right=one.record)


@scenario("Corrected twice: the last update put the first value back.")
def put_back_by_the_last_update(s: Story) -> Expected:
    s.day(1)
    first = s.learn("The clinic opens at 8:00.")
    s.day(3)
    _, message = s.say("The clinic opens at 9:30 since the move.")
    fact = s.extract(message, "The clinic opens at 9:30 since the move")
    s.decide((fact, "UPDATE", first.record))
    right = s.update(first.record, "The clinic opens at 9:30 since the move", fact)
    s.day(6)
    _, third = s.say("I was at the clinic, as ever at 8:00, for a blood test.")
    old = s.extract(third, "The clinic opens at 8:00")
    decide = s.decide((old, "UPDATE", right))
    wrong = s.update(right, "The clinic opens at 8:00", old)
    s.turn("When does the clinic open since the move?", "At 8:00.", wrong)
    s.flag("9:30", message)
    return blame("overwritten", decide, last_right=right)


@scenario("The decision wrote the fact down with another number; the write did as told.")
def decision_changed_the_number(s: Story) -> Expected:
    s.day(1)
    _, message = s.say("The deposit for the hall is 350 euros.")
    fact = s.extract(message, "Deposit for the hall is 350 euros")
    authored = s.value(semconv.KIND_FACT, "Deposit for the hall is 530 euros")
    decide = s.decide((authored, "ADD", None), inputs=[fact], outputs=[authored])
    record = s.create("Deposit for the hall is 530 euros", authored)
    s.turn("How much is the deposit for the hall?", "It is 530 euros.", record)
    s.flag("350 euros", message)
    return blame("distortion", decide, aspect="number")


@scenario("Said in March of last year, stored as this year: the fact's date is wrong.")
def distorted_year(s: Story) -> Expected:
    s.day(1)
    _, message = s.say("We bought the houseboat in March 2024.")
    extract = s.extract(message, "User bought the houseboat in March 2025")
    s.decide((extract, "ADD", None))
    record = s.create("User bought the houseboat in March 2025", extract)
    s.turn("When did we buy the houseboat?", "In March 2025.", record)
    s.flag("March 2024", message)
    return blame("distortion", extract, aspect="time")


@scenario("The record has the right day; the reply counted a week too many.")
def counted_a_week_too_many(s: Story) -> Expected:
    s.day(7)  # 9 March
    told = s.learn("The exam took place on 6 March 2026.")
    turn = s.turn("When did the exam take place?", "On 13 March 2026.", told.record, day=30)
    s.flag("6 March 2026", told.message)
    return blame(("wrong_reasoning", "ignored_context"), turn.answer)


@scenario("Asked to forget in German; the decision did nothing, and the reply told it.")
def not_forgotten_in_german(s: Story) -> Expected:
    s.day(1)
    record = s.learn("Mein Gehalt beträgt 4100 Euro.").record
    s.day(4)
    _, message = s.say("Bitte vergiss mein Gehalt.")
    fact = s.extract(message, "Nutzer möchte, dass das Gehalt vergessen wird")
    decide = s.decide((fact, "NOOP", record))
    s.turn("Wie hoch ist mein Gehalt?", "Dein Gehalt beträgt 4100 Euro.", record)
    s.flag("")
    return blame("not_deleted", decide)


@scenario("The request to forget was carried out by nobody: there was no decision at all.")
def forget_request_without_a_decision(s: Story) -> Expected:
    s.day(1)
    _, told = s.say("My therapist is Dr. Quist.")
    record = s.create("Therapist is Dr. Quist", s.extract(told, "Therapist is Dr. Quist"))
    s.day(3)
    add, message = s.say("Delete what you know about my therapist.")
    s.extract(message)
    s.day(4)
    s.say("Good morning.")
    s.turn("Who is my therapist?", "Your therapist is Dr. Quist.", record)
    s.flag("")
    return blame("not_deleted", add)


@scenario("The model rewrote the question in a tool call and lost the person asked for.")
def tool_call_lost_the_person(s: Story) -> Expected:
    s.day(1)
    told = s.learn("Grandma Wilma's pension is paid on the 28th.")
    s.day(2)
    other = s.learn("My salary is paid on the 15th.")
    s.ask("On which day is Grandma Wilma's pension paid?", 5)
    query = s.value(semconv.KIND_QUERY, "payment day")
    chat = s.step("answer", inputs=[s.query], outputs=[query])
    s.retrieve(other.record, query=query)
    s.answer("I do not know.", other.record)
    s.flag("the 28th", told.message)
    return blame("bad_query", chat)


@scenario("The rewrite kept everything that counts; the search itself missed it.")
def good_rewrite_missed(s: Story) -> Expected:
    s.day(1)
    told = s.learn("Grandma Wilma's pension is paid on the 28th.")
    s.day(2)
    other = s.learn("My salary is paid on the 15th.")
    s.ask("On which day is Grandma Wilma's pension paid?", 5)
    query = s.value(semconv.KIND_QUERY, "Grandma Wilma pension paid day")
    s.step("rewrite", inputs=[s.query], outputs=[query])
    found = s.retrieve(other.record, query=query)
    prompt = s.assemble(other.record)
    s.answer("I do not know.", prompt)
    s.flag("the 28th", told.message)
    return blame("not_retrieved", found)


@scenario("Two agents: one stored it in the team's graph, which this answer reads and ignored.")
def read_from_the_teams_graph(s: Story) -> Expected:
    team = "team:harbour"
    s.day(1, "scout")
    s.add(graph=team)
    message = s.hear("The crane inspection is booked with Veritas.", graph=team)
    fact = s.extract(message, "Crane inspection is booked with Veritas", graph=team)
    record = s.create("Crane inspection is booked with Veritas", fact, graph=team)
    s.ask("With whom is the crane inspection booked?", 5)
    s.retrieve(record, reads=[team])
    prompt = s.assemble(record)
    answer = s.answer("With Lloyds.", prompt)
    s.flag("Veritas", message)
    return blame("ignored_context", answer)


@scenario("Half of the story: the record is there, but the extraction kept only the doctor.")
def second_sentence_omitted(s: Story) -> Expected:
    s.day(1)
    _, message = s.say(
        "Dr. Lindgren looked at my knee. She prescribed eight weeks of physiotherapy."
    )
    extract = s.extract(message, "Dr. Lindgren looked at the user's knee")
    s.decide((extract, "ADD", None))
    record = s.create("Dr. Lindgren looked at the user's knee", extract)
    s.turn("What did Dr. Lindgren prescribe?", "I have no note of it.", record)
    s.flag("eight weeks of physiotherapy", message)
    return blame("omission", extract)


@scenario("Only the answer says so: memory kept the right thing, and the judge was right too.")
def contradicted_the_prompt_with_a_no(s: Story) -> Expected:
    s.day(1)
    told = s.learn("The landlord said that pets are allowed in the flat.")
    turn = s.turn("Are pets allowed in the flat?", "No, pets are not allowed.", told.record)
    s.flag("Yes", told.message)
    return blame(("wrong_reasoning", "ignored_context", "insufficient_evidence"), turn.answer)


@scenario("A version from before tracing began was delivered; nothing contradicts it.")
def record_from_before_tracing(s: Story) -> Expected:
    s.day(5)
    old = s.value(semconv.KIND_MEMORY, "The bike rack takes four bikes", "house:3")
    turn = s.turn("How many bikes does the bike rack take?", "It takes six bikes.", old)
    s.flag("four")
    return blame("ignored_context", turn.answer)
