"""The prompt of an answer as it was recorded, and the same prompt after a repair. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from memtrace_collector.attribution.carrying.refs import kind
from memtrace_collector.attribution.carrying.view import View
from memtrace_collector.attribution.replay import messages as prompts
from memtrace_collector.attribution.replay import retrieval
from memtrace_collector.attribution.replay.delivery import Edit
from memtrace_collector.attribution.replay.messages import Message
from memtrace_collector.attribution.replay.outcome import Step
from memtrace_collector.attribution.replay.recorded import RecordedCall
from memtrace_collector.attribution.replay.repair import DATE, PUT, REMOVE, Refusal
from memtrace_otel import semconv

ASSEMBLY = "assembly"
SHOWN, STILL_CUT, UNCHANGED, REMOVED = "shown", "still_cut", "unchanged", "removed"
_CHARACTERS_PER_TOKEN = 4
"""A rule of thumb, used only where a budget was recorded and nobody was seen to exceed it."""
_NEWEST_FIRST = "openai"
"""The instrumentation that lists a prompt's messages from the newest."""
_VALUES = (semconv.KIND_MEMORY, semconv.KIND_DOCUMENT, semconv.KIND_FACT)
_SAID = (semconv.KIND_MESSAGE, semconv.KIND_ANSWER)


