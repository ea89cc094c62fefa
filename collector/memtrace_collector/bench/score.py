"""How a verdict is compared with what was planted. Pure.

The rules, each applied by :func:`mark`:

- **operation**: the verdict's decisive operations are exactly the truth's (as sets of spans; of
  a case with several causes, all of them and no other). Where the decision table names no
  operation (never_told, bad_reference, bad_judge, unrelated), it is right to name none, and
  only with the right stage. bad_judge may name the recorded judge, unrelated the failed call.
- **named**: the truth's operations are among those that the verdict blames as decisive, whatever
  else it blames; right where **operation** is.
- **stage**, **exact type**: the set of stages, of types, of the decisive operations is the
  truth's. **type** takes the types inside ``response`` for one, because hand labels do not
  agree on them; they are reported apart.
- **label**: the same by MemTrace's seven labels. ``unrelated`` and an abstention have none and
  are wrong.
- **joint**: operation and type.
- **top three**: the first three readings (the verdict, then its alternatives, then ``also``)
  hold one whose operations are the truth's.
- An **abstention** (stage ``unknown``) is never right; accuracy of those not abstained is given
  beside it.
- A **confident wrong** verdict blames a memory operation with a score of at least
  :data:`CONFIDENT`, and operation or stage is wrong.
- A **control** is an answer that was right and is flagged all the same. Controls are left out
  of every accuracy, and blaming a memory operation for one is **false blame**.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from memtrace_collector.attribution.verdict import MEMORY_STAGES, STAGE_OF
from memtrace_otel import semconv

CONFIDENT = 0.5
"""The published cut: a verdict with at least this score is acted upon."""
TOP = 3
RESPONSE = "response"
_LABELS = {
    "AnnotationError": ("never_told", "bad_reference"),
    "LLMAsAJudgeError": ("bad_judge",),
    "ExtractionError": (
        "lost_at_ingest",
        "wrong_graph",
        "omission",
        "distortion",
        "invented",
        "not_stored",
    ),
    "UpdateError": (
        "not_updated",
        "overwritten",
        "merged_wrong",
        "compacted_away",
        "not_deleted",
    ),
    "DeletionError": ("wrongly_deleted",),
    "RetrievalError": (
        "not_searched",
        "wrong_scope",
        "bad_query",
        "not_retrieved",
        "ranked_out",
        "stale_retrieved",
        "cut_from_context",
        "garbled_in_context",
    ),
    "ResponseError": (
        "wrong_abstention",
        "distracted",
        "wrong_reasoning",
        "ignored_context",
        "hallucinated",
    ),
}
LABEL_OF = {error_type: label for label, types in _LABELS.items() for error_type in types}
"""MemTrace's label of a type; ``unrelated`` and ``insufficient_evidence`` have none."""
LABELS = tuple(_LABELS)


