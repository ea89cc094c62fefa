"""What people said of imported cases, taken over as judgements of this store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memtrace_collector.api.questions import Questions
from memtrace_collector.attribution.judging.judged import machine_of
from memtrace_collector.attribution.judging.said import CONFIRM, CORRECT, Said
from memtrace_collector.bench.labels import Label, labels
from memtrace_collector.commands.import_reader import Piece, Problem
from memtrace_collector.errors import MemtraceError, UnreachableError
from memtrace_otel import semconv

_NAME = semconv.SPAN_JUDGEMENT.encode()


def labelled(pieces: Iterable[Piece | Problem], found: list[Label]) -> Iterator[Piece | Problem]:
    """The same, while labels are gathered in ``found``."""
    for piece in pieces:
        if isinstance(piece, Piece) and piece.signal == "traces" and _NAME in piece.body:
            found += labels(ExportTraceServiceRequest.FromString(piece.body))
        yield piece


def take_over(ask: Questions, found: Iterable[Label], problems: list[Problem]) -> Iterator[Label]:
    """Those that are judgements of the store now; why the others are not is a problem each."""
    verdicts: dict[str, list[Any]] = {}
    for label in found:
        answer, graph = str(label.answer), label.graph_id
        try:
            if graph not in verdicts:
                verdicts[graph] = ask.attribute("rules", graph, True)["verdicts"]
            said = _said(label, [each for each in verdicts[graph] if _is_of(each, label)])
            ask.judge(answer, said)
        except UnreachableError:
            raise
        except MemtraceError as error:
            problems.append(Problem(f"the judgement of {answer}", str(error)))
            continue
        yield label


def _said(label: Label, verdicts: list[Any]) -> Said:
    """A confirmation of what the rules say, where they say the same."""
    said = label.error_type, set(label.decisive)
    if any(_says(machine_of(verdict)) == said for verdict in verdicts):
        return Said(action=CONFIRM, note=label.note, by=label.by)
    return Said(
        action=CORRECT,
        type=label.error_type,
        decisive=tuple(map(str, label.decisive)),
        last_right=label.last_right,
        first_wrong=label.first_wrong,
        note=label.note,
        by=label.by,
    )


def _is_of(verdict: Any, label: Label) -> bool:
    answer = verdict["answer"]
    return (answer["traceId"], answer["spanId"]) == label.answer


def _says(verdict: Any) -> tuple[str, set[tuple[str, str]]]:
    named = {(each["traceId"], each["spanId"]) for each in verdict["decisive"]}
    return verdict["error_type"], named
