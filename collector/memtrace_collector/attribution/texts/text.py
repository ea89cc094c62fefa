"""Words of a text, comparable across wordings: pure, language-neutral where it can be.

A token is a case-folded, lightly stemmed word, a number in digits, or (for scripts written
without spaces) a pair of characters. Nothing here knows about memory.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_CLOCK = r"(?<![\d:.,])\d{1,2}(?::[0-5]\d(?!\d)(?:\s?[AaPp]\.?[Mm]\b)?|\s?[AaPp]\.?[Mm]\b)"
_PIECE = re.compile(
    rf"[{_CJK}]+|{_CLOCK}|\d+(?:[.,]\d+)*(?:(?:st|nd|rd|th)(?![^\W\d_]))?"
    rf"|(?:(?![{_CJK}])[^\W_])+(?:['’](?:(?![{_CJK}])[^\W\d_])+)*"
    r"|[.!?;\n。！？；]"
)
_ASCII_PIECE = re.compile(
    rf"{_CLOCK}|[0-9]+(?:[.,][0-9]+)*(?:(?:st|nd|rd|th)(?![A-Za-z]))?"
    r"|[A-Za-z0-9]+(?:'[A-Za-z]+)*|[.!?;\n]"
)
"""The same as :data:`_PIECE` on what is ASCII, several times as fast."""
_CLOCK_TIME = re.compile(_CLOCK)
_IS_CJK = re.compile(f"[{_CJK}]")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；])|[\n;]+")
_ABBREVIATIONS = frozenset({"dr", "mr", "mrs", "ms", "prof", "st", "jr", "sr", "vs", "no"})
"""Words whose full stop ends no sentence."""
_ONE_SCRIPT = re.compile(r"[\u3040-\u309f]+|[\u30a0-\u30ff]+|[^\u3040-\u30ff]+")
"""Hiragana, katakana, the rest."""
_PARTICLE = re.compile(r"[\u3040-\u309f]")
_JAPANESE_ENDINGS = "です でした ですか ます ました ますか から まで には では して した"
_ENDINGS = frozenset(_JAPANESE_ENDINGS.split())
_NAMED_CLOCKS = {
    "noon": ("12:00", "pm"),
    "midday": ("12:00", "pm"),
    "midnight": ("12:00", "am"),
}
_BREAKS = frozenset(".!?;\n。！？；")
_ORDINAL = re.compile(r"^(\d+)(?:st|nd|rd|th)$")

_STOP_WORDS = """
    a about above after again all also am an and any are as at be because been before being both
    but by can could did do does doing down during each few for from further had has have having
    he her here hers him his how i if in into is it its itself just me mine more most my of off
    on once only or other our ours out over own please same she should so some such than that
    the their theirs them then there these they this those to too under until up us very was we
    were what when where which while who whom whose why will with would you your yours im ive id
    youre theyre hes shes its thats lets well oh ok okay yes yeah um hmm really actually now
    currently still may might shall must dr mr mrs ms prof got get one way let know think say
    tell call name called named time thing
"""
_STOP_WORDS_ELSEWHERE = """
    der das dem des ein eine einen einem einer ist sind und oder im auf für mit von zu zum zur mein
    meine meinen meiner dein deine ich du er sie wir ihr wie wo wann wer
    el la los las un una unos unas y o en es mi mis su sus que por para con del al lo de
    le les une du et est dans mes ses je tu il elle nous vous qui où
    il gli di che nel um uma os da na meu minha
"""
"""German, Spanish, French, Italian and Portuguese; none that says something in English."""
STOP_WORDS = frozenset(_STOP_WORDS.split()) | frozenset(_STOP_WORDS_ELSEWHERE.split())
"""Words that carry no information of their own (after contraction marks are removed)."""

_NEGATIONS = """
    no not never none nobody nothing neither nor without cannot cant dont doesnt didnt isnt
    arent wasnt werent wont wouldnt shouldnt couldnt hasnt havent hadnt aint
    nicht kein keine keinen nie nunca jamais pas
