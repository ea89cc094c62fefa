"""The decision table as an agent sees it: when a type holds, and at which steps."""

from __future__ import annotations

from typing import NamedTuple

from memtrace_otel.semconv import (
    STEP_ADD,
    STEP_ANSWER,
    STEP_ASSEMBLE,
    STEP_CONSOLIDATE,
    STEP_CREATE,
    STEP_DECIDE,
    STEP_DELETE,
    STEP_EXTRACT,
    STEP_INGEST,
    STEP_JUDGE,
    STEP_RERANK,
    STEP_RETRIEVE,
    STEP_REWRITE,
    STEP_UPDATE,
)

_WRITES = (STEP_CREATE, STEP_UPDATE, STEP_DELETE, STEP_CONSOLIDATE)


class Row(NamedTuple):
    """``steps``: those at which an operation can be decisive for it. ``is_absence``: it says
    that something did not happen, which a known loss of spans forbids."""

    holds: str
    steps: frozenset[str]
    is_absence: bool = False


def _row(holds: str, *steps: str, is_absence: bool = False) -> Row:
    return Row(holds, frozenset(steps), is_absence)


ROWS: dict[str, Row] = {
    "bad_judge": _row("the answer gives what was expected; the judge was wrong", STEP_JUDGE),
    "wrong_graph": _row(
        "what was needed was stored in another graph, which this answer does not read",
        STEP_INGEST, STEP_ADD, STEP_CREATE, STEP_UPDATE,
    ),
    "lost_at_ingest": _row("the source had it, the stored message or chunk has not", STEP_INGEST),
    "omission": _row(
        "the message that says it was read and no fact is about it",
        STEP_EXTRACT, STEP_ANSWER, STEP_ADD, is_absence=True,
    ),
    "distortion": _row(
        "a fact is about it and has its value, time, owner, number or negation changed",
        STEP_EXTRACT, STEP_ANSWER, STEP_ADD,
    ),
    "invented": _row(
        "the wrong value comes from a fact that nothing supports",
        STEP_EXTRACT, STEP_ANSWER, STEP_ADD,
    ),
    "not_stored": _row(
        "a fact says it, no stored version ever does (no action, taken for a duplicate, failed)",
        STEP_DECIDE, STEP_ADD, *_WRITES, is_absence=True,
    ),
    "overwritten": _row(
        "the version that said it was replaced by another fact's text; the author of the choice "
        "is decisive, not who carried it out",
        STEP_DECIDE, STEP_ADD, STEP_ANSWER, *_WRITES,
    ),
    "merged_wrong": _row(
        "the version that said it was replaced by newly written text that does not",
        STEP_DECIDE, STEP_ADD, STEP_ANSWER, *_WRITES,
    ),
    "compacted_away": _row(
        "lost in a summary, merge, trim or forgetting", STEP_CONSOLIDATE, STEP_DELETE, STEP_UPDATE
    ),
    "not_updated": _row(
        "the new value was stored beside a contradicting current record, and both were returned",
        STEP_DECIDE, STEP_ADD, STEP_ANSWER,
    ),
    "wrongly_deleted": _row(
        "the record was deleted, or expired, before the read",
        STEP_DECIDE, STEP_ADD, STEP_ANSWER, *_WRITES,
    ),
    "not_deleted": _row(
        "asked to forget it, yet still current and used",
        STEP_DECIDE, STEP_ADD, STEP_EXTRACT, STEP_ANSWER, *_WRITES,
    ),
    "not_searched": _row("memory was not read for this answer", STEP_ANSWER, is_absence=True),
    "wrong_scope": _row("another graph, namespace or filter was searched", STEP_RETRIEVE),
    "bad_query": _row(
        "the query was rewritten and lost what the user's words had", STEP_REWRITE, STEP_ANSWER
    ),
    "not_retrieved": _row("it was stored and never a candidate of the search", STEP_RETRIEVE),
    "ranked_out": _row("it was a candidate and was cut", STEP_RETRIEVE, STEP_RERANK),
    "stale_retrieved": _row("an older version was returned than the current one", STEP_RETRIEVE),
    "cut_from_context": _row(
        "returned by the search, not in the prompt", STEP_ASSEMBLE, STEP_ANSWER, is_absence=True
    ),
    "garbled_in_context": _row(
        "in the prompt without what makes it right (date, speaker)", STEP_ASSEMBLE, STEP_ANSWER
    ),
    "wrong_abstention": _row("the prompt has it, the reply declines", STEP_ANSWER),
    "distracted": _row("the reply says what another item of the prompt says", STEP_ANSWER),
    "wrong_reasoning": _row("the reply builds on the right item, wrongly", STEP_ANSWER),
    "ignored_context": _row(
        "the prompt has it, the reply says what stands nowhere in it", STEP_ANSWER
    ),
    "hallucinated": _row(
        "nothing has it, the reply should have declined and asserts", STEP_ANSWER
    ),
}  # fmt: skip
"""Types that name an operation, in the order in which the table tests them."""
