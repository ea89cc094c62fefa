"""Everything derived from something, by kind, with the chain that leads to each."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from memtrace_collector.api.explorer.graph_choice import chosen_graph, graphs_json
from memtrace_collector.api.explorer.judged import FAILED, MAX_JUDGED, answers_json, judgements
from memtrace_collector.api.explorer.parts import EXCERPT_CHARS, operation_json, text_json
from memtrace_collector.api.explorer.view import Parameters
from memtrace_collector.api.exploring import Stores
from memtrace_collector.api.questions import Json
from memtrace_collector.errors import NotFoundError
from memtrace_collector.graph import content
from memtrace_collector.graph import impact as walk
from memtrace_collector.graph.facts import Operation, OperationKey
from memtrace_collector.graph.forward import occurrence_key
from memtrace_collector.graph.history import is_deleted
from memtrace_collector.graph.impact import Impact
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.questions import contents, references
from memtrace_collector.graph.questions.answered import AS_THEY_ARE
from memtrace_collector.graph.questions.shapes import span_json
from memtrace_collector.graph.resolution import COMPLETE, Occurrence, UseKey
from memtrace_otel import semconv, variables

MAX_SHOWN = 100
"""Things of one kind, or records."""
MAX_STARTS = 5
MAX_MESSAGES = 30
MAX_CHAIN = 12
LARGEST_LISTED = 20_000
"""Operations of a graph whose messages are listed without a search."""
_ORDER = (
    semconv.KIND_FACT, semconv.KIND_DOCUMENT, semconv.KIND_QUERY, semconv.KIND_CONTEXT,
    semconv.KIND_MESSAGE, semconv.KIND_PROMPT,
)  # fmt: skip


def impact(stores: Stores, parameters: Parameters) -> Json:
    """What came of ``target`` (a reference, a record, ``TRACE:SPAN`` or a conversation).

    Returns:
        ``target``, ``starts``, ``records`` (every record id to delete, as the command line lists
        them), ``stored`` (those with their state, text and chain), ``answers`` (with their
        verdicts), ``kinds`` (everything else by kind), ``totals``, ``warnings``.
        Without a target: ``graphs``, ``graph_id``, ``text`` and the ``messages`` of that graph to
        choose from (parameters ``graph``, ``text``).

    Raises:
        NotFoundError: nothing that was recorded comes from the target; no such graph.
    """
    target = parameters.get("target", "").strip()
    if not target:
        return _choice(stores, parameters)
    lookups = Lookups(stores.graphs)
    start = references.start_of(lookups, target)
    if not start:
        raise NotFoundError(f"nothing that was recorded comes from {target!r}")
    found = walk.impact(lookups, start)
    shown = _Shown(lookups, found, start)
    return {
        "target": target,
        "starts": [shown.item_json(item) for item in start[:MAX_STARTS]],
        "starts_left_out": max(0, len(start) - MAX_STARTS),
        "records": found.records,
        "stored": shown.records_json(),
        "answers": _answers(stores, found, shown),
        "kinds": shown.kinds_json(),
        "totals": _totals(found),
        "warnings": list(_warnings(found)),
    }


class _Record(NamedTuple):
    graph_id: str
    name: str


class _Shown:
    """What is derived, with the texts of what is shown of it."""

    def __init__(self, lookups: Lookups, found: Impact, start: Sequence[Occurrence]) -> None:
        self._lookups = lookups
        self._found = found
        everything = (*start, *found.derived)
        self._made = {occurrence_key(item): item.operation for item in everything}

    def item_json(self, item: Occurrence) -> Json:
        (made,) = self._items_json([item])
        return made

    def records_json(self) -> Json:
        """The records, each with its last derived version."""
        versions: dict[_Record, list[Occurrence]] = defaultdict(list)
        for item in self._found.derived:
            if item.ref.startswith(f"{semconv.KIND_MEMORY}:"):
                name = variables.record_of(item.ref)
                versions[_Record(item.operation.graph_id, name)].append(item)
        shown = list(versions.items())[:MAX_SHOWN]
        items = self._items_json([several[-1] for _, several in shown])
        return {
            "total": len(versions),
            "items": [
                item
                | {"record": record.name, "versions": len(several)}
                | {"is_deleted": self._is_deleted(record)}
                for (record, several), item in zip(shown, items)
            ],
        }

    def kinds_json(self) -> list[Json]:
        """Everything that is neither a memory record nor an answer."""
        by_kind: dict[str, list[Occurrence]] = defaultdict(list)
        for item in self._found.derived:
            by_kind[item.ref.partition(":")[0]].append(item)
        return [
            {
                "kind": kind,
                "total": len(by_kind[kind]),
                "items": self._items_json(by_kind[kind][:MAX_SHOWN]),
            }
            for kind in _ORDER
            if kind in by_kind
        ]

    def chain_json(self, item: Occurrence) -> list[Json]:
        """From the start to it; of a long one the middle is left out."""
        steps = self._found.chain(item)
        if len(steps) > MAX_CHAIN:
            steps = [*steps[: MAX_CHAIN // 2], *steps[-MAX_CHAIN // 2 :]]
        return [self._step_json(step) for step in steps]

    def _step_json(self, step: UseKey) -> Json:
        operation = self._made.get(step)
        return {
            "ref": step.ref,
            "span": span_json(step.user),
            "graph_id": operation.graph_id if operation else "",
            "step": operation.step if operation else "",
        }

    def _items_json(self, items: Sequence[Occurrence]) -> list[Json]:
        texts = walk.texts_of(self._lookups, items)
        return [
            {
                "ref": item.ref,
                "text": text_json(texts.get(item.ref), EXCERPT_CHARS),
                "chain": self.chain_json(item),
                **operation_json(item.operation),
            }
            for item in items
        ]

    def _is_deleted(self, record: _Record) -> bool:
        writes = self._lookups.history(*record)
        return bool(writes) and is_deleted(writes[-1].version)


def _answers(stores: Stores, found: Impact, shown: _Shown) -> Json:
    given: dict[OperationKey, Occurrence] = {
        item.operation.key: item
        for item in found.derived
        if item.ref.startswith(f"{semconv.KIND_ANSWER}:")
    }
    newest = list(given.values())[: -MAX_JUDGED - 1 : -1]
    answers = [item.operation for item in newest]
    judged = judgements(stores, answers)
    items = answers_json(stores.graphs, answers[:MAX_SHOWN], judged)
    return {
        "total": len(given),
        "failed": sum(each.outcome == FAILED for each in judged.values()),
        "items": [
            item | {"chain": shown.chain_json(occurrence)}
            for item, occurrence in zip(items, newest)
        ],
    }


def _totals(found: Impact) -> Mapping[str, int]:
    """Versions by kind."""
    return Counter(item.ref.partition(":")[0] for item in found.derived)


def _warnings(found: Impact) -> Iterator[str]:
    if not found.complete:
        yield (
            f"There is more: the walk was stopped at {walk.MAX_OPERATIONS} operations. The ids "
            "below are not all."
        )
    if found.lineage != COMPLETE:
        yield (
            f"The lineage is {found.lineage}: at some step it is not certain which of several "
            "writes was used, so something below may come from elsewhere."
        )
    if found.lost:
        yield (
            f"{found.lost} operations of these processes never arrived: they may have made more "
            "of it."
        )


def _choice(stores: Stores, parameters: Parameters) -> Json:
    """Messages to ask about: those that match a text, else the latest of the graph."""
    reader = stores.graphs
    graph_id = chosen_graph(reader, parameters.get("graph", ""))
    text = parameters.get("text", "").strip()
    found: Iterable[Json] = ()
    if graph_id and text:
        hits = contents.search(reader, text, graph_id, semconv.KIND_MESSAGE, AS_THEY_ARE)
        made = reader.producers(graph_id, {hit.ref for hit in hits.items[:MAX_MESSAGES]})
        found = [
            {"ref": hit.ref, "text": text_json(content.plain_text(hit), EXCERPT_CHARS)}
            | _entered(hit.ref, made.get(hit.ref, ()))
            for hit in hits.items[:MAX_MESSAGES]
        ]
    elif graph_id and reader.size(graph_id) <= LARGEST_LISTED:
        listed = contents.messages(reader, graph_id, "", "", AS_THEY_ARE).items
        latest = listed[: -MAX_MESSAGES - 1 : -1]
        values = reader.values(graph_id, {item.ref for item in latest})
        texts = {ref: content.plain_text(value) for ref, value in values.items()}
        found = [
            {"ref": item.ref, "text": text_json(texts.get(item.ref), EXCERPT_CHARS)}
            | _entered(item.ref, (item.operation,))
            for item in latest
        ]
    return {
        "target": "",
        "graphs": graphs_json(reader),
        "graph_id": graph_id,
        "text": text,
        "messages": list(found),
        "is_search": bool(text),
        "bound": MAX_MESSAGES,
    }


def _entered(ref: str, made: Sequence[Operation]) -> Json:
    first = next((item for item in made if not item.composite), None)
    return {
        "role": first.roles.get(ref, "") if first else "",
        "said_at": first.times.get(ref, "") if first else "",
        "time_ns": first.start_ns if first else 0,
        "span": span_json(first.key) if first else None,
    }