"""
NEGATIONS = frozenset(_NEGATIONS.split())
_NEGATION_REACH = 4

GENERIC_NAMES = frozenset({"user", "assistant", "speaker", "person", "agent", "customer", "memory"})
"""What texts about an owner call the people in the conversation."""

_CARDINALS = """
    zero - two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen twenty
"""
_ORDINALS = """
    zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth
"""
_TENS = """
    thirty:30 forty:40 fifty:50 sixty:60 seventy:70 eighty:80 ninety:90 hundred:100
    thousand:1000 million:1000000 once:1 twice:2 thrice:3 dozen:12
"""
NUMBER_WORDS = (
    {word: str(value) for value, word in enumerate(_ORDINALS.split())}
    | {word: str(value) for value, word in enumerate(_CARDINALS.split())}
    | dict(pair.split(":") for pair in _TENS.split())
)
"""``one`` is left out: it is mostly a pronoun."""

_IRREGULAR_FORMS = """
    ran:run went:go gone:go ate:eat eaten:eat bought:buy met:meet took:take taken:take saw:see
    seen:see began:begin begun:begin wrote:write written:write left:leave told:tell said:say
    gave:give given:give made:make won:win sold:sell lost:lose found:find felt:feel kept:keep
    paid:pay sent:send spent:spend taught:teach thought:think drove:drive driven:drive flew:fly
    flown:fly broke:break broken:break chose:choose chosen:choose grew:grow grown:grow knew:know
    known:know spoke:speak spoken:speak swam:swim wore:wear worn:wear came:come became:become
    built:build held:hold led:lead had:have has:have children:child men:man women:woman
    people:person wives:wife lives:live better:good best:good worse:bad worst:bad mum:mother
    mom:mother dad:father meant:mean heard:hear slept:sleep daily:day
"""
_IRREGULAR = dict(pair.split(":") for pair in _IRREGULAR_FORMS.split())
_SUFFIX_LENGTHS = """
    ational:4 ations:4 ation:4 ments:4 ment:4 nesses:4 ness:4 ingly:4 edly:4 ically:4 ities:4
    ity:4 ings:3 ing:3 ies:3 ied:3 ions:4 ion:4 ers:4 est:5 ed:3 es:3 ic:5 al:5 ly:4 er:4 s:3
"""
"""Suffix and how much of the word must remain, longest first."""
_SUFFIXES = tuple(
    (suffix, int(rest)) for suffix, _, rest in (p.partition(":") for p in _SUFFIX_LENGTHS.split())
)


class Word(NamedTuple):
    """A token in its place: ``surface`` as written, ``clause`` counts sentence breaks."""

    token: str
    surface: str
    clause: int


def normalise(text: str) -> str:
    """NFKC, with one kind of apostrophe."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text).replace("’", "'")


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """A light stem of a case-folded word: equal for the usual inflections of one word."""
    word = _IRREGULAR.get(word, word)
    if not word.isascii() or len(word) < 4:
        return word
    for suffix, shortest in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= shortest:
            if suffix == "s" and word.endswith(("ss", "us", "is")):
                break
            word = word[: -len(suffix)]
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word[-1] in "eiy" else word


def _clock(piece: str) -> list[str]:
    """A time of day on the twelve-hour dial, and its half of the day where that is said."""
    folded = re.sub(r"[\s.]", "", piece.casefold())
    hour, _, minute = folded.rstrip("apm").partition(":")
    number = int(hour)
    said = folded[-2:] if folded.endswith("m") else ""
    if not said and not 1 <= number <= 12:
        said = "pm" if number > 12 else "am"
    return [f"{number % 12 or 12}:{minute or '00'}", *([said] if said else [])]


def _number(piece: str) -> str:
    ordinal = _ORDINAL.match(piece)
    digits = (ordinal[1] if ordinal else piece).replace(",", "")
    return digits.rstrip("0").rstrip(".") if "." in digits and digits.count(".") == 1 else digits


