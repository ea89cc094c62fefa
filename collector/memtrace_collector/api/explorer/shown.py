"""What the page shows of a reference: its text, and what it is to the failure. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memtrace_collector.api.questions import Json
from memtrace_collector.graph.case import Case
from memtrace_collector.graph.word_diff import ADDED, REMOVED, SAME, Segment, are_alike, word_diff
from memtrace_otel import semconv, variables

MAX_VALUE, MAX_CANDIDATE, MAX_PROMPT = 8_000, 600, 20_000
"""Characters shown of a value, of one of many, and of a prompt."""
RIGHT, WRONG, OTHER = "right", "wrong", ""
"""Holds what was needed; took its place; neither, or nobody knows."""
CAPTURED, NOT_CAPTURED, DELETED = "captured", "not captured", "deleted"
OUTSIDE = "outside"
"""Kind of a segment of the first text around what became the second."""
_PROMPT = f"{semconv.KIND_CONTEXT}:"
_SAID = (semconv.KIND_MESSAGE, semconv.KIND_DOCUMENT)
_MARKED = 4
"""Characters of the shortest text that is looked for in a prompt."""


@dataclass(frozen=True, slots=True)
class Shown:
    """``right`` and ``wrong``: references by what they are to the failure."""

    texts: Mapping[str, str]
    right: frozenset[str]
    wrong: frozenset[str]

    def value(self, ref: str, limit: int = MAX_VALUE) -> Json:
        """``{"ref", "record", "kind", "state", "text", "length", "role"}``; the text has at most
        ``limit`` characters, ``length`` counts all."""
        text = self.texts.get(ref)
        return {
            "ref": ref,
            "record": variables.record_of(ref),
            "kind": ref.partition(":")[0],
            "state": self._state(ref),
            "text": None if text is None else text[:limit],
            "length": len(text or ""),
            "role": self.role(ref),
        }

    def change(self, before: str | None, after: str | None) -> Json:
        """Two values side by side; ``segments`` are the words of both where they can be compared,
        else None. A prompt is shown as such."""
        return {
            "before": self._side(before),
            "after": self._side(after),
            "segments": self._segments(before, after),
        }

    def prompt(self, ref: str) -> Json:
        """A value with ``parts``, its text with the right and wrong values in it marked:
        ``[{"text", "role"}]``."""
        shown = self.value(ref, MAX_PROMPT)
        return shown | {"parts": list(self._parts(shown["text"] or "")), "text": None}

    def role(self, ref: str) -> str:
        """Of another reference with the same text: as of that."""
        if ref in self.wrong or ref in self.right:
            return WRONG if ref in self.wrong else RIGHT
        if _is_text(ref):
            same = _text_of(ref)
            wrong = any(_text_of(each) == same for each in self.wrong)
            right = any(_text_of(each) == same for each in self.right)
            if wrong is not right:
                return WRONG if wrong else RIGHT
        return OTHER

    def is_deleted(self, ref: str | None) -> bool:
        return ref is not None and self._state(ref) == DELETED

    def captured(self, refs: Iterable[str]) -> Json:
        """How many of these have their text: ``{"known", "unknown"}``."""
        states = [self._state(ref) for ref in set(refs)]
        return {"known": states.count(CAPTURED), "unknown": states.count(NOT_CAPTURED)}

    def _side(self, ref: str | None) -> Json | None:
        if not ref:
            return None
        return self.prompt(ref) if ref.startswith(_PROMPT) else self.value(ref)

    def _state(self, ref: str) -> str:
        if variables.version_of(ref) == semconv.DELETED_VERSION:
            return DELETED
        return CAPTURED if ref in self.texts else NOT_CAPTURED

    def _segments(self, before: str | None, after: str | None) -> list[Json] | None:
        old, new = self.texts.get(before or ""), self.texts.get(after or "")
        if not before or not after or old is None or new is None:
            return None
        segments = word_diff(old[:MAX_VALUE], new[:MAX_VALUE])
        if variables.record_of(before) == variables.record_of(after):
            return [part._asdict() for part in segments]
        if not are_alike(old, new, segments):
            return None
        is_said = before.partition(":")[0] in _SAID
        return [part._asdict() for part in (_taken_out(segments) if is_said else segments)]

    def _parts(self, text: str) -> Iterator[Json]:
        at = 0
        for start, end, role in _found_in(text, self._marked()):
            if start >= at:
                yield from _part(text[at:start], OTHER)
                yield from _part(text[start:end], role)
                at = end
        yield from _part(text[at:], OTHER)

    def _marked(self) -> Iterator[tuple[str, str]]:
        for ref in sorted(self.right | self.wrong):
            if ref.startswith(_PROMPT):
                continue
            text = self.texts.get(ref, "").strip()
            if len(text) >= _MARKED:
                yield text, self.role(ref)


def of_failure(case: Case | None, verdict: Mapping[str, Any]) -> Shown:
    """What carried the needed information, by the path of a verdict (JSON form), and what took
    its place."""
    lost = [*verdict["decisive"], *verdict["also"]]
    wrong = {item["first_wrong"] for item in lost} - {None}
    right = {item["last_right"] for item in lost} - {None}
    for hop in verdict.get("path") or ():
        if hop["outcome"] == "kept":
            right.update(hop["versions"])
    if case is not None:
        right.update(case.evidence)
    return Shown(case.texts if case else {}, frozenset(right - wrong), frozenset(wrong))


def first_of(refs: Sequence[str], wanted: Iterable[str], limit: int) -> list[str]:
    """At most ``limit`` of ``refs`` in their order, the wanted ones at any rate."""
    kept = {ref for ref in wanted if ref in refs}
    room = max(0, limit - len(kept))
    kept.update([ref for ref in refs if ref not in kept][:room])
    return [ref for ref in refs if ref in kept][:limit]


def _is_text(ref: str) -> bool:
    return variables.version_of(ref) not in (semconv.UNKNOWN_VERSION, semconv.DELETED_VERSION)


def _text_of(ref: str) -> str:
    """The digest of its text, whatever else makes its version."""
    return variables.text_version(variables.version_of(ref))


def _taken_out(segments: Sequence[Segment]) -> list[Segment]:
    """Where the second text was made from a part of the first, the rest was not removed: what
    stands before or after the words of both, and nothing was put in its place."""
    same = [
        place
        for place, part in enumerate(segments)
        if part.kind == SAME and any(map(str.isalnum, part.text))
    ]
    if not same:
        return list(segments)
    added = [place for place, part in enumerate(segments) if part.kind == ADDED]
    first, last = min([*same, *added]), max([*same, *added])
    return [
        Segment(part.text, OUTSIDE) if part.kind == REMOVED and not first < place < last else part
        for place, part in enumerate(segments)
    ]


def _found_in(text: str, marked: Iterable[tuple[str, str]]) -> list[tuple[int, int, str]]:
    """Where each stands first: from, to and its role; the longer of two that begin alike."""
    places = [(text.find(each), each, role) for each, role in marked]
    found = [(at, at + len(each), role) for at, each, role in places if at >= 0]
    return sorted(found, key=lambda place: (place[0], -place[1]))


def _part(text: str, role: str) -> Iterator[Json]:
    if text:
        yield {"text": text, "role": role}
