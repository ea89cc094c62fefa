"""A person's verdict on a case, in the form in which verdicts are stored. Pure.

It is a verdict of the method ``human`` whose ``judgement`` says what was judged:

    {"action": "confirmed" or "corrected", "revision": 1, "agreement": "operation",
     "by": "…", "note": "…", "at": "2026-…Z",
     "machine": {"revision": 1, "stage": …, "error_type": …, "decisive": […], "score": …,
                 "method": …}}

A confirmation keeps everything that the machine found; a correction keeps its path and what it
says of lineage and absence. ``machine_now`` is what the machine finds by now, where facts that
came later changed that: a person's verdict stands, and the finding stands beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from memtrace_collector.attribution import path
from memtrace_collector.attribution.explain import without_quotes
from memtrace_collector.attribution.judging.agreement import agreement
from memtrace_collector.attribution.judging.said import Said
from memtrace_collector.attribution.superseding import (
    finding_again,
    is_known,
    superseding_form,
)
from memtrace_collector.attribution.verdict import MEMORY_STAGES, STAGE_OF, Decisive, Hop
from memtrace_collector.graph.facts import Operation, OperationKey

HUMAN = "human"
CONFIRMED, CORRECTED = "confirmed", "corrected"
UNKNOWN = "insufficient_evidence"
_CHANGING = frozenset(
    (
        *("distortion", "invented", "overwritten", "merged_wrong", "stale_retrieved"),
        *("garbled_in_context", "distracted", "wrong_reasoning", "ignored_context", "hallucinated"),
    )
)
"""Types at which something else takes the place of what was right."""
_QUOTED_NOTE = 300
Json = dict[str, Any]


def is_judged(verdict: Mapping[str, Any] | None) -> bool:
    """Whether it is a person's verdict."""
    return verdict is not None and verdict["method"] == HUMAN


def is_by_hand(verdict: Mapping[str, Any] | None) -> bool:
    """Whether a person made it current: judged it, or withdrew a judgement."""
    return verdict is not None and bool(verdict.get("judgement") or verdict.get("withdrawn"))


def machine_of(verdict: Mapping[str, Any]) -> Json:
    """What the machine finds, in short: of a judged verdict as it says, of another itself."""
    if not is_judged(verdict):
        kept = ("revision", "stage", "error_type", "decisive", "score", "method")
        return {name: verdict[name] for name in kept}
    now = verdict.get("machine_now")
    told: Json = verdict["judgement"]["machine"]
    return told if now is None else told | {name: now[name] for name in told if name in now}


def confirmed(current: Mapping[str, Any], said: Said, now_ns: int) -> Json:
    """The verdict that stands when a person confirms ``current``."""
    finding = finding_again(current) | _by_hand(CONFIRMED, current, current, said, now_ns)
    return superseding_form(finding, current["id"], now_ns, current, "a person confirmed it")


def corrected(
    current: Mapping[str, Any], said: Said, decisive: Sequence[Operation], now_ns: int
) -> Json:
    """The verdict that stands when a person corrects ``current``.

    ``decisive``: the operations that they name, in causal order.
    """
    stage, first = STAGE_OF[said.type], next(iter(decisive), None)
    named = [_decisive(current, said, op, op is first) for op in decisive]
    found = {
        "stage": stage,
        "error_type": said.type,
        "aspect": None,
        "mechanism": None,
        "decisive": named,
        "last_right": named[0]["last_right"] if named else said.last_right,
        "first_wrong": named[0]["first_wrong"] if named else said.first_wrong,
        "also": [],
        "score": 1.0,
        "basis": [],
        "evidence": [],
        "alternatives": [],
        "missing": current["missing"] if said.type == UNKNOWN else [],
        "path": _path(current.get("path", ()), stage, decisive, named),
        "model": None,
        "replay": None,
    }
    note = f' A person says: "{_short(said.note)}"' if said.note else ""
    finding = finding_again(current) | found
    finding |= {"explanation": without_quotes(finding, first) + note}
    finding |= _by_hand(CORRECTED, current, found, said, now_ns)
    before = f"{current['stage']}/{current['error_type']}"
    change = f"a person corrected it; it said {before}"
    return superseding_form(finding, current["id"], now_ns, current, change)


def restored(
    current: Mapping[str, Any], machine: Mapping[str, Any], said: Said, now_ns: int
) -> Json:
    """The verdict that stands when a judgement is withdrawn.

    Args:
        current: the person's verdict.
        machine: the machine's that was judged; what the machine finds by now goes before it.
        said: the withdrawal.
    """
    now = current.get("machine_now")
    finding = finding_again(machine if now is None else now)
    finding.pop("agreement", None)
    finding |= {
        "judgement": None,
        "machine_now": None,
        "withdrawn": {"revision": current["revision"], "by": said.by, "at": _moment(now_ns)},
    }
    change = "the judgement of a person was withdrawn"
    return superseding_form(finding, current["id"], now_ns, current, change)


