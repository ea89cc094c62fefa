"""Other words, other languages: right answers are never a fault, wrong ones keep their stage."""

from __future__ import annotations

from tests.contract.held_out.registry import scenario
from tests.contract.held_out.story import Expected, Story, blame

RIGHT = ("bad_judge", "insufficient_evidence")


def _right(s: Story, message: str, question: str, reply: str, expected: str) -> Expected:
    s.day(1)
    told = s.learn(message)
    s.turn(question, reply, told.record)
    s.flag(expected, told.message)
    return blame(RIGHT)


@scenario("Fourteen days are two weeks.")
def two_weeks_in_days(s: Story) -> Expected:
    return _right(
        s,
        "The cast has to stay on for two weeks.",
        "How long does the cast have to stay on?",
        "It has to stay on for 14 days.",
        "two weeks",
    )


@scenario("Ninety minutes are an hour and a half.")
def an_hour_and_a_half_in_minutes(s: Story) -> Expected:
    return _right(
        s,
        "The commute takes 1.5 hours each way.",
        "How long is my commute each way?",
        "About 90 minutes.",
        "1.5 hours",
    )


@scenario("The same price with another sign and grouping.")
def price_with_another_sign(s: Story) -> Expected:
    return _right(
        s,
        "The used cello costs 1200 euros.",
        "What does the used cello cost?",
        "It costs €1,200.",
        "1200 euros",
    )


@scenario("Noon is twelve o'clock.")
def noon_in_figures(s: Story) -> Expected:
    return _right(
        s,
        "The parcel will be delivered at noon.",
        "At what time will the parcel be delivered?",
        "At 12 pm.",
        "noon",
    )


@scenario("A yes given without the word.")
def yes_without_the_word(s: Story) -> Expected:
    return _right(
        s,
        "The vet said Bruno may eat carrots.",
        "Is Bruno allowed to eat carrots?",
        "Carrots are fine for Bruno, the vet said.",
        "Yes",
    )


@scenario("The month alone, where the day was expected: right as far as it goes.")
def less_exact_than_expected(s: Story) -> Expected:
    return _right(
        s,
        "We moved into the flat on 12 January 2026.",
        "When did we move into the flat?",
        "You moved in in January 2026.",
        "12 January 2026",
    )


@scenario("The reply is right and in the user's other language.")
def right_in_another_language(s: Story) -> Expected:
    return _right(
        s,
        "My sister lives in Munich.",
        "我姐姐住在哪里？",
        "她住在慕尼黑。",
        "Munich",
    )


@scenario("German, right, as a whole sentence.")
def right_in_german(s: Story) -> Expected:
    return _right(
        s,
        "Ich habe am 3. Juni Geburtstag.",
        "Wann habe ich Geburtstag?",
        "Du hast am 3. Juni Geburtstag.",
        "3. Juni",
    )


@scenario("German, wrong: the day in the reply stands nowhere in the prompt.")
def ignored_in_german(s: Story) -> Expected:
    s.day(1)
    told = s.learn("Ich habe am 3. Juni Geburtstag.")
    turn = s.turn("Wann habe ich Geburtstag?", "Am 28. August.", told.record)
    s.flag("3. Juni", told.message)
    return blame("ignored_context", turn.answer)


@scenario("French: the prompt has it, the reply declines.")
def declined_in_french(s: Story) -> Expected:
    s.day(1)
    told = s.learn("Mon numéro de casier à la piscine est le 317.")
    turn = s.turn(
        "Quel est mon numéro de casier à la piscine ?",
        "Je ne sais pas, désolé.",
        told.record,
    )
    s.flag("317", told.message)
    return blame("wrong_abstention", turn.answer)


@scenario("Korean: the prompt has it, the reply declines.")
def declined_in_korean(s: Story) -> Expected:
    s.day(1)
    told = s.learn("우리 강아지 이름은 보리입니다.")
    turn = s.turn("우리 강아지 이름이 뭐예요?", "잘 모르겠어요.", told.record)
    s.flag("보리", told.message)
    return blame("wrong_abstention", turn.answer)


@scenario("Japanese: the weight changed its digits in the fact.")
def distorted_number_in_japanese(s: Story) -> Expected:
    s.day(1)
    _, message = s.say("今日の体重は62キロでした。")
    extract = s.extract(message, "ユーザーの体重は26キロ")
    s.decide((extract, "ADD", None))
    record = s.create("ユーザーの体重は26キロ", extract)
    s.turn("私の体重は何キロですか？", "26キロです。", record)
    s.flag("62キロ", message)
    return blame("distortion", extract, aspect="number")


@scenario("Spanish: an extracted fact about the other daughter replaced the school.")
def overwritten_in_spanish(s: Story) -> Expected:
    s.day(1)
    right = s.learn("Lucía estudia en el colegio Cervantes.")
    s.day(4)
    _, message = s.say("Marta estudia en el instituto Goya.")
    fact = s.extract(message, "Marta estudia en el instituto Goya")
    decide = s.decide((fact, "UPDATE", right.record))
    wrong = s.update(right.record, "Marta estudia en el instituto Goya", fact)
    s.turn("¿En qué colegio estudia Lucía?", "No tengo información.", wrong)
    s.flag("Cervantes", right.message)
    return blame("overwritten", decide)


@scenario("A number in words became another number in figures.")
def twelve_became_twenty(s: Story) -> Expected:
    s.day(1)
    _, message = s.say("There are twelve hens in our coop now.")
    extract = s.extract(message, "User has 20 hens in the coop")
    s.decide((extract, "ADD", None))
    record = s.create("User has 20 hens in the coop", extract)
    s.turn("How many hens are in our coop?", "There are 20 hens.", record)
    s.flag("twelve", message)
    return blame("distortion", extract, aspect="number")


@scenario("The data set says in words that it was never mentioned; the reply made it up.")
def expected_decline_in_words(s: Story) -> Expected:
    s.day(1)
    told = s.learn("I collect vinyl records.")
    turn = s.turn("Which record did I buy first?", "You bought Abbey Road first.", told.record)
    s.flag("The user never mentioned it.")
    return blame("hallucinated", turn.answer)


@scenario("A fact in other words than the message is a carrier all the same.")
def paraphrased_fact_was_deleted(s: Story) -> Expected:
    s.day(1)
    _, message = s.say("Ugh, penicillin gives me a rash every single time.")
    fact = s.extract(message, "User is allergic to penicillin")
    s.decide((fact, "ADD", None))
    record = s.create("User is allergic to penicillin", fact)
    s.day(3)
    delete = s.delete(record)
    s.day(4)
    other = s.learn("I take vitamin D in winter.")
    s.turn("Which medicine am I allergic to?", "I do not know of any.", other.record)
    s.flag("penicillin", message)
    return blame("wrongly_deleted", delete)
