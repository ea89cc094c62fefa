"""The conversation so far as one record, which the application keeps within a limit."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import memtrace_otel as memtrace
from memtrace_collector.bench.dialogue import Message
from memtrace_collector.bench.pipelines.turn import tokens
from memtrace_collector.bench.stand_in.model import StandIn
from memtrace_collector.bench.stand_in.writing import stamped
from memtrace_otel import Variable

SYSTEM = "long-context"
_NAMESPACE = uuid.UUID("7b1e9a10-8f0e-4f3a-8a63-2d7c55a1c0de")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the buffer: a message, or a summary of several (``message`` is None)."""

    text: str
    message: Message | None = None

    @property
    def variable(self) -> Variable | None:
        """The message; a summary is no value of its own."""
        message = self.message
        return None if message is None else memtrace.message(message.text, id=message.id)


class Buffer:
    """One owner's conversation buffer: one record with a version for each change."""

    def __init__(self, model: StandIn, owner: str) -> None:
        self._model = model
        self._id = str(uuid.uuid5(_NAMESPACE, owner))
        self._lines: tuple[Line, ...] = ()

    @property
    def lines(self) -> tuple[Line, ...]:
        """Oldest first."""
        return self._lines

    @property
    def tokens(self) -> int:
        """Size of the whole buffer."""
        return sum(tokens(line.text) for line in self._lines)

    @property
    def variable(self) -> Variable:
        """The record as it is now."""
        return self._version(self._lines)

    def append(self, messages: Sequence[Message]) -> None:
        """The buffer with these messages at its end."""
        added = tuple(Line(stamped(message), message) for message in messages)
        after = (*self._lines, *added)
        with memtrace.operation("update" if self._lines else "create", system=SYSTEM) as op:
            new = self._version(after)
            if self._lines:
                op.inputs(self.variable)
                op.supersedes(self.variable)
                op.edge(self.variable, new)
            for line in added:
                if line.variable is not None:
                    op.inputs(line.variable)
                    op.edge(line.variable, new)
            op.outputs(new)
            op.time(new, messages[-1].said_at)
        self._lines = after

    def trim(self, limit: int, at: datetime) -> None:
        """Leave the oldest lines out until the buffer has at most ``limit`` tokens."""
        after = self._lines
        while after and sum(tokens(line.text) for line in after) > limit:
            after = after[1:]
        if after == self._lines:
            return
        gone = self._lines[: len(self._lines) - len(after)]
        with memtrace.operation("consolidate", system=SYSTEM) as op:
            op.limits(budget_tokens=limit)
            for line in gone:
                if line.variable is not None:
                    op.dropped(line.variable, None, "budget")
            for planted in self._model.plantings.of("trimmed"):
                if any(self._carries(planted.message, line) for line in gone):
                    self._model.effect(planted)
            self._replace(op, after, at)

    def summarise(self, count: int, at: datetime) -> None:
        """The ``count`` oldest lines become one summary."""
        old, rest = self._lines[:count], self._lines[count:]
        with memtrace.operation("consolidate", system=SYSTEM) as op:
            summary = self._model.summarise([line.text for line in old])
            self._replace(op, (Line(summary), *rest), at)

    def _replace(self, op: memtrace.MemoryOperation, after: tuple[Line, ...], at: datetime) -> None:
        before, new = self.variable, self._version(after)
        op.inputs(before)
        op.supersedes(before)
        op.outputs(new)
        op.edge(before, new)
        op.time(new, at)
        self._lines = after

    def _carries(self, message: str, line: Line) -> bool:
        return message in self._model.oracle.carried_by(line.text)

    def _version(self, lines: Sequence[Line]) -> Variable:
        content = "\n".join(line.text for line in lines)
        return memtrace.memory(content, self._id, system=SYSTEM)