@dataclass(frozen=True, slots=True)
class Named:
    """A type with the operation it happened at; without ids where there is none."""

    error_type: str
    trace_id: str = ""
    span_id: str = ""
    step: str = ""

    @property
    def operation(self) -> tuple[str, str] | None:
        return (self.trace_id, self.span_id) if self.span_id else None


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a case: its type and the operations that it blames."""

    error_type: str
    decisive: tuple[Named, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a verdict says, as far as it is scored."""

    error_type: str
    decisive: tuple[Named, ...] = ()
    also: tuple[Named, ...] = ()
    alternatives: tuple[Reading, ...] = ()
    score: float = 0.0
    basis: tuple[str, ...] = ()
    absence: str = "proven"
    lineage: str = "complete"
    missing: tuple[str, ...] = ()
    explanation: str = ""
    failed: str = ""
    """The error that kept the case from being judged; it then counts as an abstention."""

    @property
    def stage(self) -> str:
        return STAGE_OF[self.error_type]

    @property
    def abstained(self) -> bool:
        return self.stage == "unknown"

    @property
    def blames_memory(self) -> bool:
        return self.stage in MEMORY_STAGES


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What was planted: the decisive operations, and those that stand beside them."""

    decisive: tuple[Named, ...]
    also: tuple[Named, ...] = ()

    @property
    def control(self) -> bool:
        """The answer was right."""
        return all(each.error_type == "bad_judge" for each in self.decisive)

    @property
    def error_type(self) -> str:
        return self.decisive[0].error_type

    @property
    def stage(self) -> str:
        return STAGE_OF[self.error_type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Right or not, by every measure."""

    operation: bool
    named: bool
    stage: bool
    type: bool
    exact_type: bool
    label: bool
    joint: bool
    top_three: bool
    abstained: bool
    blames_memory: bool
    confident_wrong: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One case judged in one variant."""

    case: str
    system: str
    dialogue: str
    source: str
    category: str
    kinds: tuple[str, ...]
    held_out: bool
    variant: str
    truth: Truth
    judgement: Judgement
    marks: Marks
    seed: int = 0
    load_ms: float = 0.0
    attribute_ms: float = 0.0
    guesses: dict[str, Named] = field(default_factory=dict)
    """By baseline, in the variant in which baselines are run."""

    @property
    def kind(self) -> str:
        """What was planted; of what was said twice, only the last loss is decisive."""
        twice = " (said twice)" if self.truth.also else ""
        return f"{'+'.join(self.kinds) or 'control'}{twice}"


def mark(truth: Truth, judgement: Judgement, confident: float = CONFIDENT) -> Marks:
    """Compare; the rules stand in the docstring of this module."""
    said = judgement.decisive or (Named(judgement.error_type),)
    known = not judgement.abstained
    stage = known and _stages(said) == _stages(truth.decisive)
    operation = known and _same_operations(truth, judgement.error_type, judgement.decisive)
    exact = known and _types(said) == _types(truth.decisive)
    folded = known and _folded(said) == _folded(truth.decisive)
    blames = judgement.blames_memory
    right = operation and stage
    return Marks(
        operation=operation,
        named=operation or (known and _names_all(truth, judgement.decisive)),
        stage=stage,
        type=folded,
        exact_type=exact,
        label=known and _labels(said) == _labels(truth.decisive) != frozenset({None}),
        joint=operation and folded,
        top_three=known and any(_reads_right(truth, each) for each in readings(judgement)[:TOP]),
        abstained=not known,
        blames_memory=blames,
        confident_wrong=blames and judgement.score >= confident and not right,
    )


def readings(judgement: Judgement) -> list[Reading]:
    """The verdict, then its alternatives by score, then each operation of ``also``."""
    return [
        Reading(judgement.error_type, judgement.decisive),
        *judgement.alternatives,
        *(Reading(each.error_type, (each,)) for each in judgement.also),
    ]


def _reads_right(truth: Truth, reading: Reading) -> bool:
    return _same_operations(truth, reading.error_type, reading.decisive)


def _same_operations(truth: Truth, error_type: str, decisive: Iterable[Named]) -> bool:
    calls = {each.operation for each in truth.decisive if each.error_type == "unrelated"}
    wanted = {each.operation for each in truth.decisive} - calls - {None}
    judges = truth.control
    named = (
        {each.operation for each in decisive if not (judges and each.step == semconv.STEP_JUDGE)}
        - calls
        - {None}
    )
    if wanted:
        return named == wanted
    return not named and STAGE_OF[error_type] in _stages(truth.decisive)


def _names_all(truth: Truth, decisive: Iterable[Named]) -> bool:
    wanted = {each.operation for each in truth.decisive} - {None}
    return bool(wanted) and wanted <= {each.operation for each in decisive}


def _types(named: Iterable[Named]) -> frozenset[str]:
    return frozenset(each.error_type for each in named)


def _stages(named: Iterable[Named]) -> frozenset[str]:
    return frozenset(STAGE_OF[each.error_type] for each in named)


def _labels(named: Iterable[Named]) -> frozenset[str | None]:
    return frozenset(LABEL_OF.get(each.error_type) for each in named)


def _folded(named: Iterable[Named]) -> frozenset[str]:
    """Types, those inside ``response`` taken for one."""
    return frozenset(
        RESPONSE if STAGE_OF[each.error_type] == RESPONSE else each.error_type for each in named
    )
