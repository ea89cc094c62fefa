"""The same recorded traces, judged under harder conditions.

What was recorded stands in the durable log of a run. A variant takes its spans, does something
to them (a :class:`Variant` says what), packs them into requests again and reads them through
the same dialects into a fact store of its own.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memtrace_collector.dialects import registry
from memtrace_collector.graph.facts import DEFAULT_TENANT, Flag, OperationKey, SpanFacts
from memtrace_collector.log import reader
from memtrace_collector.log.position import START, LogPosition
from memtrace_collector.receiver.decode import decode_traces
from memtrace_collector.store.base import FactStore
from memtrace_collector.store.sqlite_facts import SqliteFactStore
from memtrace_otel import semconv

LOST_SHARE = 0.05
REPEATED_SHARE = 0.2
LOSSY_SEEDS = (1, 2, 3)
_MAX_SPANS_PER_REQUEST = 50
_BATCH_FACTS = 5_000
_CACHE_KIB = 32 * 1024
_CONTENT = (
    semconv.MEMTRACE_VALUES,
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.system_instructions",
    "gen_ai.memory.query.text",
    "gen_ai.memory.records",
)


@dataclass(frozen=True, slots=True)
class Variant:
    """How the recorded traces are judged.

    ``evidence``, ``expected``: whether the flag says so. ``shuffled``: spans come in random
    order, some twice, in requests cut anew. ``lossy``: :data:`LOST_SHARE` of the spans is lost
    at random; the flagged answers are spared, since without one there is no case.
    """

    name: str
    evidence: bool = True
    expected: bool = True
    content: bool = True
    shuffled: bool = False
    lossy: bool = False
    seed: int = 0

    @property
    def damage(self) -> tuple[bool, bool, bool, int]:
        """Equal for variants that can share a store."""
        return self.content, self.shuffled, self.lossy, self.seed

    @property
    def as_recorded(self) -> bool:
        return self.content and not self.shuffled and not self.lossy


GIVEN = Variant("given")
FOUND = Variant("found", evidence=False)
NO_EXPECTED = Variant("no_expected", evidence=False, expected=False)
NO_CONTENT = Variant("no_content", content=False)
SHUFFLED = Variant("shuffled", shuffled=True, seed=1)
LOSSY = tuple(Variant("lossy", lossy=True, seed=seed) for seed in LOSSY_SEEDS)
LOSSY_NO_CONTENT = tuple(
    Variant("lossy_no_content", content=False, lossy=True, seed=seed) for seed in LOSSY_SEEDS
)
VARIANTS = (GIVEN, FOUND, NO_EXPECTED, NO_CONTENT, SHUFFLED, *LOSSY, *LOSSY_NO_CONTENT)
NAMES = tuple(dict.fromkeys(variant.name for variant in VARIANTS))


def flag_in(variant: Variant, flag: Flag) -> Flag:
    """What the flag says in a variant. Without an expected answer somebody is just unhappy."""
    if not variant.evidence:
        flag = replace(flag, evidence=())
    if not variant.expected:
        flag = replace(flag, expected=None, source="user")
    return flag


def applies(variant: Variant, error_types: Collection[str]) -> bool:
    """A wrong reference is no case where no reference is given."""
    return variant.expected or "bad_reference" not in error_types


class RecordedSpan(NamedTuple):
    """A span with the resource and the scope that it came with."""

    resource: Any
    scope: Any
    span: Any

    @property
    def key(self) -> OperationKey:
        return OperationKey(self.span.trace_id.hex(), self.span.span_id.hex())


def recorded_spans(log_folder: Path) -> Iterator[RecordedSpan]:
    """Every accepted span of a log, in the order in which it arrived."""
    for entry in reader.read(log_folder, START):
        if entry.record.signal != "traces":
            continue
        for group in decode_traces(entry.record).resource_spans:
            resource = group.resource
            for scope_spans in group.scope_spans:
                scope = scope_spans.scope
                for span in scope_spans.spans:
                    yield RecordedSpan(resource, scope, span)


def damaged(
    variant: Variant, spans: Iterable[RecordedSpan], spared: Collection[OperationKey] = ()
) -> Iterator[ExportTraceServiceRequest]:
    """The requests in which a variant's spans arrive.

    Args:
        variant: what is done to the spans.
        spans: as recorded.
        spared: spans that are never lost.
    """
    source = random.Random(f"{variant.name} {variant.seed}")  # noqa: S311  # no secret
    if variant.lossy:
        spans = (s for s in spans if s.key in spared or source.random() >= LOST_SHARE)
    if not variant.content:
        spans = map(_without_content, spans)
    if variant.shuffled:
        spans = _shuffled(list(spans), source)
    yield from _requests(spans, source if variant.shuffled else None)


def build(
    variant: Variant, log_folder: Path, path: Path, spared: Collection[OperationKey] = ()
) -> None:
    """Write a variant's store to ``path``, a file that does not exist yet."""
    with closing(SqliteFactStore(path, cache_kib=_CACHE_KIB)) as store:
        fill(store, damaged(variant, recorded_spans(log_folder), spared))


def fill(store: FactStore, requests: Iterable[ExportTraceServiceRequest]) -> None:
    """Apply requests to a store, each at a position of its own."""
    batch: list[tuple[LogPosition, SpanFacts]] = []
    number = 0
    for number, request in enumerate(requests):
        position = LogPosition(1, number)
        batch += ((position, facts) for facts in registry.read_request(DEFAULT_TENANT, request))
        if len(batch) >= _BATCH_FACTS:
            store.apply(batch, LogPosition(1, number + 1))
            batch = []
    store.apply(batch, LogPosition(1, number + 1))


def _without_content(recorded: RecordedSpan) -> RecordedSpan:
    span = type(recorded.span)()
    span.CopyFrom(recorded.span)
    kept = [item for item in span.attributes if not item.key.startswith(_CONTENT)]
    del span.attributes[:]
    span.attributes.extend(kept)
    return recorded._replace(span=span)


def _shuffled(spans: Sequence[RecordedSpan], source: random.Random) -> list[RecordedSpan]:
    repeated = [each for each in spans if source.random() < REPEATED_SHARE]
    mixed = [*spans, *repeated]
    source.shuffle(mixed)
    return mixed


def _requests(
    spans: Iterable[RecordedSpan], source: random.Random | None
) -> Iterator[ExportTraceServiceRequest]:
    """Spans in requests of at most so many; of random sizes where a source is given."""
    request, room = ExportTraceServiceRequest(), _room(source)
    last: tuple[int, int] | None = None
    for each in spans:
        if not room:
            yield request
            request, room, last = ExportTraceServiceRequest(), _room(source), None
        if last != (id(each.resource), id(each.scope)):
            group = request.resource_spans.add(resource=each.resource)
            group.scope_spans.add(scope=each.scope)
            last = (id(each.resource), id(each.scope))
        request.resource_spans[-1].scope_spans[0].spans.append(each.span)
        room -= 1
    yield request


def _room(source: random.Random | None) -> int:
    return source.randint(1, _MAX_SPANS_PER_REQUEST) if source else _MAX_SPANS_PER_REQUEST
