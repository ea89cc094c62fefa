"""Rows of the hop *used*: what did the reply make of what the prompt had? Pure."""

from __future__ import annotations

from dataclasses import replace

from memtrace_collector.attribution.carrying import passages
from memtrace_collector.attribution.carrying.carriers import Sought
from memtrace_collector.attribution.carrying.needs import asks_when, reply_content
from memtrace_collector.attribution.carrying.refs import kind, sources_within
from memtrace_collector.attribution.carrying.view import View
from memtrace_collector.attribution.findings import TEXT, Finding, abstain, at, claim
from memtrace_collector.attribution.rules.not_updated import dated, same_individual
from memtrace_collector.attribution.rules.sanity import judged_answer
from memtrace_collector.attribution.rules.shown import in_context
from memtrace_collector.attribution.texts import dates, text
from memtrace_collector.attribution.texts.wording import SURELY_COPIED, exchanges
from memtrace_collector.attribution.verdict import Decisive
from memtrace_otel import semconv

MOST_OF_IT = 0.5
"""A reply builds on an item when more than this share of its content stands in it."""
FREE_WORDS = 4
"""An expected answer of so many common words is often given in others."""


def _response(
    sought: Sought,
    error_type: str,
    says: str,
    *,
    other: str | None = None,
    aspect: str | None = None,
) -> Finding:
    view = sought.view
    right = next(iter(in_context(sought)), None)
    claims = [claim("had it in the prompt", view.answer, right)] if right else []
    return Finding(
        error_type=error_type,
        decisive=(view.answer.key,),
        last_right=right,
        first_wrong=view.reply_ref,
        aspect=aspect,
        basis=("structure", TEXT) if right else (TEXT,),
        claims=(*claims, claim(says, view.answer, other or view.reply_ref)),
    )


def wrong_abstention(sought: Sought) -> Finding | None:
    """The context carries it, the reply declines."""
    reply = sought.view.reply
    if reply is None or not in_context(sought) or not text.declines(reply):
        return None
    return _response(sought, "wrong_abstention", "declined to answer")


def distracted(sought: Sought) -> Finding | None:
    """The reply's content stands in another item of the context."""
    content = _content(sought)
    answerable = sought.need.kind != "unanswerable"
    if not content or (answerable and not in_context(sought)):
        return None
    standing = _standing_in(sought, content)
    if standing is None or (answerable and _conflict_was_decidable(sought, *standing)):
        return None
    other = standing[0]
    if not answerable and not _was_said(sought.view, other, content):
        return abstain(
            "unseen_writer",
            claims=[claim("says it; who said that first was not seen", sought.view.answer, other)],
        )
    return _response(sought, "distracted", "is what the reply says instead", other=other)


def _was_said(view: View, ref: str, content: frozenset[str]) -> bool:
    """Whether a shown value goes back to a message that says some of it: else it may have been
    invented by whoever wrote it."""
    waiting, seen = [ref], {ref}
    while waiting:
        value = waiting.pop()
        sources = [s for op in view.producers(value) for s in sources_within(op, value)]
        repeats_an_answer = any(kind(source) == semconv.KIND_ANSWER for source in sources)
        if (
            kind(value) in (semconv.KIND_MESSAGE, semconv.KIND_DOCUMENT)
            and not repeats_an_answer
            and text.coverage(content, [view.text(value) or ""]) > 0
        ):
            return True
        fresh = [source for source in sources if source not in seen]
        seen.update(fresh)
        waiting.extend(fresh)
    return kind(ref) == semconv.KIND_CONTEXT


def _content(sought: Sought) -> frozenset[str]:
    reply = sought.view.reply
    return (
        frozenset() if reply is None or text.declines(reply) else reply_content(sought.need, reply)
    )


def _parts(sought: Sought) -> list[tuple[str, str]]:
    """The single items of the context with their texts, carriers apart; of a buffer its lines."""
    view = sought.view
    values = [(ref, said) for ref in view.shown if (said := view.text(ref)) is not None]
    if not values:
        values = [
            (ref, line) for ref in view.contexts for line in text.sentences(view.text(ref) or "")
        ]
    lines = [(ref, line) for ref, said in values for line in passages.parts(said, ())]
    found = [(ref, said) for ref, said in values if not sought.stated(said, ref)]
    found += [each for each in lines if each not in values and not _says_it(sought, each[1])]
    return [*found, *(each for each in values if _is_the_wrong_one(sought, each[1]))]