@lru_cache(maxsize=4_096)
def words(text: str) -> tuple[Word, ...]:
    """Every token of a text in order, stop words included."""
    found: list[Word] = []
    clause = 0
    for piece in _pieces(text):
        if piece in _BREAKS:
            clause += not (piece == "." and found and _abbreviates(found[-1].surface))
        elif _IS_CJK.match(piece):
            found.extend(Word(pair, pair, clause) for pair in _pairs(piece))
        else:
            found.extend(Word(token, piece, clause) for token in _tokens(piece))
    return tuple(found)


def _pieces(text: str) -> list[str]:
    normal = normalise(text)
    return (_ASCII_PIECE if normal.isascii() else _PIECE).findall(normal)


@lru_cache(maxsize=32_768)
def _tokens(piece: str) -> tuple[str, ...]:
    """The tokens of one piece, in order; of a sentence break none."""
    if piece in _BREAKS:
        return ()
    if _IS_CJK.match(piece):
        return tuple(_pairs(piece))
    if piece.casefold() in _NAMED_CLOCKS:
        return _NAMED_CLOCKS[piece.casefold()]
    if _CLOCK_TIME.fullmatch(piece):
        return tuple(_clock(piece))
    if piece[0].isdigit():
        return (_number(piece.casefold()),)
    return (_token(piece),)


@lru_cache(maxsize=32_768)
def _telling_tokens(piece: str) -> tuple[str, ...]:
    return tuple(
        token
        for token in _tokens(piece)
        if token not in STOP_WORDS and token not in NEGATIONS and token not in GENERIC_NAMES
    )


def _pairs(piece: str) -> list[str]:
    """Pairs of characters of one script each; Japanese particles and endings say nothing."""
    runs = _ONE_SCRIPT.findall(piece)
    telling = [run for run in runs if run not in _ENDINGS and not _PARTICLE.fullmatch(run)]
    return [
        pair
        for run in telling or runs
        for pair in ([run[i : i + 2] for i in range(len(run) - 1)] or [run])
    ]


def _abbreviates(surface: str) -> bool:
    return surface[0].isupper() and surface.casefold() in _ABBREVIATIONS


def _token(piece: str) -> str:
    """The token of one word as written."""
    folded = piece.casefold()
    if folded.endswith("'s"):
        folded = folded[:-2]
    folded = folded.replace("'", "")
    if folded in STOP_WORDS or folded in NEGATIONS:
        return folded
    return NUMBER_WORDS.get(folded) or stem(folded)


@lru_cache(maxsize=4_096)
def content_tokens(text: str) -> frozenset[str]:
    """The tokens that say something: without stop words, negations and generic names."""
    found: set[str] = set()
    for piece in set(_pieces(text)):
        found.update(_telling_tokens(piece))
    return frozenset(found)


def scripts(text: str) -> frozenset[str]:
    """The scripts of a text's letters, by the first word of their Unicode names."""
    return frozenset(unicodedata.name(char, "?").split()[0] for char in text if char.isalpha())


def proper_names(text: str) -> frozenset[str]:
    """Tokens written with a capital inside a sentence, where case says something."""
    names = set()
    previous: Word | None = None
    for word in words(text):
        inside = previous is not None and previous.clause == word.clause
        if inside and word.surface[0].isupper() and word.surface.casefold() not in STOP_WORDS:
            names.add(word.token)
        previous = word
    return frozenset(names - GENERIC_NAMES)


def unlike(tokens: Iterable[str], known: frozenset[str]) -> frozenset[str]:
    """Those tokens that are no form of a known one: most of the shorter word must lead both."""
    return frozenset(token for token in tokens if not any(_same_word(token, k) for k in known))


def _same_word(one: str, other: str) -> bool:
    lead = max(4, min(len(one), len(other)) - 1)
    return one == other or (one.isalpha() and other.isalpha() and one[:lead] == other[:lead])


