"""The row *not_updated*, and what it means that two shown values contradict each other. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from memtrace_collector.attribution.carrying.carriers import Sought
from memtrace_collector.attribution.carrying.needs import reply_content
from memtrace_collector.attribution.carrying.once import once
from memtrace_collector.attribution.carrying.refs import kind
from memtrace_collector.attribution.carrying.view import View
from memtrace_collector.attribution.findings import Finding, abstain, claim
from memtrace_collector.attribution.texts import dates, text
from memtrace_collector.graph.facts import Operation
from memtrace_otel import semconv, variables

MOST = 0.6
"""Share of a record's words in another that says the same of something with another value."""
_TIME = re.compile(r"\b(?:19|20)\d\d\b|\b\d{1,2}[:/]\d\d\b")


def not_updated(sought: Sought) -> Finding | None:
    """The new value stands beside a contradicting older record, in a system that supersedes,
    both were delivered, and the reply took the old one."""
    view = sought.view
    reply = view.reply
    if reply is None or sought.by_descent or text.declines(reply):
        return None
    right = [
        ref
        for ref in sought.among(view.current_versions)
        if ref in view.delivered and ref in in_context_or_delivered(view)
    ]
    if not right:
        return None
    wrong = contradicting(sought, right, reply)
    if (
        wrong is None
        or told_apart(sought, wrong, right[-1])
        or have_dates(view, (wrong, right[-1]))
    ):
        return None
    decide = _decide_of(view, right[-1])
    if decide is None:
        return abstain("gap") if _decide_was_lost(view, right[-1]) else None
    return Finding(
        error_type="not_updated",
        decisive=(decide.key,),
        last_right=right[-1],
        first_wrong=wrong,
        claims=(
            claim("stored the new value beside the old one", decide, right[-1]),
            claim(
                "still said the old one and was delivered too",
                view.reads[-1] if view.reads else None,
                wrong,
            ),
        ),
    )


def in_context_or_delivered(view: View) -> tuple[str, ...]:
    return view.shown or view.delivered


def contradicting(sought: Sought, right: list[str], reply: str) -> str | None:
    """An older delivered record about the need that says what the reply says."""
    view = sought.view
    content = reply_content(sought.need, reply)
    newest = max((_written_ns(view, ref) for ref in right), default=0)
    if not content or content <= text.content_tokens(sought.need.expected):
        return None
    for ref in view.delivered:
        said = view.text(ref)
        if ref in right or said is None or kind(ref) != semconv.KIND_MEMORY:
            continue
        if (
            text.coverage(content, [said]) == 1
            and (sought.about(said) or _repeats(view, right, said))
            and same_individual(sought, right, said)
            and _written_ns(view, ref) < newest
        ):
            return ref
    return None


def _repeats(view: View, right: Iterable[str], said: str) -> bool:
    """Whether a text says most of what one of the right ones does."""
    own = text.content_tokens(said)
    known = (text.content_tokens(view.text(ref) or "") for ref in right)
    return any(each and len(own & each) >= MOST * len(each) for each in known)


def same_individual(sought: Sought, right: Iterable[str], said: str) -> bool:
    """Whether a text speaks of whom or what the question and the right values name: one that
    names another (unit 8 for unit 3) does not contradict them."""
    asked = text.numbers(sought.need.question) | text.proper_names(sought.need.asked)
    known = frozenset().union(*(text.content_tokens(sought.view.text(ref) or "") for ref in right))
    return asked & known <= text.content_tokens(said)


def have_dates(view: View, refs: Iterable[str]) -> bool:
    """Whether each of these records says when it was true: a prompt could have shown it."""
    return all(ref in view.declared_times for ref in refs)


def _decide_was_lost(view: View, version: str) -> bool:
    """Whether the system decides, and the decision on this write may be what was lost."""
    writes = view.producers(version)
    if not any(op.step == semconv.STEP_DECIDE for op in view.operations):
        return False
    return any(
        view.case.closure.absence(*view.window(op.start_ns, op.end_ns, [op])) == "broken"
        for op in writes
    )


def _written_ns(view: View, ref: str) -> int:
    write = view.current(variables.record_of(ref))
    return write.operation.start_ns if write else 0


@once
def dated(view: View) -> bool:
    """Whether the context shows times with its values."""
    contents = [view.text(ref) or "" for ref in view.contexts or view.shown]
    return any(_TIME.search(each) for each in contents)


def told_apart(sought: Sought, one: str, other: str) -> bool:
    """Whether the context shows two values with times, and not with the same."""
    if not dated(sought.view):
        return False
    first, second = _times_beside(sought, one), _times_beside(sought, other)
    return first is None or second is None or (bool(first and second) and first != second)


def _times_beside(sought: Sought, ref: str) -> frozenset[str] | None:
    """The times in the line of the context that a value stands in, those apart that were asked
    for or replied; None: it is not found."""
    view = sought.view
    said = (view.text(ref) or "").strip()
    lines = [line for each in view.contexts for line in (view.text(each) or "").splitlines()]
    line = next((line for line in lines if said and said in line), None)
    if line is None:
        return None
    found = [phrase.text for phrase in dates.phrases(line, None) if phrase.readings]
    named = found or _TIME.findall(line)
    values = text.content_tokens(sought.need.expected) | text.content_tokens(view.reply or "")
    return frozenset(each for each in named if not text.content_tokens(each) & values)


def _decide_of(view: View, version: str) -> Operation | None:
    writes = view.producers(version)
    decides = [
        op
        for op in view.operations
        if op.step == semconv.STEP_DECIDE and any(view.same_call(op, write) for write in writes)
    ]
    facts = {ref for write in writes for ref in write.inputs}
    exact = [op for op in decides if facts & {*op.inputs, *op.outputs}]
    return next(iter(exact or decides), None)
