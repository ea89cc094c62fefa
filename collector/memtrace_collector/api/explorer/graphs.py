"""The graphs there are, and the answers of one of them."""

from __future__ import annotations

from collections import Counter

from memtrace_collector.api.explorer.judged import MAX_JUDGED, answers_json, judgements
from memtrace_collector.api.explorer.listing import is_memory_fault
from memtrace_collector.api.explorer.parts import part
from memtrace_collector.api.explorer.view import Parameters, needed
from memtrace_collector.api.exploring import Stores
from memtrace_collector.api.questions import Json
from memtrace_collector.errors import WrongUseError
from memtrace_collector.graph import flags
from memtrace_collector.graph.facts import Operation, OperationKey
from memtrace_collector.graph.latest import latest_first
from memtrace_collector.graph.questions.operations import operation_at
from memtrace_collector.graph.questions.suggest import known_graph
from memtrace_collector.graph.reader import GraphReader
from memtrace_collector.store.short_verdicts import ShortVerdict

PAGE = 50
ANSWERS = 25
RANKS = ("faults", "flagged", "others")
"""Answers by what is known against them: a fault of memory, anything else, nothing."""
MAX_SCANNED = 20_000
"""A graph of more operations is not read whole for its answers: the judged ones are shown."""


def graphs(stores: Stores, parameters: Parameters) -> Json:
    """``q``: a part of a graph's id; ``from``: the first graph shown. The one written last first.

    Returns:
        a page of ``{"graph_id", "operations", "first_ns", "last_ns", "judged", "faults"}``:
        verdicts, and those of them that found a fault of memory.
    """
    wanted = parameters.get("q", "").strip().casefold()
    found = [each for each in latest_first(stores.graphs) if wanted in each.graph_id.casefold()]
    verdicts = stores.cases.short_verdicts()
    judged = Counter(each.graph_id for each in verdicts)
    faults = Counter(each.graph_id for each in verdicts if is_memory_fault(each.stage))
    page = part(parameters, "from", len(found), PAGE)
    return page.json(
        [
            {
                **each._asdict(),
                "judged": judged[each.graph_id],
                "faults": faults[each.graph_id],
            }
            for each in page.of(found)
        ]
    )


def answers(stores: Stores, parameters: Parameters) -> Json:
    """``graph``: its id; ``only``: faults, flagged or others; ``from``: the first answer shown.
    Faults first, then what was flagged otherwise, then the others; each the newest first.

    Returns:
        a page of answers with question, reply and verdict in short; ``is_whole`` is False when
        the graph is too large for its unjudged answers to be listed.

    Raises:
        WrongUseError: ``only`` is none of these.
        NotFoundError: there is no such graph.
    """
    graph_id = needed(parameters, "graph")
    only = parameters.get("only", "")
    if only and only not in RANKS:
        raise WrongUseError(f"the parameter only is {', '.join(RANKS)} or empty")
    known_graph(stores.graphs, graph_id)
    verdicts = {v.answer_key: v for v in stores.cases.short_verdicts() if v.graph_id == graph_id}
    is_whole = stores.graphs.size(graph_id) <= MAX_SCANNED
    found = _answers(stores.graphs, graph_id, list(verdicts.values()), is_whole=is_whole)
    flagged = _flagged(stores.graphs, graph_id)
    ranks = {item.key: _rank(verdicts.get(item.key), item.key in flagged) for item in found}
    found = [item for item in found if not only or RANKS[ranks[item.key]] == only]
    found.sort(key=lambda item: (ranks[item.key], -item.start_ns, item.key))
    page = part(parameters, "from", len(found), ANSWERS)
    shown = page.of(found)
    told = answers_json(stores.graphs, shown, judgements(stores, shown))
    return page.json(told) | {"graph_id": graph_id, "is_whole": is_whole}


def _rank(verdict: ShortVerdict | None, is_flagged: bool) -> int:
    """The place in :data:`RANKS`."""
    if verdict is not None:
        return 0 if is_memory_fault(verdict.stage) else 1
    return 1 if is_flagged else 2


def _flagged(reader: GraphReader, graph_id: str) -> set[OperationKey]:
    given = reader.flags(graph_id)[-MAX_JUDGED:]
    found = (flags.resolve(reader, flag) for flag in given)
    return {item.key for item in found if item is not None}


def _answers(
    reader: GraphReader, graph_id: str, verdicts: list[ShortVerdict], *, is_whole: bool
) -> list[Operation]:
    if is_whole:
        return [item for item in reader.all_operations(graph_id) if flags.is_answer(item)]
    judged = (operation_at(reader, each.answer_key) for each in verdicts[:MAX_JUDGED])
    return [item for item in judged if item is not None]
