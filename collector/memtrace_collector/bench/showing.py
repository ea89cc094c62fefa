"""One recorded case in full, for whoever wants to know why it is judged as it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any

from memtrace_collector.attribution.verdict import Verdict
from memtrace_collector.bench import variants
from memtrace_collector.bench.folder import RunFolder, Unit
from memtrace_collector.bench.judging import Asked, collect, facts_path, judge_case, project
from memtrace_collector.bench.planned import Outcome
from memtrace_collector.bench.scoring import why_not
from memtrace_collector.bench.variants import Variant
from memtrace_collector.errors import NotFoundError, WrongUseError
from memtrace_collector.graph.case import Case
from memtrace_collector.graph.facts import Operation, OperationKey
from memtrace_collector.store.sqlite_facts import SqliteFactStore

Json = dict[str, Any]
_SHOWN_CHARS = 160


def show(folder: RunFolder, case_id: str, variant_name: str) -> Json:
    """One recorded case: question, replies, planting, truth, the verdict as judged now with its
    path, and the operations that were looked at.

    Raises:
        NotFoundError: no case of that id was recorded.
        WrongUseError: the variant is judged on other traces than the recorded ones.
    """
    variant = next(each for each in variants.VARIANTS if each.name == variant_name)
    if not variant.as_recorded:
        raise WrongUseError(f"{variant_name} is not judged on the traces as they were recorded")
    for unit in folder.units():
        outcome = next((o for o in unit.outcomes() if o.case.id == case_id), None)
        if outcome is not None:
            return {**_told(unit, outcome), **_judged(unit, outcome, variant)}
    raise NotFoundError(f"{folder.root} holds no case {case_id}")


def _told(unit: Unit, outcome: Outcome) -> Json:
    planned = outcome.case
    return {
        "case": planned.id,
        "unit": unit.name,
        "answer": f"{outcome.trace_id}:{outcome.span_id}",
        "graph": outcome.graph_id,
        "question": planned.question.text,
        "asked_at": planned.question.asked_at.isoformat(),
        "expected": outcome.expected,
        "clean_reply": outcome.clean_reply,
        "reply": outcome.reply,
        "plantings": [
            {"kind": each.kind, "message": each.message, "detail": each.detail}
            for each in planned.plantings
        ],
        "evidence": [
            f"{m.id} {m.said_at:%Y-%m-%d %H:%M} {m.speaker}: {m.text}"
            for m in planned.messages
            if m.id in planned.question.evidence
        ],
    }


def _judged(unit: Unit, outcome: Outcome, variant: Variant) -> Json:
    if not outcome.counts:
        return {"not_counted": why_not(outcome)}
    project(unit)
    asked = next((a for a in collect(unit, {}, outcome.case.id).asked), None)
    if asked is None:
        return {"not_counted": "its answer was not recorded"}
    with closing(SqliteFactStore(facts_path(unit))) as store:
        case, verdict = judge_case(store, asked, variant)
    found = verdict.to_json()
    return {
        "truth": [
            f"{t.error_type} at {t.step or 'no operation'} {t.trace_id}:{t.span_id}"
            for t in (*asked.truth.decisive, *asked.truth.also)
        ],
        "verdict": f"{verdict.stage}/{verdict.error_type} {verdict.score:.2f}",
        "explanation": found.pop("explanation"),
        "path": [_hop(hop) for hop in found.pop("path")],
        "operations": list(_operations(case, asked, verdict)),
        "full_verdict": found,
    }


def _hop(hop: Json) -> str:
    mark = "* " if hop["decisive"] else "  "
    return f"{mark}{hop['kind']} {hop['outcome']} {hop['operation']} {hop['record']}: {hop['says']}"


def _operations(case: Case, asked: Asked, verdict: Verdict) -> Iterator[str]:
    """Each operation with its texts: A ancestor, T truth, V verdict."""
    truth = {OperationKey(each.trace_id, each.span_id) for each in asked.truth.decisive}
    blamed = {each.operation for each in verdict.decisive}
    for item in sorted(case.operations.values(), key=lambda o: (o.start_ns, o.span_id)):
        marks = "".join(
            letter
            for letter, keys in (("A", case.ancestry), ("T", truth), ("V", blamed))
            if item.key in keys
        )
        composite = " composite" if item.composite else ""
        yield f"{marks or '-'} {item.step}{composite} {item.key} {item.error_type}".rstrip()
        yield from (f"    {line}" for line in _values(case, item))


def _values(case: Case, item: Operation) -> Iterator[str]:
    named: tuple[tuple[str, Iterable[str]], ...] = (
        ("in ", item.inputs),
        ("shown", item.shown),
        ("out", item.outputs),
        ("got", item.delivered),
        ("old", item.supersedes),
    )
    for name, refs in named:
        for ref in refs:
            yield f"{name} {ref}: {_short(case.texts.get(ref, ''))}"
    for each in item.dropped:
        yield f"cut {each.ref} {each.reason} {each.rank}: {_short(case.texts.get(each.ref, ''))}"
    for decision in item.decisions:
        yield f"did {decision.action} {decision.fact} {decision.target} {decision.status}"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
