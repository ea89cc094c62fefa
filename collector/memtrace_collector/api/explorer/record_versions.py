"""The versions of a record as its page shows them: what changed, who wrote it, from what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memtrace_collector.api.explorer.judged import short_verdict_json
from memtrace_collector.api.explorer.parts import (
    EXCERPT_CHARS,
    TEXT_CHARS,
    operation_json,
    text_json,
)
from memtrace_collector.api.questions import Json
from memtrace_collector.graph import content
from memtrace_collector.graph.case import Write
from memtrace_collector.graph.facts import OperationKey
from memtrace_collector.graph.grounds import Chosen, grounds_of
from memtrace_collector.graph.history import is_deleted
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.questions.operations import values_of
from memtrace_collector.graph.questions.shapes import span_key
from memtrace_collector.graph.resolution import Occurrence
from memtrace_collector.graph.terms import terms
from memtrace_collector.graph.versions import texts_of
from memtrace_collector.graph.word_diff import ADDED, REMOVED, Segment, are_alike, word_diff
from memtrace_otel import semconv, variables

CREATED, CHANGED, UNCHANGED, STATE, DELETED, UNSEEN = (
    "created", "changed", "unchanged", "state", "deleted", "unseen",
)  # fmt: skip
MAX_LISTED = 30
"""Messages, or other records, told of one version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """The writes of a record with what was counted of each: how often it was delivered and in
    how many answers it was, and the verdicts that name it."""

    lookups: Lookups
    graph_id: str
    record: str
    writes: Sequence[Write]
    reads: Sequence[int]
    answers: Sequence[int]
    flapped: frozenset[OperationKey]
    verdicts: Sequence[Mapping[str, Any]]

    def json(self, start: int, size: int) -> list[Json]:
        """Versions ``start`` (from 0) to ``start + size``."""
        shown = self.writes[start : start + size]
        before = max(0, start - 1)
        texts = texts_of(self.lookups, self.graph_id, self.writes[before : start + len(shown)])
        if start == before:
            texts = [None, *texts]
        told = _Told(self.lookups, shown)
        return [
            self._version_json(
                start + place, texts[place], texts[place + 1], told.of(place, texts[place + 1])
            )
            for place in range(len(shown))
        ]

    def _version_json(self, place: int, old: str | None, new: str | None, told: Json) -> Json:
        write = self.writes[place]
        operation = write.operation
        earlier = self.writes[place - 1] if place else None
        return {
            "number": place + 1,
            "ref": write.version,
            "change": _change(earlier, write),
            "state": _state(earlier, write),
            "text": text_json(new),
            "segments": _segments(old, "" if is_deleted(write.version) else new),
            "is_current": place == len(self.writes) - 1,
            "is_tie": self._is_tie(place),
            "is_back": operation.key in self.flapped,
            "reads": self.reads[place],
            "answers": self.answers[place],
            "supersedes": [self._superseded(place, r) for r in operation.supersedes[:MAX_LISTED]],
            "broke": self._broke(write, told.pop("deciders")),
            **operation_json(operation),
            **told,
        }

    def _is_tie(self, place: int) -> bool:
        """Does a write beside it carry the same start time?"""
        others = (*self.writes[max(0, place - 1) : place], *self.writes[place + 1 : place + 2])
        at_ns = self.writes[place].operation.start_ns
        return any(other.operation.start_ns == at_ns for other in others)

    def _superseded(self, place: int, ref: str) -> Json:
        """The version replaced: of a text that returned, the last before."""
        numbers = [n for n, write in enumerate(self.writes[:place], 1) if write.version == ref]
        return {"ref": ref, "number": numbers[-1] if numbers else None}

    def _broke(self, write: Write, deciders: Iterable[OperationKey]) -> list[Json]:
        """The verdicts that find the write, or the decision behind it, decisive."""
        keys = {write.operation.key, *deciders}
        return [
            short_verdict_json(verdict)
            for verdict in self.verdicts
            if keys.intersection(decisive_keys(verdict))
        ]


