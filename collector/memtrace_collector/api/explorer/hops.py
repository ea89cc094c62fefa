"""The steps of a failure's path with everything that shows what each did. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memtrace_collector.api.explorer.retrieval import read_json
from memtrace_collector.api.explorer.shown import MAX_CANDIDATE, Shown, first_of
from memtrace_collector.api.questions import Json
from memtrace_collector.graph import content
from memtrace_collector.graph.case import Write
from memtrace_collector.graph.facts import Decision, Operation, OperationKey, Value
from memtrace_collector.graph.history import home_of
from memtrace_collector.graph.questions.shapes import span_key, time_json
from memtrace_collector.graph.receipt import Read
from memtrace_otel import semconv, variables

MAX_CHANGES, MAX_OTHERS, MAX_DECISIONS, MAX_HELD = 6, 12, 12, 40
_STORED = (semconv.KIND_MEMORY, semconv.KIND_DOCUMENT)
_SOURCES = (semconv.KIND_MESSAGE, semconv.KIND_FACT, *_STORED)
_KEPT = {
    "evidence": "It took in the message that says it.",
    "extraction": "It made a fact that says it.",
    "decision": "It left what memory held of it as it was.",
    "write": "What it wrote says it.",
    "retrieval": "It delivered what says it.",
    "assembly": "The prompt it made has it.",
    "answer": "The reply says it.",
}
_BESIDE = {
    "retrieval": "It delivered other values; the right one took another way.",
    "answer": "The reply does not say it.",
}
_BESIDE_ELSE = "What it made says something else; the right value took another way."
_AFTER_LOSS = {
    "kept": "It made nothing of it: the information was lost before.",
    "changed": "It worked with what was left: the information was lost before.",
    "lost": "Nothing that it was given says it: the information was lost before.",
}
_DECISIVE = {
    "retrieval": "Memory held the right value, and this search did not deliver it.",
    "assembly": "The right value was delivered, and is not in the prompt that it made.",
    "answer": "It was given the right value, and the reply says something else.",
}
_DECISIVE_ELSE = {
    "changed": "The right value went in, and another came out.",
    "lost": "The right value went in, and nothing that says it came out.",
}
_UNGROUNDED = "Nothing that says it went in."
_DELETED = "The right value went in, and was deleted."
_UNSEEN = "The texts that would show it were not captured, so it cannot be told."
_OPEN = "Whether what it made says it was not settled."


@dataclass(frozen=True, slots=True)
class Known:
    """What the store still has of a case; nothing of it when its spans have gone."""

    operations: Mapping[OperationKey, Operation] = field(default_factory=dict)
    reads: Mapping[OperationKey, Read] = field(default_factory=dict)
    values: Mapping[str, Value] = field(default_factory=dict)
    histories: Mapping[str, Sequence[Write]] = field(default_factory=dict)


def hops_json(verdict: Mapping[str, Any], known: Known, shown: Shown) -> list[Json]:
    """The path of a verdict (JSON form), each hop with ``is_stored`` (its operation is known),
    ``because`` (why it has its outcome), ``record_graph_id`` (where its record lives),
    ``changes``, ``others`` (what else it made), ``decisions``, ``other_decisions`` (how many),
    ``read``, ``context``."""
    hops = verdict.get("path") or []
    first = next((place for place, hop in enumerate(hops) if hop["decisive"]), len(hops))
    return [
        _hop_json(hop, verdict, known, shown, is_after=place > first)
        for place, hop in enumerate(hops)
    ]


def refs_of(hops: Sequence[Json]) -> Iterator[str]:
    """Every reference that these hops show."""
    for hop in hops:
        for change in hop["changes"]:
            yield from (side["ref"] for side in (change["before"], change["after"]) if side)
        for decision in hop["decisions"]:
            yield from (side["ref"] for side in (decision["fact"], decision["target"]) if side)
        yield from (item["ref"] for item in (hop["read"] or {}).get("candidates", ()))
        yield from (item["ref"] for item in (hop["context"] or {}).get("prompts", ()))


def key_of(span: Mapping[str, str] | None) -> OperationKey | None:
    return span_key(span) if span else None


def _losses_at(hop: Json, verdict: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    key = key_of(hop["span"])
    return [item for item in verdict["decisive"] if hop["decisive"] and key_of(item) == key]


def _hop_json(
    hop: Json, verdict: Mapping[str, Any], known: Known, shown: Shown, *, is_after: bool
) -> Json:
    losses = _losses_at(hop, verdict)
    key = key_of(hop["span"])
    operation = known.operations.get(key) if key else None
    result = {
        **hop,
        "system": hop.get("system", ""),
        "time": time_json(hop["time_ns"]) if hop["time_ns"] else None,
        "is_stored": operation is not None,
        "because": _because(hop, losses, shown, is_after=is_after),
        "record_graph_id": _record_graph(hop, operation, known, str(verdict["graph_id"])),
        "step": "",
        "error": "",
        "changes": [_loss_json(loss, hop, shown) for loss in losses] or _versions(hop, shown),
        "others": [],
        "decisions": [],
        "other_decisions": 0,
        "read": None,
        "context": None,
    }
    if operation is None:
        return result
    missed = [] if is_after else _missed(losses)
    made, others = _made(hop, operation, losses)
    return result | {
        "system": operation.system,
        "step": operation.step,
        "error": operation.error_type,
        "changes": [_loss_json(loss, hop, shown) for loss in losses]
        or [shown.change(_made_from(operation, ref, shown), ref) for ref in made],
        "others": [shown.value(ref, MAX_CANDIDATE) for ref in others],
        **_decisions_json(operation.decisions, shown),
        "read": read_json(operation, known.reads.get(operation.key), shown, missed)
        if operation.delivered or operation.dropped
        else None,
        "context": _context_json(operation, known, shown),
    }


def _record_graph(hop: Json, operation: Operation | None, known: Known, otherwise: str) -> str:
    """Where the record of a hop lives: not always in the graph of its operation."""
    near = (operation.graph_id, *operation.reads) if operation else (otherwise,)
    return home_of(known.histories.get(hop["record"], ()), near)


def _because(
    hop: Json, losses: Sequence[Mapping[str, Any]], shown: Shown, *, is_after: bool
) -> str:
    outcome, kind = hop["outcome"], hop["kind"]
    if outcome == "unknown":
        return _UNSEEN if shown.captured(hop["versions"])["unknown"] else _OPEN
    if hop["decisive"]:
        return _decisive_because(hop, losses, shown)
    if is_after and (outcome != "kept" or kind == "decision"):
        return _AFTER_LOSS.get(outcome, "")
    if outcome == "kept":
        return _KEPT.get(kind, "")
    return _BESIDE.get(kind, _BESIDE_ELSE)


def _decisive_because(hop: Json, losses: Sequence[Mapping[str, Any]], shown: Shown) -> str:
    if not any(loss["last_right"] for loss in losses):
        return _UNGROUNDED
    if any(shown.is_deleted(loss["first_wrong"]) for loss in losses):
        return _DELETED
    return _DECISIVE.get(hop["kind"]) or _DECISIVE_ELSE.get(hop["outcome"], "")


def _loss_json(loss: Mapping[str, Any], hop: Json, shown: Shown) -> Json:
    """The last right value and what took its place; beside a reply, the prompt shows the former."""
    before = None if hop["kind"] == "answer" else loss["last_right"]
    return shown.change(before, loss["first_wrong"])


def _versions(hop: Json, shown: Shown) -> list[Json]:
    return [shown.change(None, ref) for ref in hop["versions"][:MAX_CHANGES]]


def _made(
    hop: Json, operation: Operation, losses: Sequence[Mapping[str, Any]]
) -> tuple[list[str], list[str]]:
    """What it made that tells something of the needed information (the first of all when nothing
    does), and what else. Prompts and what was read are shown apart, and so is a loss."""
    if operation.delivered or operation.dropped:
        return [], []
    made = [ref for ref in operation.outputs if _kind(ref) != semconv.KIND_CONTEXT]
    if losses:
        told = {loss["first_wrong"] for loss in losses}
        return [], [ref for ref in made if ref not in told][:MAX_OTHERS]
    about = [ref for ref in made if ref in hop["versions"]]
    telling = (about or made[:1])[:MAX_CHANGES]
    return telling, [ref for ref in made if ref not in telling][:MAX_OTHERS]


def _made_from(operation: Operation, made: str, shown: Shown) -> str | None:
    """The version it replaced, else the input that is known or most likely to have made it."""
    if operation.step == semconv.STEP_ANSWER:
        return None
    record = variables.record_of(made)
    replaced = [ref for ref in operation.supersedes if variables.record_of(ref) == record]
    given = [ref for ref in operation.inputs if _kind(ref) in _SOURCES]
    by_edge = [edge.input for edge in operation.edges if edge.output == made]
    right = [ref for ref in given if shown.role(ref)]
    return next(iter([*replaced, *by_edge, *right, *given]), None)


def _missed(losses: Sequence[Mapping[str, Any]]) -> list[str]:
    found = (loss["last_right"] for loss in losses)
    return [ref for ref in found if ref and _kind(ref) in _STORED]


def _decisions_json(decisions: Sequence[Decision], shown: Shown) -> Json:
    """Those about a right or wrong value or its record; the others are counted."""
    records = {variables.record_of(ref) for ref in (*shown.right, *shown.wrong)}
    telling = [
        each
        for each in decisions
        if any(ref and variables.record_of(ref) in records for ref in (each.fact, each.target))
    ][:MAX_DECISIONS]
    return {
        "decisions": [_decision_json(each, shown) for each in telling],
        "other_decisions": len(decisions) - len(telling),
    }


def _decision_json(decision: Decision, shown: Shown) -> Json:
    return {
        "fact": shown.value(decision.fact) if decision.fact else None,
        "action": decision.action,
        "target": shown.value(decision.target) if decision.target else None,
        "status": decision.status,
    }


def _context_json(operation: Operation, known: Known, shown: Shown) -> Json | None:
    """What the model was given: the prompts, the values in them, and those left out."""
    if operation.step not in (semconv.STEP_ASSEMBLE, semconv.STEP_ANSWER):
        return None
    named = (*operation.outputs, *operation.inputs, *operation.shown)
    prompts = list(dict.fromkeys(ref for ref in named if _kind(ref) == semconv.KIND_CONTEXT))
    quoted = [
        ref for each in prompts if each in known.values
        for ref in content.references(known.values[each])
    ]  # fmt: skip
    held = list(dict.fromkeys([*quoted, *operation.inputs]))
    held = [ref for ref in held if _kind(ref) in _SOURCES]
    kept = first_of(held, filter(shown.role, held), MAX_HELD)
    return {
        "prompts": [shown.prompt(ref) for ref in prompts],
        "holds": [shown.value(ref, MAX_CANDIDATE) for ref in kept],
        "left_out": len(held) - len(kept),
        "cut": [
            shown.value(item.ref, MAX_CANDIDATE) | {"reason": item.reason, "score": item.score}
            for item in operation.dropped[:MAX_HELD]
        ],
    }


def _kind(ref: str) -> str:
    return ref.partition(":")[0]