@dataclass(frozen=True, slots=True)
class Prompt:
    """``is_assumed``: how its parts were put together was not recorded."""

    messages: tuple[Message, ...]
    is_assumed: bool = False


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A prompt after a repair, and what became of the value in it."""

    prompt: Prompt
    steps: tuple[Step, ...]
    assumed: tuple[str, ...] = ()


def recorded_prompt(view: View, call: RecordedCall) -> Prompt | Refusal:
    """The prompt: the messages of the call where they were recorded, else from the lineage."""
    values = _values(view)
    if call.messages is not None:
        told = tuple(prompts.marked(role, text, values) for role, text in call.messages)
        return Prompt(told)
    parts = _parts(view)
    unknown = [ref for ref in parts if view.text(ref) is None]
    if unknown:
        return Refusal("a part of the prompt was not captured", "no_content")
    if any(view.is_cut(ref) for ref in parts):
        return Refusal("a part of the prompt was captured only in part", "cut")
    if view.answer.truncated.get("inputs"):
        return Refusal("the lineage does not list the whole prompt", "cut")
    return _from_lineage(view, parts, values)


def _values(view: View) -> dict[str, str]:
    """The values that may stand in the prompt."""
    refs = (*view.delivered, *view.shown, *(ref for op in view.reads for ref in op.delivered))
    return {ref: said for ref in refs if (said := (view.text(ref) or "").strip())}


def _parts(view: View) -> list[str]:
    """What the prompt is made of, the oldest first."""
    op = view.answer
    contexts = [ref for ref in (*op.inputs, *op.shown) if kind(ref) == semconv.KIND_CONTEXT]
    kinds = (*_SAID, semconv.KIND_PROMPT)
    said = [ref for ref in op.inputs if kind(ref) in kinds and ref != view.query]
    if op.system == _NEWEST_FIRST:
        contexts, said = contexts[::-1], said[::-1]
    asked = [view.query] if view.query else []
    return list(dict.fromkeys([*said, *contexts, *asked]))


def _from_lineage(view: View, parts: Sequence[str], values: dict[str, str]) -> Prompt | Refusal:
    known = {ref: view.text(ref) or "" for ref in parts}
    contexts = [ref for ref in parts if kind(ref) == semconv.KIND_CONTEXT]
    question = known.get(view.query or "", "")
    framed = [ref for ref in contexts if question.strip() and question.strip() in known[ref]]
    opening = [ref for ref in parts if _is_system(view, ref)]
    by_tools = any(_declared_role(view, ref) == "tool" for ref in parts)
    said = [
        ref
        for ref in parts
        if kind(ref) in _SAID
        and ref not in opening
        and not any(known[ref].strip() in known[context] for context in contexts)
    ]
    contexts = [ref for ref in contexts if ref not in framed]
    ordered = [("system", ref) for ref in (*opening, *contexts)]
    ordered += [(_role(view, ref), ref) for ref in said]
    ordered += [("user", ref) for ref in framed]
    if not framed and view.query:
        ordered.append(("user", view.query))
    told = [prompts.marked(role, known[ref], values) for role, ref in ordered]
    if contexts or framed:
        return Prompt(tuple(told), is_assumed=by_tools)
    return _with_loose_values(view, told, values)


def _with_loose_values(view: View, told: list[Message], values: dict[str, str]) -> Prompt | Refusal:
    """No context was recorded: values that the answer read stand in a list of their own."""
    read = [ref for ref in view.shown if kind(ref) in _VALUES]
    stand = {mark.ref for message in told for mark in message.marks}
    loose = [ref for ref in read if ref not in stand]
    if any(ref not in values for ref in loose):
        return Refusal("a value in the prompt was not captured", "no_content")
    if not loose:
        return Prompt(tuple(told))
    listed = prompts.Message("system", "Memories:")
    for ref in loose:
        listed = prompts.appended(listed, ref, values[ref])
    return Prompt((*told[:-1], listed, *told[-1:]), is_assumed=True)


def _is_system(view: View, ref: str) -> bool:
    return kind(ref) == semconv.KIND_PROMPT or _declared_role(view, ref) == "system"


def _role(view: View, ref: str) -> str:
    if kind(ref) == semconv.KIND_ANSWER:
        return "assistant"
    return "assistant" if _declared_role(view, ref) == "assistant" else "user"


def _declared_role(view: View, ref: str) -> str:
    declared = view.answer.roles.get(ref)
    makers = (op.roles.get(ref) for op in view.producers(ref))
    return declared or next((role for role in makers if role), "")


def rebuild(view: View, prompt: Prompt, edits: Iterable[Edit]) -> Rebuilt:
    """The prompt with the edits made, kept within the recorded budget."""
    told = list(prompt.messages)
    steps: list[Step] = []
    is_assumed = False
    for edit in sorted(edits, key=lambda each: each.kind == REMOVE):
        outcome, guessed = _apply(view, told, edit)
        is_assumed |= guessed
        if edit.kind == PUT:
            told, fits, estimated = _within_budget(view, told, edit)
            outcome = outcome if fits else STILL_CUT
            is_assumed |= estimated
            guessed |= estimated
        steps.append(Step(ASSEMBLY, outcome, guessed))
    assumed = (ASSEMBLY,) if is_assumed or (prompt.is_assumed and steps) else ()
    return Rebuilt(Prompt(tuple(told), prompt.is_assumed), tuple(steps), assumed)


def _apply(view: View, told: list[Message], edit: Edit) -> tuple[str, bool]:
    if edit.kind == DATE and edit.day is not None:
        day = edit.day
        found = _change(told, lambda message: prompts.dated(message, edit.old, day))
        return (SHOWN if found else UNCHANGED), False
    if edit.kind == REMOVE:
        found = _change(told, _removal(edit.old))
        return (REMOVED if found else UNCHANGED), False
    return _put(view, told, edit)


def _put(view: View, told: list[Message], edit: Edit) -> tuple[str, bool]:
    """In the place of the wrong value, else beside its neighbours, else where there is room."""
    if edit.is_relative and edit.day and not any(prompts.has_day(each.text) for each in told):
        edit = edit._replace(text=f"[{edit.day.isoformat()}] {edit.text}")
    if edit.old and _change(
        told, lambda m: prompts.replaced(m, edit.old, edit.ref, edit.text, edit.day)
    ):
        return SHOWN, False
    if any(message.mark_of(edit.ref) for message in told):
        return UNCHANGED, False
    for beside, after in [*((r, True) for r in edit.ahead), *((r, False) for r in edit.behind)]:
        if _change(told, _insertion(edit, beside, after=after)):
            return SHOWN, False
    if not told:
        return UNCHANGED, True
    question = (view.question or "").strip()
    place = len(told) - 1
    if told[place].text.strip() != question:
        told[place] = prompts.appended(told[place], edit.ref, edit.text, before=question)
    elif place and told[place - 1].role == "system":
        told[place - 1] = prompts.appended(told[place - 1], edit.ref, edit.text)
    else:
        told.insert(place, prompts.appended(Message("system", "Memories:"), edit.ref, edit.text))
    return SHOWN, True


def _insertion(edit: Edit, beside: str, *, after: bool) -> Callable[[Message], Message | None]:
    def insert(message: Message) -> Message | None:
        return prompts.inserted(message, beside, edit.ref, edit.text, edit.day, after=after)

    return insert


def _removal(ref: str) -> Callable[[Message], Message | None]:
    return lambda message: prompts.removed(message, ref)


def _change(told: list[Message], change: Callable[[Message], Message | None]) -> bool:
    """Make a change in every message in which it can be made."""
    found = False
    for place, message in enumerate(told):
        changed = change(message)
        if changed is not None:
            told[place] = changed
            found = True
    return found


def _within_budget(view: View, told: list[Message], edit: Edit) -> tuple[list[Message], bool, bool]:
    """Without the lowest-ranked values that no longer fit; whether the value itself fits, and
    whether the room had to be estimated."""
    room, estimated = _room(view)
    if room is None:
        return told, True, False
    behind = [ref for ref in reversed(edit.behind) if any(m.mark_of(ref) for m in told)]
    while _size(told) > room and behind:
        out = behind.pop(0)
        _change(told, _removal(out))
    return told, _size(told) <= room, estimated


def _size(told: Sequence[Message]) -> int:
    return sum(mark.end - mark.start for message in told for mark in message.marks)


def _room(view: View) -> tuple[int | None, bool]:
    """Characters that the assembly had for values, where a budget was recorded."""
    for op in view.assemblies:
        tokens = retrieval.number(op.limits.get("budget_tokens"))
        if tokens is not None:
            return int(tokens * _CHARACTERS_PER_TOKEN), True
    return None, False
