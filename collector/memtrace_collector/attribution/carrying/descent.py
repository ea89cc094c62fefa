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
    found: set[str] = set(sources)
    waiting = list(found)
    while waiting:
        ref = waiting.pop()
        for op in view.readers(ref):
            if op.composite or op.step in (semconv.STEP_ANSWER, semconv.STEP_JUDGE):
                continue
            made = outputs_within(op, ref)
            if not possible and not op.edges and len(op.inputs) > 1 and len(made) > 1:
                continue
            for output in made:
                if output not in found and not is_deleted(output):
                    found.add(output)
                    waiting.append(output)
    return frozenset(found)


def kin(view: View, sources: Iterable[str], says_it: Callable[[str], bool]) -> frozenset[str]:
    """What was made from these values, by wording where no edge says which input made what.

    ``says_it``: whether a text says what the values are asked for, in whatever words they do.
    """
    found: set[str] = set(sources)
    waiting = list(found)
    while waiting:
        ref = waiting.pop()
        for op in view.readers(ref):
            if op.composite or op.step in (semconv.STEP_JUDGE, semconv.STEP_ASSEMBLE):
                continue
            made = outputs_within(op, ref) if op.edges else op.outputs
            for output in made:
                if output in found or is_deleted(output) or kind(output) == semconv.KIND_ANSWER:
                    continue
                if (
                    op.edges
                    or len(op.inputs) == 1
                    or _is_nearest(view, op, ref, output)
                    or says_it(view.text(output) or "")
                ):
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
