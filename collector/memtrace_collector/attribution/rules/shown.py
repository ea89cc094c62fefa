"""Rows of the hop *shown*: it was delivered; did the prompt have it? Pure."""

from __future__ import annotations

from memtrace_collector.attribution.carrying.carriers import Sought
from memtrace_collector.attribution.carrying.once import once
from memtrace_collector.attribution.carrying.view import View
from memtrace_collector.attribution.findings import STRUCTURE, TEXT, Finding, abstain, claim
from memtrace_collector.attribution.rules.not_updated import contradicting, dated, have_dates
from memtrace_collector.attribution.rules.undated import without_its_day
from memtrace_collector.attribution.texts import text
from memtrace_collector.graph.facts import Operation

MATCHABLE_CHARACTERS = 12
MATCHABLE_WORDS = 3
"""A shorter value is never found in a prompt by content alone, so its absence says nothing."""


def _inferred_context(view: View) -> bool:
    """No assembly is visible: what the prompt holds is known by matching its content."""
    return not view.assemblies


@once
def in_context(sought: Sought) -> tuple[str, ...]:
    """What in the answer's context carries the item: contexts by text, else values by structure."""
    view = sought.view
    told = tuple(ref for ref in view.contexts if sought.holds(ref))
    if told:
        return told
    if any(view.text(ref) is not None for ref in view.contexts):
        return ()
    return sought.among(view.shown)


def cut_from_context(sought: Sought) -> Finding | None:
    """Delivered, not in this prompt, still kept for later turns."""
    view = sought.view
    delivered = sought.among(view.delivered)
    cut = sought.among(entry.ref for op in view.assemblies for entry in op.dropped)
    right = cut or delivered
    if not right or in_context(sought):
        return None
    if not cut and any(ref in view.shown for ref in delivered):
        return None
    if _inferred_context(view):
        return _not_found_in_prompt(sought, delivered)
    dropping = _dropped_by(view, right)
    if sought.open_among(view.contexts) and dropping is None:
        return None
    op = dropping or view.assemblies[0]
    if op.truncated:
        return abstain("cut")
    over_budget = any(entry.ref in right and entry.reason == "budget" for entry in op.dropped)
    return Finding(
        error_type="cut_from_context",
        decisive=(op.key,),
        last_right=right[-1],
        mechanism="trimmed" if over_budget else None,
        basis=(STRUCTURE,) if sought.by_descent else (STRUCTURE, TEXT),
        claims=(
            claim("was delivered", _deliverer(view, right[-1]), right[-1]),
            claim("put the prompt together without it", op, right[-1]),
        ),
        window=view.window(op.start_ns, view.answer.end_ns, [op, view.answer]),
    )


def _dropped_by(view: View, refs: tuple[str, ...]) -> Operation | None:
    return next(
        (op for op in view.assemblies if any(entry.ref in refs for entry in op.dropped)), None
    )


def _deliverer(view: View, ref: str) -> Operation | None:
    return next((op for op in view.reads if ref in op.delivered), None)


def _not_found_in_prompt(sought: Sought, delivered: tuple[str, ...]) -> Finding | None:
    """By content only: it must be matchable, and another value of the same read must have been
    found in the prompt verbatim."""
    view = sought.view
    ref = delivered[-1]
    reader = _deliverer(view, ref)
    siblings = [
        other
        for other in (reader.delivered if reader else ())
        if other in view.shown and other not in delivered
    ]
    if not all(_matchable(view.text(each)) for each in delivered):
        return None
    if not siblings and not _shows_nothing_of(view, delivered):
        return None
    return Finding(
        error_type="cut_from_context",
        decisive=(view.answer.key,),
        last_right=ref,
        basis=("inferred", STRUCTURE),
        claims=(
            claim("was delivered", reader, ref),
            claim(
                "is not in the prompt, in which another value of the same read was found"
                if siblings
                else "is not in the prompt, which shows nothing of what was read",
                view.answer,
                next(iter(siblings), view.contexts[0] if view.contexts else None),
            ),
        ),
        window=view.window(view.answer.start_ns, view.answer.end_ns, [view.answer]),
    )


def _shows_nothing_of(view: View, delivered: tuple[str, ...]) -> bool:
    """Whether a prompt, read whole, has none of the words of these values beside the question's:
    in no wording can it hold one of them."""
    prompts = [view.text(ref) for ref in view.contexts]
    if not prompts or None in prompts or any(view.is_cut(ref) for ref in view.contexts):
        return False
    shown = frozenset().union(*(text.content_tokens(each or "") for each in prompts))
    asked = text.content_tokens(view.question or "")
    own = [text.content_tokens(view.text(ref) or "") - asked for ref in delivered]
    return all(words and shown.isdisjoint(words) for words in own)


def _matchable(content: str | None) -> bool:
    return (
        content is not None
        and len(content) >= MATCHABLE_CHARACTERS
        and len(content.split()) >= MATCHABLE_WORDS
    )


def garbled_in_context(sought: Sought) -> Finding | None:
    """In the prompt without what makes it right: its date, its speaker, its end."""
    view = sought.view
    if sought.by_descent or not view.contexts:
        return None
    bare = without_its_day(sought)
    if bare is not None and view.assemblies:
        return _garbled(sought, bare, view.assemblies[-1], aspect="time")
    if in_context(sought):
        return _conflict_without_its_dates(sought)
    placed = [ref for ref in sought.among(view.delivered or view.shown) if ref in view.shown]
    makers = [op for op in view.assemblies if set(op.inputs) & set(placed)]
    if not placed or not makers or any(view.text(ref) is None for ref in view.contexts):
        return None
    if any(view.is_cut(ref) for ref in view.contexts):
        return abstain("cut")
    return _garbled(sought, placed[-1], makers[0], "time" if sought.item.temporal else None)


def _garbled(sought: Sought, right: str, maker: Operation, aspect: str | None) -> Finding:
    contexts = sought.view.contexts
    context = next((ref for ref in maker.outputs if ref in contexts), contexts[0])
    return Finding(
        error_type="garbled_in_context",
        decisive=(maker.key,),
        last_right=right,
        first_wrong=context,
        aspect=aspect,
        claims=(claim("put it into the prompt without what makes it right", maker, context),),
    )


def _conflict_without_its_dates(sought: Sought) -> Finding | None:
    """Two contradicting values were shown without the dates that their records have."""
    view = sought.view
    reply = view.reply
    right = [ref for ref in sought.among(view.shown) if ref in view.delivered]
    if reply is None or text.declines(reply) or not right or not view.assemblies or dated(view):
        return None
    other = contradicting(sought, right, reply)
    if other is None or not have_dates(view, (other, right[-1])):
        return None
    maker = view.assemblies[0]
    return Finding(
        error_type="garbled_in_context",
        decisive=(maker.key,),
        last_right=right[-1],
        first_wrong=next(iter(maker.outputs), None),
        aspect="time",
        claims=(
            claim("put both values into the prompt without their dates", maker, right[-1]),
            claim("says the other one", _deliverer(view, other), other),
        ),
    )
