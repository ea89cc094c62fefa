"""What was made from a value: along edges, single inputs, equal text, and nearest wording. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from memtrace_collector.attribution.carrying.refs import is_deleted, kind, outputs_within
from memtrace_collector.attribution.carrying.view import View
from memtrace_collector.attribution.texts import text
from memtrace_collector.graph.facts import Operation
from memtrace_otel import semconv

NEAREST = 0.2
"""Share of an output's words in an input below which nobody would say it was made from that."""


def descent(view: View, sources: Iterable[str], *, possible: bool = False) -> frozenset[str]:
    """What was made from these values for certain: along edges, and along single inputs.

    ``possible``: also what an operation that does not say which input made which output made of
    them or of something else.
    """

    def is_made(_ref: str, op: Operation, _output: str) -> bool:
        if op.step in (semconv.STEP_ANSWER, semconv.STEP_JUDGE):
            return False
        return possible or bool(op.edges) or 1 in (len(op.inputs), len(op.outputs))

    return _closure(view, sources, is_made)


def kin(view: View, sources: Iterable[str], says_it: Callable[[str], bool]) -> frozenset[str]:
    """What was made from these values, by wording where no edge says which input made what.

    ``says_it``: whether a text says what the values are asked for, in whatever words they do.
    """

    def is_made(ref: str, op: Operation, output: str) -> bool:
        if op.step in (semconv.STEP_JUDGE, semconv.STEP_ASSEMBLE):
            return False
        if kind(output) == semconv.KIND_ANSWER:
            return False
        return (
            bool(op.edges)
            or len(op.inputs) == 1
            or _is_nearest(view, op, ref, output)
            or says_it(view.text(output) or "")
        )

    return _closure(view, sources, is_made)


def _closure(
    view: View, sources: Iterable[str], is_made: Callable[[str, Operation, str], bool]
) -> frozenset[str]:
    """The values, what their readers made from them, what was made from that, and so on."""
    found: set[str] = set(sources)
    waiting = list(found)
    while waiting:
        ref = waiting.pop()
        for op in view.readers(ref):
            for output in () if op.composite else outputs_within(op, ref):
                if output not in found and not is_deleted(output) and is_made(ref, op, output):
                    found.add(output)
                    waiting.append(output)
    return frozenset(found)


def _is_nearest(view: View, op: Operation, ref: str, output: str) -> bool:
    """Whether no other input shares more of the output's words."""
    made = text.content_tokens(view.text(output) or "")
    if not made:
        return False
    own = len(made & text.content_tokens(view.text(ref) or ""))
    most = max(len(made & text.content_tokens(view.text(each) or "")) for each in op.inputs)
    return own >= most and own >= NEAREST * len(made)
