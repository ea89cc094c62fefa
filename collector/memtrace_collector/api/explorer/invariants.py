"""What the watched invariants found, by kind, each with a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from memtrace_collector.api.explorer.graph_choice import graphs_json
from memtrace_collector.api.explorer.parts import EXCERPT_CHARS, part, text_json
from memtrace_collector.api.explorer.view import Parameters
from memtrace_collector.api.exploring import Stores
from memtrace_collector.api.questions import Json
from memtrace_collector.errors import WrongUseError
from memtrace_collector.graph import content
from memtrace_collector.graph.facts import Operation, OperationKey
from memtrace_collector.graph.invariants import KINDS, Finding, check
from memtrace_collector.graph.latest import latest_first
from memtrace_collector.graph.questions.operations import values_of
from memtrace_collector.graph.questions.shapes import span_json
from memtrace_collector.graph.questions.suggest import known_graph
from memtrace_collector.graph.reader import GraphReader
from memtrace_otel import variables

PAGE = 50
MAX_OPERATIONS = 50_000
"""Of the graphs that are checked when none is named, the ones written last first."""
LARGEST = 200_000
"""Operations of a graph that is checked while somebody waits."""
MEANINGS = {
    "stale": "A search returned a version that had been replaced before the search began.",
    "zombie": "A search returned a record that had been deleted before the search began.",
    "foreign": "A search returned a record that another owner's graph holds.",
    "lost_write": "It was decided to write, and no write followed.",
    "flapping": "A record holds a value again that had been replaced.",
    "empty_retrieval": "A search returned nothing.",
}
"""What each kind is, in one sentence."""


class Checked(NamedTuple):
    """``graphs``: how many were checked, of ``known``."""

    found: list[Finding]
    graphs: int
    known: int


def invariants(stores: Stores, parameters: Parameters) -> Json:
    """Findings of one graph, or of the graphs written last.

    Parameters: ``kind``, ``graph``, ``start`` (place of the first item of the page, from 0).

    Returns:
        ``kinds`` (name, meaning, how many), ``findings`` (newest first), ``graphs``, ``checked``
        and ``known`` (how many graphs were looked at, of how many).

    Raises:
        WrongUseError: there is no such kind; the graph is larger than :data:`LARGEST`.
        NotFoundError: there is no such graph.
    """
    kind, graph_id = parameters.get("kind", ""), parameters.get("graph", "")
    if kind and kind not in KINDS:
        raise WrongUseError(f"there is no kind {kind[:40]!r}; there are {', '.join(KINDS)}")
    checked = _checked(stores.graphs, graph_id)
    counts = Counter(item.kind for item in checked.found)
    wanted = [item for item in checked.found if kind in ("", item.kind)]
    page = part(parameters, "start", len(wanted), PAGE)
    return {
        "kind": kind,
        "graph_id": graph_id,
        "kinds": [
            {"kind": each, "meaning": MEANINGS[each], "count": counts[each]} for each in KINDS
        ],
        "findings": page.json(_findings_json(stores.graphs, page.of(wanted[::-1]))),
        "graphs": graphs_json(stores.graphs),
        "checked": checked.graphs,
        "known": checked.known,
    }


def _checked(reader: GraphReader, graph_id: str) -> Checked:
    if graph_id:
        known_graph(reader, graph_id)
        if reader.size(graph_id) > LARGEST:
            raise WrongUseError(
                f"{graph_id} has more than {LARGEST} operations, too many to check while you "
                f"wait; `memtrace-otel invariants --graph {graph_id}` does"
            )
        return Checked(check(reader, graph_id), 1, 1)
    summaries = latest_first(reader)
    found: list[tuple[int, Finding]] = []
    room, graphs = MAX_OPERATIONS, 0
    for summary in summaries:
        if summary.operations > room:
            continue
        room -= summary.operations
        graphs += 1
        found += [(summary.last_ns, item) for item in check(reader, summary.graph_id)]
    found.sort(key=lambda pair: pair[0])
    return Checked([item for _, item in found], graphs, len(summaries))


def _findings_json(reader: GraphReader, run: Sequence[Finding]) -> list[Json]:
    by_graph: dict[str, list[Finding]] = {}
    for item in run:
        by_graph.setdefault(item.graph_id, []).append(item)
    broke: dict[OperationKey, Operation] = {}
    texts: dict[tuple[str, str], str] = {}
    for graph_id, items in by_graph.items():
        broke.update(reader.operations(graph_id, {item.operation for item in items}))
        homes = {item.written_in for item in items} - {"", graph_id}
        values = values_of(reader, (graph_id, *sorted(homes)), {item.ref for item in items})
        texts.update({(graph_id, ref): content.plain_text(v) for ref, v in values.items()})
    return [_finding_json(item, broke.get(item.operation), texts) for item in run]


def _finding_json(
    item: Finding, operation: Operation | None, texts: dict[tuple[str, str], str]
) -> Json:
    return {
        "kind": item.kind,
        "graph_id": item.graph_id,
        "ref": item.ref,
        "record": variables.record_of(item.ref) if item.written_in else None,
        "record_graph_id": item.written_in,
        "says": item.says,
        "text": text_json(texts.get((item.graph_id, item.ref)), EXCERPT_CHARS),
        "span": span_json(item.operation),
        "name": operation.name if operation else "",
        "step": operation.step if operation else "",
        "service": operation.service if operation else "",
        "time_ns": operation.start_ns if operation else 0,
    }
