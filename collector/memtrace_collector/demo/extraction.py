"""The stand-in's fact extraction: which sentences of a conversation say something of the user."""

from __future__ import annotations

import re
from datetime import date, timedelta

from memtrace_collector.demo.language import sentences, words

_TURN = re.compile(r"^(system|user|assistant): ", re.MULTILINE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_FIRST_PERSON = re.compile(r"\b(I|I'm|I've|I'll|I'd|my|me)\b", re.IGNORECASE)
_OPENING = re.compile(
    r"^(?:(?:okay|ok|oh|ah|hi|hello|sure|well|so|but|right|yes|wow|wait|ugh|honestly|basically"
    r"|thankfully|no problem|great|perfect)\b[,.!:]*\s+)+",
    re.IGNORECASE,
)
_CHATTER = re.compile(
    r"\b(I'm ready|I'm really keen|let you know|I guess|I thought I gave|let's see|tell me"
    r"|you're (?:absolutely )?right|I(?:'m| am) back|makes? sense|I know it sounds|show me"
    r"|sounds (?:really )?(?:good|great))\b",
    re.IGNORECASE,
)
_SIGNAL = re.compile(
    r"\b(?:prefer|like|love|want|need|decided|usual|usually|often|booked|worried|hoping|looking"
    r"|goal|budget|morning person|option|using|installed|talking about|concerned|beginner"
    r"|rather)\b",
    re.IGNORECASE,
)
_POINTING = re.compile(r"(?:It|That|This|These|Those|There)\b")
_REQUEST = re.compile(r"(?:Please|Thanks|Let me|Hey)\b")
_NAME_OR_NUMBER = re.compile(r"\d|(?<=\w )(?!I\b)[A-Z][a-z]+|'[A-Z]")
_DECISION = re.compile(
    r"^(?:so )?let's (?:just )?(?=proceed with |go with |go ahead and )", re.IGNORECASE
)
_THANKS_FOR = re.compile(
    r"^.*\bthanks for getting (?P<what>.+?) (?P<done>booked|sorted)\b.*$", re.IGNORECASE
)
_ASKED_FOR = re.compile(r"\bfor your ((?:\w+ ){0,2}(?:sessions|plan|trip))\b")
_LABEL = re.compile(r"^[A-Z][\w ]{2,40}: (?=[A-Z])")
_THIRD_PERSON = {
    "want": "wants", "need": "needs", "like": "likes", "love": "loves", "think": "thinks",
    "feel": "feels", "get": "gets", "stress": "stresses", "prefer": "prefers", "hate": "hates",
    "work": "works", "expect": "expects", "eat": "eats", "appreciate": "appreciates",
    "don't": "doesn't",
}  # fmt: skip
_REPHRASE: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\bI'm\b", "User is"),
        (r"\bI am\b", "User is"),
        (r"\bI've\b", "User has"),
        (r"\bI have\b", "User has"),
        (r"\bI'll\b", "User will"),
        (r"\bI'd\b", "User would"),
        (r"\bI don't\b", "User doesn't"),
        (r"\bI\b", "User"),
        (r"\b[Mm]y\b", "user's"),
        (r"\bme\b", "the user"),
        (r"\bmyself\b", "themselves"),
    )
)
_VERB_AFTER_USER = re.compile(r"\bUser((?: \w+ly| often| also| just| always)?) (\w+)\b")


def extract_facts(conversation: str) -> list[str]:
    """Facts about the user in a conversation of ``role: text`` turns, as mem0 renders one.

    Relative days are resolved against the first date of a system line, when there is one.
    """
    facts: list[str] = []
    today: date | None = None
    asked = ""
    for role, text in _turns(conversation):
        if role == "system":
            match = _DATE.search(text)
            today = date.fromisoformat(match.group()) if match else today
        elif role == "assistant":
            topic = _ASKED_FOR.search(text)
            asked = topic.group(1) if topic else ""
        else:
            facts += _facts_of_message(text, today, asked)
    return list(dict.fromkeys(facts))


def _turns(conversation: str) -> list[tuple[str, str]]:
    parts = _TURN.split(conversation)[1:]
    return [(parts[i], parts[i + 1].strip()) for i in range(0, len(parts) - 1, 2)]


def _facts_of_message(text: str, today: date | None, asked: str) -> list[str]:
    facts = []
    for sentence in sentences(text):
        fact = _fact(_OPENING.sub("", sentence), asked)
        if fact:
            facts.append(_resolve_days(fact, today) if today else fact)
    return facts


def _fact(sentence: str, asked: str) -> str | None:
    thanks = _THANKS_FOR.match(sentence)
    if thanks:
        return f"User has {thanks['what']} {thanks['done']}."
    decision = _DECISION.sub("", sentence)
    if decision != sentence:
        return f"User decided to {decision}"
    return rephrase(sentence, asked) if _worth_keeping(sentence) else None


def _worth_keeping(sentence: str) -> bool:
    named = bool(_NAME_OR_NUMBER.search(sentence))
    if sentence.endswith("?") or len(words(sentence)) < (3 if named else 5):
        return False
    if _CHATTER.search(sentence) or _REQUEST.match(sentence):
        return False
    if _POINTING.match(sentence) and not re.search(r"\d", sentence):
        return False
    if _FIRST_PERSON.search(sentence):
        return named or bool(_SIGNAL.search(sentence))
    about_assistant = re.search(r"\byou(?:r|'re|'ve)?\b", sentence, re.IGNORECASE)
    return named and not about_assistant


def rephrase(sentence: str, asked: str = "") -> str:
    """``sentence`` in the third person; ``asked``: what the assistant had asked about."""
    text = _LABEL.sub(lambda label: f"{label.group()[:-2]}: ", sentence)
    for pattern, replacement in _REPHRASE:
        text = pattern.sub(replacement, text)
    text = _VERB_AFTER_USER.sub(_third_person, text)
    if asked and asked.rsplit(maxsplit=1)[-1] not in text and "decided on" in text:
        text = text.replace("decided on", f"decided on {asked} on", 1)
    return text[0].upper() + text[1:]


def _third_person(match: re.Match[str]) -> str:
    verb = match.group(2)
    return f"User{match.group(1)} {_THIRD_PERSON.get(verb, verb)}"


def _resolve_days(text: str, today: date) -> str:
    tomorrow = today + timedelta(days=1)
    yesterday = today - timedelta(days=1)
    for word, day in (("tonight", today), ("tomorrow", tomorrow), ("yesterday", yesterday)):
        text = re.sub(rf"\b{word}\b(?! \()", f"{word} ({day.isoformat()})", text)
    return text