def numbers(tokens: Iterable[str]) -> frozenset[str]:
    """Those tokens that are numbers."""
    return frozenset(token for token in tokens if token[:1].isdigit())


def negated(text: str, tokens: frozenset[str]) -> frozenset[str]:
    """Those ``tokens`` that stand shortly after a negation in the same clause."""
    found: set[str] = set()
    since, clause = _NEGATION_REACH + 1, -1
    for word in words(text):
        if word.clause != clause:
            since, clause = _NEGATION_REACH + 1, word.clause
        if word.token in NEGATIONS:
            since = 0
        elif since < _NEGATION_REACH and word.token in tokens:
            found.add(word.token)
        since += 1
    return frozenset(found)


def polarity(text: str) -> bool | None:
    """True for a text that opens with yes, False with no, None otherwise."""
    opening = re.match(
        r"\W*(yes|yeah|yep|correct|true|no|nope|not|false)\b", normalise(text).casefold()
    )
    return None if opening is None else opening[1] in ("yes", "yeah", "yep", "correct", "true")


def sentences(text: str) -> list[str]:
    """A text's sentences, never empty ones."""
    return list(_sentences_kept(text) if len(text) <= _KEPT_CHARACTERS else _sentences(text))


def _sentences(text: str) -> tuple[str, ...]:
    found: list[str] = []
    for part in filter(None, (part.strip() for part in _SENTENCE.split(normalise(text)))):
        last = found[-1].rsplit(maxsplit=1)[-1].rstrip(".") if found else ""
        if last and found[-1].endswith(".") and _abbreviates(last):
            found[-1] = f"{found[-1]} {part}"
        else:
            found.append(part)
    return tuple(found)


_KEPT_CHARACTERS = 4_000
_sentences_kept = lru_cache(maxsize=8_192)(_sentences)


def coverage(needed: frozenset[str], texts: Iterable[str]) -> float:
    """Share of the needed tokens found in the texts together (1.0 when none is needed)."""
    if not needed:
        return 1.0
    pooled: set[str] = set()
    for text in texts:
        pooled |= content_tokens(text) & needed
    return len(pooled) / len(needed)


_KNOWING = (
    "know|sure|information|info|recall|remember|mention(?:ed)?|records?|find|found|details?|memory|"
    "memories|certain|say|told|tell|answer|specified|available|provided|determine"
)
_DECLINES = re.compile(
    r"\b(?:(?:do|does|did|could|has|have|had)(?:n't| not)|can(?:'t|not| not)|(?:am|'m|is|are) not|"
    rf"isn't|not|no|nothing)\b[^.!?]{{0,40}}\b(?:{_KNOWING})\b"
    r"|\b(?:unknown|unclear|no idea|unable to|unanswerable|n/a)\b"
    r"|\b(?:not|isn't|wasn't|haven't|have not) (?:been )?"
    r"(?:mentioned|specified|available|provided|enough|told|shared)\b"
    r"|\bnever (?:told|mentioned|said|shared|heard|stored)\b"
    r"|\b(?:weiß|weiss|kenne) (?:ich|es|das)?[^.!?]{0,30}\bnicht\b|\bnicht bekannt\b"
    r"|\bkeine (?:ahnung|information\w*|angabe\w*)\b"
    r"|\bno (?:lo )?(?:sé|sabría|recuerdo|tengo (?:información|datos))\b"
    r"|\bje (?:ne |n')[^.!?]{0,12}\b(?:sais|trouve|connais)\b|\bnon lo so\b|\bnão sei\b"
    r"|(?:不知道|不清楚|没有(?:提到|相关|信息)|无法|分かりません|わかりません|知りません|모르겠)",
    re.IGNORECASE,
)


def asks(said: str) -> bool:
    """Whether a text ends in a question mark."""
    return said.rstrip().endswith(("?", "？"))


def declines(reply: str) -> bool:
    """Whether a reply says that it does not know."""
    return _DECLINES.search(normalise(reply)) is not None
