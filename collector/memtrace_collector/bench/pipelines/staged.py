"""An agent whose memory works in stages, after the manner of EverMemOS.

Messages gather in a buffer; at a boundary they become an episode, facts, and memory units, which a
decision may merge into older ones. Searches go in stages too.

    python -m memtrace_collector.bench.pipelines.staged --plan plan.json --outcomes out.jsonl
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import memtrace_otel as memtrace
from memtrace_collector.bench.dialogue import Message
from memtrace_collector.bench.faults import STAGED
from memtrace_collector.bench.pipelines import runner, staged_forming, turn
from memtrace_collector.bench.pipelines.anew import anew
from memtrace_collector.bench.pipelines.base import Bench, Ran, owner_of, told
from memtrace_collector.bench.pipelines.neighbour import graph_of, neighbour_messages, neighbour_of
from memtrace_collector.bench.pipelines.staged_finding import Finding
from memtrace_collector.bench.pipelines.staged_keeping import consolidate, write_page
from memtrace_collector.bench.pipelines.staged_units import SYSTEM, Units
from memtrace_collector.bench.pipelines.staged_writing import Writing
from memtrace_collector.bench.pipelines.surface import Surface
from memtrace_collector.bench.planned import PlannedCase
from memtrace_collector.bench.plantings import Plantings
from memtrace_collector.bench.stand_in.model import StandIn

_FACTS = {"raw": False}
_DECISION = {"raw": False, "decides": True, "consolidates": False}
_ONE_SEARCH = {"staged_search": False, "rewrites": False}
NEEDS = {
    **dict.fromkeys(("left_out", "value_changed", "negated", "owner_swapped", "made_up"), _FACTS),
    **dict.fromkeys(
        ("chose_nothing", "taken_for_known", "written_over", "merge_dropped"),
        _DECISION,
    ),
    **dict.fromkeys(("re_stamped", "deleted", "forget_ignored"), _DECISION),
    "left_beside": {**_DECISION, "dated": False},
    "chunk_lost": {"segmented": True, **_FACTS},
    "race": {**_FACTS, "decides": False, "consolidates": False},
    "stale_index": {**_DECISION, **_ONE_SEARCH},
    "summary_dropped": {"consolidates": True},
    "expired": {"expires": True, "consolidates": False},
    "query_lost": {"rewrites": True, "staged_search": False, "consolidates": False},
    "reranked_away": {"staged_search": True, "second_round": False},
    "below_threshold": {"second_round": False},
    "date_stripped": {"raw": True, "consolidates": False},
    **dict.fromkeys(("missed", "below_the_limit", "wrong_namespace"), _ONE_SEARCH),
}
"""What of the surface each kind needs; see :func:`surface.surface`."""


class _Agent:
    """One agent with its owner's units, and those of others."""

    def __init__(self, bench: Bench, model: StandIn, chosen: Surface, plantings: Plantings) -> None:
        self._bench = bench
        self._model = model
        self._surface = chosen
        self._plantings = plantings
        self._units: dict[str, Units] = {}

    def run(self, case: PlannedCase) -> Ran:
        self._listen(neighbour_of(case), neighbour_messages(case))
        buffers: dict[str, list[Message]] = {}
        for message in told(case, self._plantings):
            owner = owner_of(case, message, self._plantings)
            buffer = buffers.setdefault(owner, [])
            if staged_forming.is_boundary(buffer, message):
                self._listen(owner, buffer, case.owner)
                buffer.clear()
            buffer.append(message)
        for owner, buffer in buffers.items():
            self._listen(owner, buffer, case.owner)
        graph_id = graph_of(case.owner)
        if self._surface.consolidates:
            with self._bench.turn("maintenance"), memtrace.graph(graph_id):
                consolidate(self._model, self._of(case.owner))
        ran = self._answer(case, graph_id)
        with self._bench.turn("later"), memtrace.graph(graph_id):
            self._read_again(case)
        return ran

    def _of(self, owner: str) -> Units:
        return self._units.setdefault(owner, Units(self._model, owner))

    def _listen(self, owner: str, buffer: Sequence[Message], rightful: str = "") -> None:
        """A closed buffer becomes memory of ``owner``."""
        if not buffer:
            return
        units = self._of(owner)
        chosen = self._surface if rightful else Surface(raw=True)
        with (
            self._bench.turn("remember"),
            memtrace.graph(graph_of(owner)),
            memtrace.operation("add", system=SYSTEM) as add,
        ):
            sources = [
                staged_forming.ingest(self._model, chosen, message, elsewhere=rightful != owner)
                for message in buffer
            ]
            for source in sources:
                add.inputs(*source.variables)
            found = staged_forming.candidates(self._model, chosen, sources)
            writing = Writing(self._model, chosen, units)
            racing = self._plantings.fires("race")
            if racing:
                found = write_page(self._model, writing, found, racing)
            writing.write(found)

    def _answer(self, case: PlannedCase, graph_id: str) -> Ran:
        with self._bench.turn("question"), memtrace.graph(graph_id):
            query = turn.ask(self._model, SYSTEM)
            skipped = self._plantings.fires("not_searched")
            items = [] if skipped else self._finding(case).find(query)
            prompt = turn.assemble(
                self._model, SYSTEM, query, items, "Memories:", dated=self._surface.dated
            )
            ran = turn.answer(
                self._bench,
                self._model,
                SYSTEM,
                prompt,
                graph_id,
                declared=self._surface.declares_answer,
            )
        if skipped:
            self._plantings.took_effect(skipped, ran.answer)
        return ran

    def _finding(self, case: PlannedCase) -> Finding:
        wrong = self._plantings.fires("wrong_namespace")
        owner = neighbour_of(case) if wrong else case.owner
        reads = graph_of(owner) if wrong else ""
        return Finding(self._model, self._surface, self._of(owner), reads)

    def _read_again(self, case: PlannedCase) -> None:
        """A later turn reads the memory when its index has caught up."""
        units = self._of(case.owner)
        if not units.lagging:
            return
        units.refresh()
        query = turn.ask(self._model, SYSTEM)
        Finding(self._model, self._surface, units).find(query)


staged = anew(STAGED, _Agent, NEEDS)


if __name__ == "__main__":
    sys.exit(runner.main(staged))
