"""The receipt of an answer, and why something was recalled for it or was not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memtrace_collector.api.explorer.graph_choice import graphs_json
from memtrace_collector.api.explorer.judged import answers_json, judgements
from memtrace_collector.api.explorer.parts import EXCERPT_CHARS, Part, part, text_json
from memtrace_collector.api.explorer.view import Parameters
from memtrace_collector.api.exploring import Stores
from memtrace_collector.api.questions import Json
from memtrace_collector.graph import flags, receipt
from memtrace_collector.graph.case import Case
from memtrace_collector.graph.facts import Operation
from memtrace_collector.graph.history import home_of
from memtrace_collector.graph.latest import latest_first
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.questions.answered import AS_THEY_ARE
from memtrace_collector.graph.questions.answers import case_of
from memtrace_collector.graph.questions.recalled import recalled
from memtrace_collector.graph.questions.receipts import about_json
from memtrace_collector.graph.questions.shapes import span_json
from memtrace_collector.graph.questions.suggest import known_graph
from memtrace_collector.graph.reader import GraphReader
from memtrace_collector.graph.receipt import CUT, INJECTED, Candidate, Read
from memtrace_otel import variables

ANSWERS = 25
MAX_CANDIDATES = 100
"""Of one read."""
MAX_FLAGS = 500
"""The last flags, whose answers stand first."""
LARGEST = 500_000
"""Operations of a graph whose answers are listed, when it is named."""
MAX_READ = 100_000
"""Operations that are gone through for the latest answers when no graph is named."""
_OUTCOMES = {INJECTED: "injected", CUT: "cut"}


def why(stores: Stores, parameters: Parameters) -> Json:
    """The receipt of ``answer`` (TRACE[:SPAN]); with ``about`` (a record, a reference or a text)
    also why that was recalled, or was not.

    Without an answer: ``answers`` to choose from, those flagged first, then the latest
    (parameters ``graph``, ``start``), ``graphs``, and ``looked_at`` of ``known`` graphs.

    Raises:
        WrongUseError: the answer is not written as TRACE[:SPAN].
        NotFoundError: no answer is known there; no such graph.
    """
    answer = parameters.get("answer", "").strip()
    if not answer:
        return _choice(stores, parameters)
    case = case_of(stores.graphs, answer)
    reads = receipt.receipt(case)
    judged = judgements(stores, [case.answer])
    (told,) = answers_json(stores.graphs, [case.answer], judged)
    return {
        "answer": told,
        "lineage": case.lineage,
        "graphs_read": sorted(case.readable_graphs),
        "reads": [_read_json(case, read) for read in reads],
        "about": _about(stores.graphs, case, reads, parameters.get("about", "").strip()),
    }


def _about(reader: GraphReader, case: Case, reads: Sequence[Read], what: str) -> Json | None:
    if not what:
        return None
    lookups = Lookups(reader)
    found = recalled(lookups, case, reads, what)
    told = about_json(lookups, case, found, AS_THEY_ARE)
    return {
        **told,
        "found": [
            item
            | {"is_record": each.is_record, "text": text_json(item["text"])}
            | {"beaten_by": [_beating_json(other) for other in item["beaten_by"]]}
            for each, item in zip(found.told, told["found"])
        ],
    }


def _beating_json(other: Mapping[str, str | None]) -> Json:
    return {
        "ref": other["ref"],
        "record": variables.record_of(str(other["ref"])),
        "text": text_json(other["text"], EXCERPT_CHARS),
    }


def _read_json(case: Case, read: Read) -> Json:
    operation = read.operation
    shown = read.candidates[:MAX_CANDIDATES]
    return {
        "span": span_json(operation.key),
        "graph_id": operation.graph_id,
        "reads": list(operation.reads),
        "name": operation.name,
        "step": operation.step,
        "service": operation.service,
        "time_ns": operation.start_ns,
        "limits": dict(operation.limits),
        "score_kind": operation.score_kind,
        "asked": _asked(case, operation),
        "returned": len(operation.delivered),
        "cut": len(operation.dropped),
        "truncated": operation.truncated.get("dropped", 0),
        "candidates": [_candidate_json(case, operation, item) for item in shown],
        "left_out": len(read.candidates) - len(shown),
        "bar": _bar_json(operation),
    }


def _asked(case: Case, operation: Operation) -> Json | None:
    """What the read searched for."""
    known = (case.texts[ref] for ref in operation.inputs if ref in case.texts)
    return text_json(next(known, None), EXCERPT_CHARS)


def _bar_json(operation: Operation) -> Json | None:
    """The last that was returned: what a candidate had to beat."""
    if not operation.delivered:
        return None
    last = operation.delivered[-1]
    return {"ref": last, "rank": len(operation.delivered), "score": operation.score_of(last)}


def _candidate_json(case: Case, read: Operation, item: Candidate) -> Json:
    record = variables.record_of(item.ref)
    return {
        "ref": item.ref,
        "record": record,
        "graph_id": home_of(case.histories.get(record, ()), (read.graph_id, *read.reads)),
        "rank": item.rank,
        "score": item.score,
        "outcome": _OUTCOMES.get(item.outcome, "returned"),
        "reason": item.reason,
        "used": item.used,
        "text": text_json(case.texts.get(item.ref), EXCERPT_CHARS),
    }


def _choice(stores: Stores, parameters: Parameters) -> Json:
    reader, graph_id = stores.graphs, parameters.get("graph", "")
    if graph_id:
        known_graph(reader, graph_id)
    flagged = _flagged(reader, graph_id)
    latest, looked_at = _latest(reader, graph_id)
    everything = list({item.key: item for item in (*flagged, *latest)}.values())
    page: Part = part(parameters, "start", len(everything), ANSWERS)
    shown = page.of(everything)
    return {
        "graph_id": graph_id,
        "answers": page.json(answers_json(reader, shown, judgements(stores, shown))),
        "flagged": len(flagged),
        "graphs": graphs_json(reader),
        "looked_at": looked_at,
        "known": 1 if graph_id else len(reader.graphs()),
    }


def _flagged(reader: GraphReader, graph_id: str) -> list[Operation]:
    """The answers that the last flags mean, newest flag first."""
    newest = reader.flags()[: -MAX_FLAGS - 1 : -1]
    meant = (flags.resolve(reader, flag) for flag in newest)
    found = (answer for answer in meant if answer and graph_id in ("", answer.graph_id))
    return list({answer.key: answer for answer in found}.values())


def _latest(reader: GraphReader, graph_id: str) -> tuple[list[Operation], int]:
    """The answers of the graphs written last, newest first, and how many graphs those are."""
    room, looked_at = LARGEST if graph_id else MAX_READ, 0
    found: list[Operation] = []
    for summary in latest_first(reader):
        if graph_id not in ("", summary.graph_id):
            continue
        if summary.operations > room:
            continue
        room -= summary.operations
        looked_at += 1
        found += filter(flags.is_answer, reader.all_operations(summary.graph_id))
    found.sort(key=lambda item: (-item.start_ns, item.key))
    return found, looked_at
