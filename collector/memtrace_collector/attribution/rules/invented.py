"""The row *invented*: the reply rests on a fact that nothing said. Pure."""

from __future__ import annotations

from memtrace_collector.attribution.carrying.carriers import Sought
from memtrace_collector.attribution.carrying.needs import reply_content
from memtrace_collector.attribution.carrying.refs import kind, sources_within
from memtrace_collector.attribution.carrying.view import View
from memtrace_collector.attribution.findings import Finding, claim
from memtrace_collector.attribution.texts import dates, text
from memtrace_collector.graph.facts import Operation
from memtrace_otel import semconv


def invented(sought: Sought) -> Finding | None:
    """The reply's content comes from a fact that no input supports."""
    view = sought.view
    reply = view.reply
    if sought.by_descent or reply is None or text.declines(reply) or sought.among(view.shown):
        return None
    content = reply_content(sought.need, reply)
    if not content:
        return None
    for ref in view.shown:
        shown = view.text(ref)
        if kind(ref) != semconv.KIND_MEMORY or shown is None or text.coverage(content, [shown]) < 1:
            continue
        origin = _author_of_fact(view, ref)
        if origin is not None:
            origin = _repeated_answer(view, origin, content) or origin
        if origin is None or not _unsupported(view, origin, content):
            continue
        op, fact = origin
        return Finding(
            error_type="invented",
            decisive=(op.key,),
            first_wrong=fact,
            weight=0.9,
            claims=(claim("made a fact that nothing it read says", op, fact),),
        )
    return None


def _author_of_fact(view: View, version: str) -> tuple[Operation, str] | None:
    """The extraction (or chat) that first made the text of a version, and its fact."""
    ref = version
    for _ in range(8):
        makers = view.producers(ref)
        if not makers:
            return None
        op = makers[0]
        if op.step in (semconv.STEP_EXTRACT, semconv.STEP_ANSWER):
            return op, ref
        facts = [source for source in sources_within(op, ref) if kind(source) == semconv.KIND_FACT]
        if len(facts) != 1:
            return None
        ref = facts[0]
    return None


def _repeated_answer(
    view: View, origin: tuple[Operation, str], content: frozenset[str]
) -> tuple[Operation, str] | None:
    """The earlier answer that a fact repeats: a message it was made from has that as input."""
    messages = sources_within(*origin)
    answers = (
        ref
        for message in messages
        for entered in view.producers(message)
        for ref in entered.inputs
        if kind(ref) == semconv.KIND_ANSWER
    )
    for ref in answers:
        authors = view.producers(ref)
        if authors and text.coverage(content, [view.text(ref) or ""]) == 1:
            return authors[0], ref
    return None


def _unsupported(view: View, origin: tuple[Operation, str], content: frozenset[str]) -> bool:
    op, fact = origin
    inputs = [*sources_within(op, fact), *op.shown]
    texts = [view.text(ref) for ref in inputs]
    if not texts or None in texts or any(view.is_cut(ref) for ref in inputs):
        return False
    return text.coverage(content, [each for each in texts if each]) == 0 and not any(
        _names_its_time(view, ref) for ref in inputs
    )


def _names_its_time(view: View, ref: str) -> bool:
    """Whether a value names the time that the reply does, or was said then."""
    moment = view.moment(ref)
    day = moment.day if moment and not moment.assumed else None
    said = [
        *dates.readings(view.text(ref) or "", day),
        *([dates.Interval(day, day)] if day else []),
    ]
    replied = dates.readings(view.reply or "", view.asked_on)
    return bool(replied) and dates.matches(replied, said)
