"""From what a version was written: the messages, the decision that chose it, other records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from memtrace_collector.graph import deciding, resolution
from memtrace_collector.graph.case import Write
from memtrace_collector.graph.facts import Decision, Operation
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.references import ancestry_inputs
from memtrace_collector.graph.resolution import Occurrence, Use
from memtrace_otel import semconv

MAX_STEPS = 6
"""Operations between a write and a message."""
MAX_USES = 200
"""References that are gone back from for one write."""
_SAID = frozenset((semconv.KIND_MESSAGE, semconv.KIND_QUERY))
_STORED = frozenset((semconv.KIND_MEMORY, semconv.KIND_DOCUMENT))


class Chosen(NamedTuple):
    """A decision operation and what it decided about the write; None: it does not say."""

    operation: Operation
    decision: Decision | None


@dataclass(slots=True)
class Grounds:
    """``messages``: what was said, each with the operation that took it in (who used it, when
    nobody was seen to). ``records``: versions of stored records that it was made from.
    ``is_all``: nothing was left out for a bound."""

    messages: dict[str, Occurrence] = field(default_factory=dict)
    decisions: list[Chosen] = field(default_factory=list)
    records: dict[str, None] = field(default_factory=dict)
    status: str = resolution.COMPLETE
    is_all: bool = True
    uses: int = 0


class _Step(NamedTuple):
    grounds: Grounds
    use: Use


def grounds_of(lookups: Lookups, writes: Sequence[Write]) -> list[Grounds]:
    """The grounds of each write, all read together."""
    lookups.read_traces([write.operation for write in writes])
    found = [Grounds() for _ in writes]
    pending = [step for each, write in zip(found, writes) for step in _begun(lookups, each, write)]
    for _ in range(MAX_STEPS):
        if not pending:
            break
        resolved = resolution.resolve(lookups, [step.use for step in pending])
        pending = [
            following
            for step in pending
            for following in _gone_back(step.grounds, step.use, resolved[step.use.key])
        ]
    for step in pending:
        step.grounds.is_all = False
    return found


def _begun(lookups: Lookups, grounds: Grounds, write: Write) -> list[_Step]:
    operation = write.operation
    steps = _uses(grounds, operation, ancestry_inputs(operation, write.version))
    for choice in deciding.choices(operation, lookups.tree(operation.trace_id)):
        decider = choice.operation
        decisions: list[Decision | None] = [
            item for item in decider.decisions if deciding.executes(operation, decider, item)
        ]
        grounds.decisions += [Chosen(decider, item) for item in decisions or [None]]
        steps += _uses(grounds, decider, choice.refs)
    return steps


def _gone_back(grounds: Grounds, use: Use, result: resolution.Resolution) -> list[_Step]:
    grounds.status = resolution.worst((grounds.status, result.status))
    if use.ref.partition(":")[0] in _SAID:
        entered = result.occurrences[0].operation if result.occurrences else use.user
        grounds.messages.setdefault(use.ref, Occurrence(use.ref, entered))
        return []
    return [
        step
        for item in result.occurrences
        for step in _uses(grounds, item.operation, ancestry_inputs(item.operation, item.ref))
    ]


def _uses(grounds: Grounds, user: Operation, refs: Iterable[str]) -> list[_Step]:
    """What is to be gone back from; another record ends the way."""
    steps = []
    for ref in dict.fromkeys(refs):
        if ref.partition(":")[0] in _STORED:
            grounds.records[ref] = None
        elif ref in grounds.messages:
            continue
        elif grounds.uses >= MAX_USES:
            grounds.is_all = False
        else:
            grounds.uses += 1
            steps.append(_Step(grounds, Use(user, ref)))
    return steps