def _says_it(sought: Sought, line: str) -> bool:
    """Whether a line of a buffer is the one that carries the item."""
    known = (sought.view.text(ref) or "" for ref in sought.sources)
    return sought.stated(line) is True or any(
        passages.quoted_after(line, said) is not None for said in known
    )


def _is_the_wrong_one(sought: Sought, said: str) -> bool:
    """Whether a value that resembles the evidence is what a wrong reply repeats."""
    reply = sought.view.reply or ""
    return sought.loose and len(reply) >= len(said) / 2 and reply.strip() in said


def _standing_in(sought: Sought, content: frozenset[str]) -> tuple[str, str] | None:
    """The item of the context that says what the reply says, and its text."""
    said = _reply_dates(sought.view) if sought.item.temporal else []
    if said:
        for ref, part in _parts(sought):
            moment = sought.view.moment(ref)
            named = dates.phrases(part, moment.day if moment else None)
            if any(dates.matches(said, phrase.readings) for phrase in named):
                return ref, part
        return None
    return next((each for each in _parts(sought) if text.coverage(content, [each[1]]) == 1), None)


def _reply_dates(view: View) -> list[dates.Interval]:
    return [r for phrase in dates.phrases(view.reply or "", view.asked_on) for r in phrase.readings]


def _conflict_was_decidable(sought: Sought, other: str, said: str) -> bool:
    """Both the right item and one that contradicts it on the same subject were shown."""
    return (
        other not in sought.view.contexts
        and sought.about(said)
        and same_individual(sought, sought.among(sought.view.shown), said)
        and not sought.other_owner(said, other)
    )


def wrong_reasoning(sought: Sought) -> Finding | None:
    """The reply builds on the right item and gets it wrong; or two conflicting items were shown
    with enough to choose."""
    content = _content(sought)
    right = in_context(sought)
    if not right or not content or not sought.need.question:
        return None
    if sought.loose and not surely_wrong(sought):
        return None
    standing = _standing_in(sought, content)
    if standing is not None:
        other = standing[0]
        if not _order_is_known(sought.view, other):
            return abstain(
                "unseen_writer",
                claims=[
                    claim("contradicts it; who wrote it was not seen", sought.view.answer, other)
                ],
            )
        found = _response(sought, "wrong_reasoning", "was chosen over the right one", other=other)
        return replace(found, also=_stored_beside(sought, other))
    if sought.item.temporal:
        if _reply_dates(sought.view) and _is_on_topic(sought):
            return _response(
                sought, "wrong_reasoning", "gives another time than the prompt does", aspect="time"
            )
        return None
    if _may_stand_in_an_unread_item(sought, content):
        return abstain("no_content")
    carrying = [sought.view.text(ref) or "" for ref in sought.among(sought.view.shown) or right]
    # the words of the expected answer itself (units, names) show no use of the item
    share = text.coverage(content - sought.item.tokens, carrying)
    return (
        _response(sought, "wrong_reasoning", "builds on the right item and gets it wrong")
        if share > MOST_OF_IT
        else None
    )


def _order_is_known(view: View, other: str) -> bool:
    """Whether the prompt or the writes say which of two contradicting records is the newer."""
    if dated(view) or kind(other) != semconv.KIND_MEMORY:
        return True
    records = [ref for ref in view.shown if kind(ref) == semconv.KIND_MEMORY]
    return all(view.producers(ref) for ref in records)


def _may_stand_in_an_unread_item(sought: Sought, content: frozenset[str]) -> bool:
    """Whether the reply stands in the prompt, of which an item's own text is not known."""
    view = sought.view
    prompts = [view.text(ref) or "" for ref in view.contexts]
    return text.coverage(content, prompts) == 1 and any(
        view.text(ref) is None for ref in view.shown
    )