def beside(
    judged: Mapping[str, Any],
    machine: Mapping[str, Any] | None,
    last: Mapping[str, Any] | None,
    finding: Mapping[str, Any],
) -> Json | None:
    """A person's verdict with what the machine finds now; None when that is no news.

    Args:
        judged: the person's verdict, which is current.
        machine: the machine's verdict that was judged, when it is known.
        last: the last verdict that the same method found, as far as it is known.
        finding: what the machine finds now.
    """
    now = judged.get("machine_now")
    if now is not None and now["method"] == finding["method"]:
        last = now
    if last is not None and is_known(last, finding):
        return None
    if machine is not None and is_known(machine, finding):
        return {**judged, "machine_now": None}
    return {**judged, "machine_now": {**finding, "agreement": agreement(judged, finding)}}


def says_the_same(judged: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two verdicts of persons are one judgement made twice: the same in the same words,
    by the same person."""
    return _words(judged) == _words(other)


def _words(verdict: Mapping[str, Any]) -> list[Any]:
    said = verdict.get("judgement") or {}
    names = ("stage", "error_type", "decisive", "last_right", "first_wrong")
    return [*(said.get(name) for name in ("action", "by", "note")), *map(verdict.get, names)]


def _by_hand(
    action: str,
    current: Mapping[str, Any],
    human: Mapping[str, Any],
    said: Said,
    now_ns: int,
) -> Json:
    machine, now = machine_of(current), current.get("machine_now")
    return {
        "method": HUMAN,
        "withdrawn": None,
        "machine_now": now and {**now, "agreement": agreement(human, now)},
        "judgement": {
            "action": action,
            "revision": current["revision"],
            "agreement": agreement(human, machine),
            "by": said.by,
            "note": said.note,
            "at": _moment(now_ns),
            "machine": machine,
        },
    }


def _decisive(current: Mapping[str, Any], said: Said, operation: Operation, is_first: bool) -> Json:
    """What was last right and first wrong there: as the person says of the first, else as was
    known of the same operation."""
    known: Mapping[str, Any] = next(
        (
            each
            for each in current["decisive"]
            if (each["traceId"], each["spanId"]) == operation.key
        ),
        {},
    )
    return Decisive(
        operation=operation.key,
        error_type=said.type,
        last_right=(said.last_right if is_first else None) or known.get("last_right"),
        first_wrong=(said.first_wrong if is_first else None) or known.get("first_wrong"),
    ).to_json()


def _path(
    hops: Sequence[Mapping[str, Any]],
    stage: str,
    decisive: Sequence[Operation],
    named: Sequence[Mapping[str, Any]],
) -> list[Json]:
    """The same way, lost where the person says; what else was seen at a hop stays seen."""
    outcomes = {
        op.key: _outcome(each) if stage in MEMORY_STAGES else ""
        for op, each in zip(decisive, named)
    }
    told = []
    for hop in hops:
        key = OperationKey(hop["span"]["traceId"], hop["span"]["spanId"]) if hop["span"] else None
        at_fault = outcomes.pop(key, None) if key is not None else None
        outcome = at_fault or hop["outcome"]
        told.append({**hop, "outcome": outcome, "decisive": at_fault is not None})
    further = [op for op in decisive if op.key in outcomes and op.step in path.KINDS]
    told += [_hop(op, outcomes[op.key] or "unknown") for op in further]
    return sorted(told, key=lambda hop: (hop["kind"] in path.LATE, hop["time_ns"]))


def _outcome(named: Mapping[str, Any]) -> str:
    is_changed = named["first_wrong"] or named["error_type"] in _CHANGING
    return "changed" if is_changed else "lost"


def _hop(operation: Operation, outcome: str) -> Json:
    return Hop(
        kind=path.KINDS[operation.step],
        outcome=outcome,
        operation=operation.key,
        service=operation.service,
        system=operation.system,
        name=operation.name,
        time_ns=operation.start_ns,
        versions=operation.outputs[:8],
        decisive=True,
    ).to_json()


def _moment(now_ns: int) -> str:
    moment = datetime.fromtimestamp(now_ns / 1e9, tz=timezone.utc)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _short(note: str) -> str:
    flat = " ".join(note.split())
    return flat if len(flat) <= _QUOTED_NOTE else flat[: _QUOTED_NOTE - 1] + "…"
