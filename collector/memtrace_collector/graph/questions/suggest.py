"""What somebody may have meant who named what does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice

from memtrace_collector.errors import NotFoundError
from memtrace_collector.graph.facts import Operation
from memtrace_collector.graph.latest import latest_others
from memtrace_collector.graph.reader import GraphReader
from memtrace_collector.graph.references import named_by
from memtrace_otel import variables

MAX_LOOKED_AT = 5_000
"""Names, or operations whose records are names, that are compared."""
MAX_SUGGESTED = 3
MAX_SHOWN = 200
"""Characters of a suggested name: it was recorded and may be anything."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`` (did you mean …?)`` with the nearest known names; empty when none is near."""
    among = list(islice(known, MAX_LOOKED_AT))
    part = name.casefold()
    holding = [each for each in among if part and part in each.casefold()]
    near = holding or difflib.get_close_matches(name, among, MAX_SUGGESTED)
    shown = " or ".join(repr(each[:MAX_SHOWN]) for each in near[:MAX_SUGGESTED])
    return f" (did you mean {shown}?)" if shown else ""


def known_graph(reader: GraphReader, graph_id: str) -> None:
    """Raise NotFoundError for a graph that does not exist."""
    ids = [summary.graph_id for summary in reader.graphs()]
    if graph_id not in ids:
        hint = did_you_mean(graph_id, ids)
        raise NotFoundError(f"there is no graph {graph_id!r}{hint}; `graphs` lists them")


def no_such_record(reader: GraphReader, graph_id: str, name: str) -> NotFoundError:
    """That nobody was seen to write ``name`` (``kind:id``) in the graph, and where it was
    written, or what is there."""
    others = latest_others(reader, [graph_id])
    written = (each for each in others if reader.record_writers(each, [name]))
    homes = list(islice(written, MAX_SUGGESTED))
    if homes:
        hint = f"; it was written in {' and in '.join(each[:MAX_SHOWN] for each in homes)}"
        return NotFoundError(f"nobody was seen to write {name} in {graph_id}{hint}")
    operations = islice(reader.all_operations(graph_id), MAX_LOOKED_AT)
    hint = did_you_mean(name, (each for each in _records(operations) if each != name))
    return NotFoundError(
        f"nobody was seen to write {name} in {graph_id}{hint}; `search` finds records by their text"
    )


def _records(operations: Iterable[Operation]) -> list[str]:
    refs = (ref for item in operations for ref in sorted(named_by(item)))
    return list(dict.fromkeys(map(variables.record_of, refs)))
