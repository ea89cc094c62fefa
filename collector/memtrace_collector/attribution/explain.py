"""A verdict in plain sentences of bounded length: first, what was lost where. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memtrace_collector.attribution.carrying.needs import Need
from memtrace_collector.attribution.carrying.view import View
from memtrace_collector.attribution.findings import Finding
from memtrace_collector.attribution.replay import outcome
from memtrace_collector.graph.facts import Operation, OperationKey

MAX_CHARACTERS = 600
_QUOTE = 120

_SENTENCES = {
    "never_told": "Nothing that memory was ever told says what was needed.",
    "lost_at_ingest": (
        "The needed information was lost when it entered: what {op} kept of it does not say it."
    ),
    "wrong_graph": (
        "The needed information was written into another memory than the one this answer "
        "reads, at {op}."
    ),
    "omission": "The needed information was never extracted: {op} read it and no fact is about it.",
    "distortion": "The needed information was changed on its way into memory, at {op}{aspect}.",
    "invented": "The reply rests on a fact that nothing supports, made at {op}.",
    "not_stored": (
        "The needed information was extracted but never stored; it was lost at {op}{mechanism}."
    ),
    "not_updated": "The new value was stored beside the old one instead of replacing it, at {op}.",
    "overwritten": (
        "The record that held the needed information was overwritten by another fact, at "
        "{op}{mechanism}."
    ),
    "merged_wrong": (
        "The record that held the needed information was rewritten wrongly; {op} wrote the "
        "new text."
    ),
    "compacted_away": "The needed information was lost when memory was condensed, at {op}.",
    "wrongly_deleted": "The record that held the needed information was deleted, at {op}.",
    "not_deleted": (
        "What memory was asked to forget was still there and used; {op} did not delete it."
    ),
    "not_searched": (
        "Memory had the needed information but was never searched for this answer, at {op}."
    ),
    "wrong_scope": (
        "The search looked in the wrong place or brought another owner's record, at {op}."
    ),
    "bad_query": "The search query lost what the user's words had; {op} wrote it.",
    "not_retrieved": "Memory had the needed information, but {op} never considered it.",
    "ranked_out": "The needed information was a candidate and did not make the cut, at {op}.",
    "stale_retrieved": "An outdated version of the record was delivered, at {op}.",
    "cut_from_context": "The needed information was retrieved but left out of the prompt, at {op}.",
    "garbled_in_context": (
        "The needed information stands in the prompt without what makes it right, since {op}."
    ),
    "wrong_abstention": (
        "At {op} the prompt had the needed information and the model declined to answer."
    ),
    "distracted": (
        "At {op} the model answered with another item of the prompt than the one asked for."
    ),
    "wrong_reasoning": (
        "At {op} the prompt had the needed information and the model drew the wrong "
        "conclusion from it{aspect}."
    ),
    "ignored_context": (
        "At {op} the prompt had the needed information and the model said something that "
        "stands nowhere in it."
    ),
    "hallucinated": (
        "Nothing held the information; at {op} the model should have declined and made "
        "something up."
    ),
    "bad_reference": "The evidence given supports the reply, not the expected answer.",
    "bad_judge": (
        "The reply says what was expected: it was judged wrong{judge} although it is right."
    ),
    "unrelated": "The failure is not memory's: {failure}.",
}
_EXPIRED = (
    "The record that held the needed information had expired before it was read; {op} set the "
    "expiry."
)
_MISSING = {
    "gap": "operations are known to be missing in the time that matters",
    "sampled": "operations were not sampled",
    "cut": "values or references were cut",
    "no_content": "the texts were not captured or the expected answer is not known",
    "unseen_writer": "a delivered version was written by something that was never seen",
    "clock": "the times differ by no more than an unknown clock offset",
    "retention": "the evidence is no longer, or not yet, in the store",
}
_MECHANISMS = {
    "noop": " by deciding to do nothing",
    "dedup": " as an assumed duplicate",
    "write_failed": " because the write did not take effect",
    "race": " in a race between two writers",
}


def named(operation: Operation | None) -> str:
    """An operation in words: name, service and span."""
    if operation is None:
        return "an operation that is no longer known"
    service = f" of {operation.service}" if operation.service else ""
    return f"{operation.name}{service} ({operation.span_id})"


def explain(view: View, need: Need, finding: Finding, further: Sequence[Finding] = ()) -> str:
    """What was lost where, with the texts that show it: for our own store and page.

    ``further``: of a list, what became of the other items that were lost.
    """
    if finding.error_type == "insufficient_evidence":
        hint = next((claim.says for claim in finding.claims), "")
        return _bounded(_unknown(finding.missing, hint))
    said = dict.fromkeys(_said(view, each) for each in (finding, *further))
    return _bounded(" ".join([*said, *_quoted(view, need, finding)]))


def _said(view: View, finding: Finding) -> str:
    operation = _operation(view, finding.decisive[0] if finding.decisive else None)
    says = next((claim.says for claim in finding.claims), "")
    return sentence(finding.error_type, operation, finding.aspect, finding.mechanism, says)


def sentence(
    error_type: str,
    operation: Operation | None,
    aspect: str | None = None,
    mechanism: str | None = None,
    says: str = "",
) -> str:
    """The first sentence of an explanation; it quotes no content."""
    template = _EXPIRED if mechanism == "expired" else _SENTENCES[error_type]
    return template.format(
        op=named(operation),
        judge=f" by {named(operation)}" if operation else "",
        aspect=f" (its {aspect})" if aspect else "",
        mechanism=_MECHANISMS.get(mechanism or "", ""),
        failure=says or "the question needs nothing from it",
    )


def without_quotes(verdict: Mapping[str, Any], operation: Operation | None) -> str:
    """The explanation of a verdict (JSON form) for destinations that get no content."""
    if verdict["error_type"] == "insufficient_evidence":
        return _bounded(_unknown(verdict["missing"], ""))
    says = next((claim["says"] for claim in verdict["evidence"]), "")
    found = sentence(
        verdict["error_type"], operation, verdict["aspect"], verdict["mechanism"], says
    )
    return _bounded(found + outcome.sentence(verdict.get("replay")))


def _unknown(missing: Sequence[str], hint: str) -> str:
    reasons = "; ".join(_MISSING[entry] for entry in missing if entry in _MISSING) or hint
    return (
        f"It cannot be shown which operation failed: {reasons or 'what is known leaves it open'}."
    )


def _operation(view: View, key: OperationKey | None) -> Operation | None:
    return view.case.operations.get(key) if key else None


def _quoted(view: View, need: Need, finding: Finding) -> list[str]:
    """The values before and after the loss, and what was expected, where their texts are known."""
    parts = []
    for label, ref in (("Before", finding.last_right), ("After", finding.first_wrong)):
        content = view.text(ref) if ref else None
        if content:
            parts.append(f'{label}: "{_short(content)}".')
    if need.expected:
        parts.append(f'Expected: "{_short(need.expected)}".')
    return parts


def _short(content: str) -> str:
    flat = " ".join(content.encode(errors="replace").decode().split())
    return flat if len(flat) <= _QUOTE else flat[: _QUOTE - 1] + "…"


def _bounded(sentence: str) -> str:
    return sentence if len(sentence) <= MAX_CHARACTERS else sentence[: MAX_CHARACTERS - 1] + "…"
