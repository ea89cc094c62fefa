"""Broken invariants that flag the answers they reached, where the settings say so."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence

from memtrace_collector.api.flagging import flag_key, flag_request
from memtrace_collector.graph.facts import Operation
from memtrace_collector.graph.invariants import Finding
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.reached import answers_reached
from memtrace_collector.graph.reader import GraphReader
from memtrace_collector.telemetry.metrics import Metrics

MAX_REMEMBERED = 100_000
MAX_AT_ONCE = 1_000
"""Findings of one look at one graph that are followed to their answers; the next look goes on."""


class InvariantFlags:
    """Flags answers, each once per finding: the flag's ids derive from answer and reason.

    Args:
        kinds: the invariants that flag.
        append: takes an export request into the log, and returns when it is on disk.
    """

    def __init__(
        self,
        reader: GraphReader,
        kinds: Collection[str],
        append: Callable[[bytes, str], None],
        metrics: Metrics,
    ) -> None:
        self._reader = reader
        self._kinds = frozenset(kinds)
        self._append = append
        self._metrics = metrics
        self._followed: dict[bytes, None] = {}

    def flag(self, findings: Sequence[Finding]) -> None:
        """Flag what these findings of one graph reached; those without an answer come again."""
        new = [
            (key, item)
            for item in findings
            if item.kind in self._kinds and (key := _digest(item)) not in self._followed
        ]
        lookups = Lookups(self._reader)
        for key, finding in new[:MAX_AT_ONCE]:
            answers = answers_reached(lookups, finding)
            for answer in answers:
                self._flag(answer, finding)
            if answers:
                self._remember(key)

    def _flag(self, answer: Operation, finding: Finding) -> None:
        reason = f"invariant {finding.kind}: {finding.ref} at {finding.operation}"
        origin = str(flag_key(answer.key, reason=reason))
        if any(flag.origin == origin for flag in self._reader.flags_at(answer.flag_targets)):
            return
        self._append(flag_request(answer.key, answer.end_ns, reason=reason), "traces")
        self._metrics.add("memtrace.invariants.flagged", 1, kind=finding.kind)

    def _remember(self, key: bytes) -> None:
        self._followed[key] = None
        if len(self._followed) > MAX_REMEMBERED:
            del self._followed[next(iter(self._followed))]


def _digest(finding: Finding) -> bytes:
    said = f"{finding.kind}\0{finding.operation}\0{finding.ref}"
    return hashlib.blake2b(said.encode(), digest_size=12).digest()