class _Told:
    """What a page of versions was written from, with its texts."""

    def __init__(self, lookups: Lookups, writes: Sequence[Write]) -> None:
        self._writes = writes
        self._grounds = grounds_of(lookups, writes)
        wanted: dict[str, set[str]] = {}
        for write, grounds in zip(writes, self._grounds):
            for said in _listed(grounds.messages):
                for graph_id in _graphs(write, grounds.messages[said]):
                    wanted.setdefault(graph_id, set()).add(said)
        self._values = {
            graph_id: values_of(lookups.reader, [graph_id], refs)
            for graph_id, refs in wanted.items()
        }

    def of(self, place: int, text: str | None) -> Json:
        """``text``: what was written or deleted, to put the messages first that share most words
        with it."""
        write, grounds = self._writes[place], self._grounds[place]
        messages = [self._message(write, grounds.messages[r]) for r in _listed(grounds.messages)]
        record = variables.record_of(write.version)
        others = [ref for ref in grounds.records if variables.record_of(ref) != record]
        return {
            "messages": sorted(messages, key=lambda each: _farness(text, each)),
            "messages_left_out": max(0, len(grounds.messages) - MAX_LISTED),
            "records": others[:MAX_LISTED],
            "records_left_out": max(0, len(others) - MAX_LISTED),
            "decisions": [_decision(chosen) for chosen in _each_once(grounds.decisions)],
            "deciders": [chosen.operation.key for chosen in grounds.decisions],
            "lineage": grounds.status,
            "is_all": grounds.is_all,
        }

    def _message(self, write: Write, said: Occurrence) -> Json:
        graphs = _graphs(write, said)
        values = (self._values.get(graph_id, {}).get(said.ref) for graph_id in graphs)
        value = next(filter(None, values), None)
        return {
            "ref": said.ref,
            "role": said.operation.roles.get(said.ref, ""),
            "said_at": said.operation.times.get(said.ref, ""),
            "text": value and text_json(content.plain_text(value), 3 * EXCERPT_CHARS),
            **operation_json(said.operation),
        }


def decisive_keys(verdict: Mapping[str, Any]) -> list[OperationKey]:
    """The operations that a stored verdict finds decisive."""
    return [span_key(loss) for loss in verdict.get("decisive") or ()]


def _listed(messages: Mapping[str, Occurrence]) -> list[str]:
    return list(messages)[:MAX_LISTED]


def _each_once(decisions: Sequence[Chosen]) -> list[Chosen]:
    """A batch decides alike about several facts that it does not name."""
    return list({(each.operation.key, each.decision): each for each in decisions}.values())[
        :MAX_LISTED
    ]


def _farness(written: str | None, message: Json) -> tuple[float, bool]:
    """How few of the words written a message has; a system's own messages come last."""
    said = message["text"]
    words = set(terms(written or ""))
    shared = len(words.intersection(terms(said["text"]))) / len(words) if words and said else 0.0
    return -shared, message["role"] == "system"


def _graphs(write: Write, said: Occurrence) -> tuple[str, ...]:
    return tuple(dict.fromkeys((said.operation.graph_id, write.operation.graph_id)))


def _decision(chosen: Chosen) -> Json:
    decision = chosen.decision
    return {
        "action": decision.action if decision else None,
        "status": decision.status if decision else None,
        "fact": decision.fact if decision else None,
        **operation_json(chosen.operation),
    }


def _change(earlier: Write | None, write: Write) -> str:
    version = variables.version_of(write.version)
    if is_deleted(write.version):
        return DELETED
    if version == semconv.UNKNOWN_VERSION:
        return UNSEEN
    if earlier is None or is_deleted(earlier.version):
        return CREATED
    if earlier.operation.digest_key != write.operation.digest_key:
        return CHANGED
    if earlier.version == write.version:
        return UNCHANGED
    before = variables.version_of(earlier.version)
    return STATE if variables.text_version(before) == variables.text_version(version) else CHANGED


def _state(earlier: Write | None, write: Write) -> Json | None:
    """The digests of what else belongs to it (validity, expiry, tags …), where they differ."""
    if earlier is None or is_deleted(earlier.version) or is_deleted(write.version):
        return None
    before, after = (
        variables.version_of(each.version).partition("~")[2] for each in (earlier, write)
    )
    return {"before": before, "after": after} if before != after else None


def _segments(old: str | None, new: str | None) -> list[Json] | None:
    """``[{"text", "kind": same | removed | added}]``; None where there is nothing to compare. Of
    texts that have little in common, one removed and one added."""
    if old is None or new is None:
        return None
    old, new = old[:TEXT_CHARS], new[:TEXT_CHARS]
    segments = word_diff(old, new)
    if old and new and not are_alike(old, new, segments):
        segments = [Segment(old, REMOVED), Segment(new, ADDED)]
    return [part._asdict() for part in segments]
