"""One operation with everything it read and wrote, and what stands beside it."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from memtrace_collector.api.explorer.judged import judgements, short_verdict_json
from memtrace_collector.api.explorer.parts import EXCERPT_CHARS, TEXT_CHARS, part, text_json
from memtrace_collector.api.explorer.view import Parameters, needed
from memtrace_collector.api.exploring import Stores
from memtrace_collector.api.questions import Json
from memtrace_collector.graph.ancestry import parents_of
from memtrace_collector.graph.facts import Operation, OperationKey
from memtrace_collector.graph.flags import is_answer
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.questions.answered import AS_THEY_ARE, Found
from memtrace_collector.graph.questions.operations import Named, operation
from memtrace_collector.graph.questions.shapes import operation_json, parse_answer
from memtrace_collector.graph.reader import Near
from memtrace_collector.graph.trace_tree import TraceTree
from memtrace_otel import variables

PARTS = ("input", "output", "superseded", "delivered", "dropped", "shown")
PAGE = 100
"""References of one part."""
MAX_NEIGHBOURS = 50
MAX_TRACE = 200
"""Operations listed of the same trace."""
_MET_AFTERWARDS = 16
"""Operations looked at for each record that a read returned."""


def one_operation(stores: Stores, parameters: Parameters) -> Json:
    """``span``: TRACE:SPAN; ``from_input``, ``from_dropped`` …: the first reference shown of a
    part.

    Returns:
        what ``questions/operations.py`` says of it, with ``parts`` (part -> page of its
        references with their texts), ``came_from`` and ``led_to`` (operations, and how many there
        are), ``trace`` (the operations of its trace, each with its depth), ``decisive_for`` (the
        failures that it is the cause of) and, of an answer, ``verdict``.
    """
    reader = stores.graphs
    found = operation(reader, needed(parameters, "span"), AS_THEY_ARE)
    key = parse_answer(parameters["span"])
    tree = TraceTree(reader.trace_operations(key.trace_id))
    item = next(each for each in tree.operations if each.key == key)
    lookups = Lookups(reader)
    before = parents_of(lookups, [item]).get(key, ())
    verdict = judgements(stores, [item])[key].verdict if is_answer(item) else None
    return {
        **found.head,
        "parts": {name: _part(stores, item, found, name, parameters) for name in PARTS},
        "came_from": _operations(lookups.known(each) for each in before),
        "led_to": _operations(_led_to(lookups, tree, item)),
        "trace": _trace(tree),
        "decisive_for": _failures(stores, key),
        "is_answer": is_answer(item),
        "verdict": verdict and short_verdict_json(verdict),
    }


def _led_to(lookups: Lookups, tree: TraceTree, item: Operation) -> list[Operation]:
    """Who used what it made, who wrote as it decided, and who used what it returned."""
    found = lookups.reader.users(item.graph_id, item.outputs) if item.outputs else {}
    users = [user for made in found.values() for user in made if user.key != item.key]
    chosen = tree.writes_for(item) if item.decisions else []
    return [*users, *chosen, *_given(lookups, item)]


def _given(lookups: Lookups, item: Operation) -> list[Operation]:
    """Of those who soon afterwards met what a read returned, the ones who had it from there."""
    records = {variables.record_of(ref) for ref in item.delivered[:PAGE]}
    near = Near(item.start_ns, 0, 0, _MET_AFTERWARDS)
    met = lookups.reader.record_users(item.graph_id, records, near) if records else {}
    users = {user.key: user for found in met.values() for user in found}
    users.pop(item.key, None)
    later = [user for user in users.values() if user.end_ns >= item.start_ns]
    return [users[key] for key, found in parents_of(lookups, later).items() if item.key in found]


def _failures(stores: Stores, key: OperationKey) -> Json:
    caused = [each for each in stores.cases.short_verdicts() if key in each.decisive_keys]
    items = [
        {"id": each.id, "stage": each.stage, "error_type": each.error_type}
        for each in caused[:MAX_NEIGHBOURS]
    ]
    return {"items": items, "total": len(caused)}


def _part(
    stores: Stores, item: Operation, found: Found[Named], name: str, parameters: Parameters
) -> Json:
    named = [each for each in found.items if each.part == name]
    page = part(parameters, f"from_{name}", len(named), PAGE)
    rendered = found.render(page.of(named)) if named else []
    homes = _homes(stores, item, {each["ref"] for each in rendered})
    chars = TEXT_CHARS if name in ("input", "output", "superseded") else EXCERPT_CHARS
    return page.json(
        [
            each
            | {
                "text": text_json(each["text"], chars),
                "graph_id": homes.get(each["ref"], item.graph_id),
            }
            for each in rendered
        ]
    )


def _homes(stores: Stores, item: Operation, refs: Collection[str]) -> dict[str, str]:
    """The graphs in which references were made, its own before those that it read from."""
    made: dict[str, str] = {}
    for graph_id in (item.graph_id, *item.reads) if item.reads else ():
        asked = [ref for ref in refs if ref not in made]
        found = stores.graphs.producers(graph_id, asked) if asked else {}
        made.update(dict.fromkeys(found, graph_id))
    return made


def _operations(items: Iterable[Operation]) -> Json:
    distinct: dict[OperationKey, Operation] = {item.key: item for item in items}
    ordered = sorted(distinct.values(), key=lambda item: (item.start_ns, item.key))
    shown = [_short(item) for item in ordered[:MAX_NEIGHBOURS]]
    return {"items": shown, "total": len(ordered)}


def _trace(tree: TraceTree) -> Json:
    shown = tree.operations[:MAX_TRACE]
    items = [_short(item) | {"depth": len(tree.enclosing(item))} for item in shown]
    return {"items": items, "total": len(tree.operations)}


def _short(item: Operation) -> Json:
    return operation_json(item) | {"system": item.system, "error": item.error_type}
