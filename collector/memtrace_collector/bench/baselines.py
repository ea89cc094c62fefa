"""What one gets without analysis, scored by the same rules.

Each baseline names one operation of a case. Its type is the one that is planted most often at
operations of that step (:func:`usual_types`), which knows more than a user would: the figures
flatter the baselines.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from memtrace_collector.bench.score import Judgement, Named, Row, mark
from memtrace_collector.graph.case import Case
from memtrace_collector.graph.facts import Operation
from memtrace_collector.graph.trace_tree import TraceTree

MAJORITY = "majority class"
LAST_OPERATION = "last operation"
DEEPEST_ERROR = "deepest error span"
WORD_OVERLAP = "word overlap"
NAMES = (MAJORITY, LAST_OPERATION, DEEPEST_ERROR, WORD_OVERLAP)
_LATEST = "latest "
"""Of a step: where the majority class would look in a case."""
_WORD = re.compile(r"\w+")


def guesses(case: Case) -> dict[str, Named]:
    """What each baseline names in a loaded case, still without types.

    ``latest STEP``: the latest operation of that step before the answer, from which
    :func:`judgements` picks the majority's.
    """
    before = _before(case)
    found = {f"{_LATEST}{item.step}": item for item in before}
    found[f"{_LATEST}{case.answer.step}"] = case.answer
    picked: dict[str, Operation | None] = {
        **found,
        LAST_OPERATION: before[-1] if before else case.answer,
        DEEPEST_ERROR: _deepest_error(case),
        WORD_OVERLAP: _greatest_drop(case, [*before, case.answer]),
    }
    return {name: _named(item) for name, item in picked.items() if item is not None}


def judgements(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """By baseline: the rows, as it would have judged them. Controls take part like the rest."""
    counted = [row for row in rows if row.guesses]
    planted = [row for row in counted if not row.truth.control]
    by_step = usual_types(planted)
    majority = Counter((row.truth.error_type, _step(row)) for row in planted)
    usual = majority.most_common(1)[0][0] if majority else ("insufficient_evidence", "")
    found: dict[str, list[Row]] = {name: [] for name in NAMES}
    for row in counted:
        found[MAJORITY].append(_judged(row, row.guesses.get(f"{_LATEST}{usual[1]}"), usual[0]))
        for name in NAMES[1:]:
            guess = row.guesses.get(name)
            error_type = by_step.get(guess.step, usual[0]) if guess else usual[0]
            found[name].append(_judged(row, guess, error_type))
    return found


def usual_types(rows: Iterable[Row]) -> Mapping[str, str]:
    """By step: the type that is planted most often at an operation of it."""
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        for each in row.truth.decisive:
            if each.step:
                counts.setdefault(each.step, Counter())[each.error_type] += 1
    return {step: count.most_common(1)[0][0] for step, count in counts.items()}


def _judged(row: Row, guess: Named | None, error_type: str) -> Row:
    decisive = (
        (Named(error_type, guess.trace_id, guess.span_id, guess.step),) if guess is not None else ()
    )
    judgement = Judgement(error_type=error_type, decisive=decisive, score=1.0)
    return replace(row, judgement=judgement, marks=mark(row.truth, judgement), guesses={})


def _step(row: Row) -> str:
    return row.truth.decisive[0].step


def _named(operation: Operation) -> Named:
    return Named("", operation.trace_id, operation.span_id, operation.step)


def _before(case: Case) -> list[Operation]:
    """The answer's ancestors and turn, no composites, by start."""
    keys = (case.ancestry | case.turn) - {case.answer.key}
    found = [case.operations[key] for key in keys if key in case.operations]
    return sorted(
        (item for item in found if not item.composite and item.start_ns <= case.answer.start_ns),
        key=lambda item: (item.start_ns, item.span_id),
    )


def _deepest_error(case: Case) -> Operation | None:
    """Jaeger's heuristic in the failing trace: the deepest span in error, else the deepest."""
    trace_id = case.answer.trace_id
    tree = TraceTree(item for item in case.operations.values() if item.trace_id == trace_id)
    in_error = [item for item in tree.operations if item.error_type]
    return max(
        in_error or tree.operations,
        key=lambda item: (len(tree.chain(item.span_id)), item.start_ns, item.span_id),
        default=None,
    )


def _greatest_drop(case: Case, operations: list[Operation]) -> Operation | None:
    """The operation that keeps least of the expected words that what it read had."""
    expected = _words(case.flag.expected or "")
    worst: tuple[float, Operation] | None = None
    for item in operations:
        outputs = (*item.outputs, *item.delivered)
        drop = _overlap(case, item.inputs, expected) - _overlap(case, outputs, expected)
        if worst is None or drop > worst[0]:
            worst = (drop, item)
    return worst[1] if worst else None


def _overlap(case: Case, refs: Iterable[str], expected: frozenset[str]) -> float:
    words = frozenset(word for ref in refs for word in _words(case.texts.get(ref, "")))
    return len(expected & words) / len(expected) if expected else 0.0


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))