def _stored_beside(sought: Sought, other: str) -> tuple[Decisive, ...]:
    """In a system that only adds, the write that left the older value standing."""
    view = sought.view
    if dated(view) or any(op.step == semconv.STEP_DECIDE for op in view.operations):
        return ()
    right = [ref for ref in sought.among(view.shown) if kind(ref) == semconv.KIND_MEMORY]
    writes = [op for ref in right for op in view.producers(ref)]
    return tuple(at(op, "not_updated", right[-1], other) for op in writes[-1:])


def _is_on_topic(sought: Sought) -> bool:
    """Whether the reply's time is near enough to have been computed from the right item."""
    distance = dates.nearest(sought.item.intervals, _reply_dates(sought.view))
    return distance is not None and distance <= 31


def ignored_context(sought: Sought) -> Finding | None:
    """The context carries it, the reply's content stands nowhere in the context."""
    if not in_context(sought) or sought.view.reply is None:
        return None
    if sought.derived:
        return _made_up_beside(sought)
    if _may_say_it(sought) and judged_answer(sought.view, sought.need) is not False:
        return abstain(
            claims=[claim("may be what the prompt says in other words", sought.view.answer)]
        )
    return _response(sought, "ignored_context", "says what the prompt does not")


def _made_up_beside(sought: Sought) -> Finding | None:
    """Without an expected answer: none of what the reply says stands in the prompt."""
    view, content = sought.view, _content(sought)
    known = [view.text(ref) for ref in (*view.contexts, *view.shown)]
    if not content or None in known or text.coverage(content, [each for each in known if each]):
        return abstain(claims=[claim("may be what the prompt says in other words", view.answer)])
    return _response(sought, "ignored_context", "says what the prompt does not")


def _may_say_it(sought: Sought) -> bool:
    """Whether a reply may give what was expected in other words: so many words are free, or it
    has some of the evidence's own where that says it in others."""
    content = _content(sought)
    gives_another_time = asks_when(sought.need.asked) and _reply_dates(sought.view)
    if surely_wrong(sought) or gives_another_time:
        return False
    if not sought.loose:
        enough = 2 * len(content) >= len(sought.item.tokens)
        return _can_be_said_otherwise(sought) and enough and not text.numbers(content)
    values = (*sought.sources, *sought.among(sought.view.shown))
    known = [said for ref in values if (said := sought.view.text(ref)) is not None]
    single = [said for said in known if passages.parts(said, ()) == [said]]
    return not content or text.coverage(content, [sought.item.text, *(single or known)]) > 0


def surely_wrong(sought: Sought) -> bool:
    """Whether a reply repeats the expected answer with other words in one place."""
    found = exchanges(sought.need.expected, sought.view.reply or "")
    return any(each.shared >= SURELY_COPIED for each in found)


def _can_be_said_otherwise(sought: Sought) -> bool:
    """Whether many common words were expected: a right reply need not repeat any of them."""
    item = sought.item
    fixed = text.numbers(item.tokens) or item.tokens & text.proper_names(f"x {item.text}")
    return len(item.tokens) >= FREE_WORDS and not fixed and not item.temporal


def hallucinated(sought: Sought) -> Finding | None:
    """Nothing carries it, and the reply asserts what stands nowhere."""
    view = sought.view
    content = _content(sought)
    if sought.need.kind != "unanswerable" or not content:
        return None
    known = [view.text(ref) for ref in (*view.contexts, *view.shown, *view.delivered)]
    if None in known:
        return abstain("no_content")
    lines = [line for each in known if each for line in passages.parts(each, ())]
    if any(text.coverage(content, [line]) == 1 for line in lines):
        return None
    return _response(sought, "hallucinated", "asserts what stands nowhere")


def no_content(sought: Sought) -> Finding | None:
    """What the reply made of it cannot be judged without the texts."""
    view = sought.view
    if view.reply is None or (view.query is not None and view.question is None):
        return abstain("no_content")
    unread = [ref for ref in view.contexts or view.shown if view.text(view.version_at(ref)) is None]
    return abstain("no_content") if unread or sought.by_descent else None
