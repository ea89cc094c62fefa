"""The ancestry or the case of an answer as a layered drawing, laid out from left to right."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Mapping
from typing import NamedTuple

from memtrace_collector.api.explorer.elements import Elements, Node, elements
from memtrace_collector.api.explorer.judged import answers_json, judgements
from memtrace_collector.api.explorer.marks import Marks, marks
from memtrace_collector.api.explorer.placing import Box, Size, placed
from memtrace_collector.api.explorer.scene import ANCESTRY, CASE, scene
from memtrace_collector.api.explorer.view import Parameters, needed
from memtrace_collector.api.exploring import Stores
from memtrace_collector.api.questions import Json
from memtrace_collector.errors import NotFoundError, WrongUseError
from memtrace_collector.graph.facts import Operation
from memtrace_collector.graph.network import OPERATION, VARIABLE
from memtrace_collector.graph.questions.answers import answer_at
from memtrace_collector.graph.questions.shapes import parse_time
from memtrace_otel import semconv, variables

MAX_NODES = 2_000
"""A drawing of more is no help: those closest to the answer and to what is marked are shown."""
MAX_AROUND = 200
"""Nodes shown around one that was asked for."""
TEXT_CHARS = 1_500
"""Of one captured text: what a search in the drawing looks through."""
_ALL_TEXT_CHARS = 1_000_000
_LEAST_TEXT_CHARS = 120
_SIZES = {OPERATION: Size(176, 46), VARIABLE: Size(196, 30)}


class _Window(NamedTuple):
    """Of which time (ns; 0: any) and around which node, in case not everything fits."""

    since_ns: int
    until_ns: int
    around: str

    def holds(self, operation: Operation) -> bool:
        is_before = bool(self.until_ns) and operation.start_ns > self.until_ns
        return self.since_ns <= operation.start_ns and not is_before


def drawing(stores: Stores, parameters: Parameters) -> Json:
    """Nodes with their boxes in pixels, links with the places of their ends among the nodes.

    ``answer``: TRACE[:SPAN]; ``of``: ancestry (with what the verdict names) or case; ``since``
    and ``until`` (RFC 3339) and ``around`` (a node) narrow it. ``left_out`` counts what is not
    drawn.
    """
    of = parameters.get("of") or ANCESTRY
    if of not in (ANCESTRY, CASE):
        raise WrongUseError(f"the parameter of is {ANCESTRY} or {CASE}, not {of[:40]!r}")
    window = _window(parameters)
    answer = answer_at(stores.graphs, needed(parameters, "answer"))
    judged = judgements(stores, [answer])
    found = marks(str(answer.key), judged[answer.key].verdict)
    all_there_is = scene(stores.graphs, answer, of, {*found.words, *found.outcome})
    kept = [
        item
        for key, item in all_there_is.operations.items()
        if window.holds(item) or str(key) in found.words
    ]
    whole = elements(kept, all_there_is.parents, found.words, all_there_is.counts)
    if of == ANCESTRY:
        whole = _leading_on(whole, found)
    shown = _nearest(whole, found, window.around)
    texts = all_there_is.texts([node.id for node in shown.nodes if node.kind == VARIABLE])
    return {
        **answers_json(stores.graphs, [answer], judged)[0],
        "of": of,
        "lineage": all_there_is.lineage,
        "missing": list(all_there_is.missing),
        "left_out": _left_out(len(all_there_is.operations) - len(kept), whole, shown),
        **_drawn(shown, found, texts),
    }


def _window(parameters: Parameters) -> _Window:
    times = (parameters.get(name, "") for name in ("since", "until"))
    since, until = (parse_time(text) if text else 0 for text in times)
    return _Window(since, until, parameters.get("around", ""))


def _leading_on(whole: Elements, found: Marks) -> Elements:
    """Without variables that nothing came of, but for those that marked operations made."""
    leading = {link.source for link in whole.links}
    leading |= {link.target for link in whole.links if link.source in found.words}
    return _only(whole, {n.id for n in whole.nodes if n.kind == OPERATION or n.id in leading})


def _nearest(whole: Elements, found: Marks, around: str) -> Elements:
    """All; or, of too many, those that the fewest links part from what is marked, or from
    ``around``."""
    known = {node.id for node in whole.nodes}
    if around and around not in known:
        raise NotFoundError(f"{around[:200]!r} is not in this drawing")
    limit = MAX_AROUND if around else MAX_NODES
    if len(known) <= limit and not around:
        return whole
    near: dict[str, list[str]] = defaultdict(list)
    for link in whole.links:
        near[link.source].append(link.target)
        near[link.target].append(link.source)
    starts = [around] if around else found.words
    reached = dict.fromkeys(node for node in starts if node in known)
    pending = deque(reached)
    while pending and len(reached) < limit:
        fresh = [node for node in near[pending.popleft()] if node not in reached]
        fresh = list(dict.fromkeys(fresh))[: limit - len(reached)]
        reached.update(dict.fromkeys(fresh))
        pending.extend(fresh)
    return _only(whole, reached.keys())


def _only(whole: Elements, ids: Collection[str]) -> Elements:
    return Elements(
        tuple(node for node in whole.nodes if node.id in ids),
        tuple(link for link in whole.links if link.source in ids and link.target in ids),
    )


def _left_out(outside_the_time: int, whole: Elements, shown: Elements) -> Json:
    before, after = (Counter(node.kind for node in each.nodes) for each in (whole, shown))
    return {
        "operations": before[OPERATION] - after[OPERATION],
        "variables": before[VARIABLE] - after[VARIABLE],
        "outside_the_time": outside_the_time,
    }


def _drawn(shown: Elements, found: Marks, texts: Mapping[str, str]) -> Json:
    ends = [(link.source, link.target) for link in shown.links]
    layout = placed({node.id: _SIZES[node.kind] for node in shown.nodes}, ends)
    place = {node.id: number for number, node in enumerate(shown.nodes)}
    chars = _text_chars(len(texts))
    return {
        "width": layout.width,
        "height": layout.height,
        "nodes": [_node(node, layout.boxes[node.id], found, texts, chars) for node in shown.nodes],
        "links": [
            [place[link.source], place[link.target], link.relation, link.certainty, link.references]
            for link in shown.links
        ],
    }


def _text_chars(texts: int) -> int:
    return max(_LEAST_TEXT_CHARS, min(TEXT_CHARS, _ALL_TEXT_CHARS // max(1, texts)))


def _node(node: Node, box: Box, found: Marks, texts: Mapping[str, str], chars: int) -> Json:
    return {
        "id": node.id,
        "kind": node.kind,
        "time_ns": node.time_ns,
        "box": list(box),
        "marks": list(found.words.get(node.id, ())),
        "outcome": found.outcome.get(node.id, ""),
        **(_operation(node.operation) if node.operation else _variable(node.id, texts, chars)),
    }


def _operation(item: Operation) -> Json:
    return {
        "step": item.step,
        "system": item.system,
        "service": item.service,
        "name": item.name,
        "graph_id": item.graph_id,
        "end_ns": item.end_ns,
        "error": item.error_type,
    }


def _variable(ref: str, texts: Mapping[str, str], chars: int) -> Json:
    text = texts.get(ref)
    return {
        "of_kind": ref.partition(":")[0],
        "record": variables.record_of(ref),
        "deleted": variables.version_of(ref) == semconv.DELETED_VERSION,
        "text": None if text is None else text[:chars],
        "chars": len(text or ""),
    }
