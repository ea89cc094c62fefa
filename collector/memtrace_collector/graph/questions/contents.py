"""What was said and stored: messages by time, values by their text; and which graphs there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, NamedTuple

import msgspec

from memtrace_collector.graph import content
from memtrace_collector.graph.facts import Operation, Value
from memtrace_collector.graph.questions.answered import MAX_LIMIT, Found, Paged, Texts, each
from memtrace_collector.graph.questions.arguments import GraphId
from memtrace_collector.graph.questions.shapes import (
    Json,
    parse_time,
    span_json,
    time_json,
    time_ns,
)
from memtrace_collector.graph.questions.suggest import known_graph
from memtrace_collector.graph.reader import GraphReader, GraphSummary
from memtrace_otel import semconv, variables

MAX_HITS = 2 * MAX_LIMIT
"""Best matches of a text search that can be read on to."""
_MESSAGE = f"{semconv.KIND_MESSAGE}:"

Kind = Literal["", "msg", "fact", "mem", "doc", "query", "ctx", "ans", "prompt"]


class Graphs(Paged, frozen=True, kw_only=True):
    """The graphs, one per memory owner: how many operations, from when to when."""


class Search(Paged, frozen=True, kw_only=True):
    """Values of one graph by the words in their text, best match first: messages, facts,
    memory records, documents, prompts, answers. Finds the record or message to ask about."""

    text: Annotated[str, msgspec.Meta(min_length=1, max_length=2_000, description="Words.")]
    graph: GraphId
    kind: Annotated[Kind, msgspec.Meta(description="Only this kind; empty: all.")] = ""


class Messages(Paged, frozen=True, kw_only=True):
    """The messages that entered one graph, oldest first, each where it was first seen: who
    spoke, when, and the operation that took it in."""

    graph: GraphId
    after: Annotated[
        str,
        msgspec.Meta(max_length=40, description="From this time (RFC 3339) on; empty: all."),
    ] = ""
    before: Annotated[
        str,
        msgspec.Meta(max_length=40, description="Only until before this time; empty: all."),
    ] = ""


class Message(NamedTuple):
    """A message where it was first seen."""

    ref: str
    at_ns: int
    operation: Operation


def graphs(reader: GraphReader) -> Found[GraphSummary]:
    """Every graph."""
    return Found({}, "graphs", reader.graphs(), each(_graph_json))


def search(reader: GraphReader, text: str, graph_id: str, kind: str, texts: Texts) -> Found[Value]:
    """The best :data:`MAX_HITS` matches of ``text``.

    Raises:
        NotFoundError: no such graph.
    """
    known_graph(reader, graph_id)
    hits = reader.search_values(graph_id, text, (kind,) if kind else (), MAX_HITS + 1)
    head: Json = {"graph_id": graph_id}
    if len(hits) > MAX_HITS:
        head["hits_left_out"] = f"there are more than the best {MAX_HITS}; search for rarer words"
    return Found(
        head, "hits", hits[:MAX_HITS], lambda run: _hits_json(reader, graph_id, run, texts)
    )


def messages(
    reader: GraphReader, graph_id: str, after: str, before: str, texts: Texts
) -> Found[Message]:
    """The messages of a graph in the window, by their own time where one was given.

    Raises:
        NotFoundError: no such graph.
        WrongUseError: a time is not written as RFC 3339.
    """
    known_graph(reader, graph_id)
    first = parse_time(after) if after else -(2**63)
    end = parse_time(before) if before else 2**63
    found = [
        item for item in _first_seen(reader.all_operations(graph_id)) if first <= item.at_ns < end
    ]
    found.sort(key=lambda item: (item.at_ns, item.operation.start_ns))
    return Found(
        {"graph_id": graph_id},
        "messages",
        found,
        lambda run: _messages_json(reader, graph_id, run, texts),
    )


def ask_graphs(reader: GraphReader, _: Graphs, __: Texts) -> Found[GraphSummary]:
    return graphs(reader)


def ask_search(reader: GraphReader, given: Search, texts: Texts) -> Found[Value]:
    return search(reader, given.text, given.graph, given.kind, texts)


def ask_messages(reader: GraphReader, given: Messages, texts: Texts) -> Found[Message]:
    return messages(reader, given.graph, given.after, given.before, texts)


def _graph_json(summary: GraphSummary) -> Json:
    return {
        "graph_id": summary.graph_id,
        "operations": summary.operations,
        "first": time_json(summary.first_ns),
        "last": time_json(summary.last_ns),
    }


def _first_seen(operations: Iterable[Operation]) -> Iterable[Message]:
    """Each message at the first operation that names it, a stage before its composite."""
    stages: dict[str, Message] = {}
    parents: dict[str, Message] = {}
    for item in operations:
        seen = parents if item.composite else stages
        for ref in (*item.outputs, *item.inputs):
            if ref.startswith(_MESSAGE) and ref not in seen:
                seen[ref] = Message(ref, _said_at(item, ref), item)
    return (parents | stages).values()


def _said_at(item: Operation, ref: str) -> int:
    """The message's own time; the operation's where none was given, or none that can be read."""
    declared = time_ns(item.times.get(ref, ""))
    return item.start_ns if declared is None else declared


def _messages_json(
    reader: GraphReader, graph_id: str, run: Sequence[Message], texts: Texts
) -> list[Json]:
    found = reader.values(graph_id, {item.ref for item in run}) if run else {}
    return [
        {
            "ref": item.ref,
            "role": item.operation.roles.get(item.ref, ""),
            "time": time_json(item.at_ns),
            "entered": time_json(item.operation.start_ns),
            "step": item.operation.step,
            "operation": str(item.operation.key),
            "text": texts.one(content.plain_text(found[item.ref])) if item.ref in found else None,
        }
        for item in run
    ]


def _hits_json(
    reader: GraphReader, graph_id: str, run: Sequence[Value], texts: Texts
) -> list[Json]:
    made = reader.producers(graph_id, {hit.ref for hit in run}) if run else {}
    return [
        {
            "kind": hit.ref.partition(":")[0],
            "ref": hit.ref,
            "record": variables.record_of(hit.ref),
            "text": texts.one(content.plain_text(hit)),
            "producers": [
                {"step": item.step, **span_json(item.key), "time": time_json(item.start_ns)}
                for item in made.get(hit.ref, ())
            ],
        }
        for hit in run
    ]
