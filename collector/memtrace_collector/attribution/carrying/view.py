"""A case, indexed for the rules: who produced, read and delivered what, and when. Pure.

"Before the answer": an ancestor of it, or else an operation that started earlier.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import date
from functools import cached_property

from memtrace_collector.attribution.carrying.judgements import NO_JUDGEMENTS, Judgements
from memtrace_collector.attribution.carrying.refs import (
    Moment,
    day_of,
    is_deleted,
    kind,
    parse_day,
    queries_of,
    sources_within,
)
from memtrace_collector.attribution.findings import Window
from memtrace_collector.graph.case import Case, Write
from memtrace_collector.graph.facts import Operation, OperationKey, by_time
from memtrace_otel import semconv, variables

READS = frozenset({semconv.STEP_RETRIEVE, semconv.STEP_RERANK})
WRITES = frozenset(
    {semconv.STEP_CREATE, semconv.STEP_UPDATE, semconv.STEP_DELETE, semconv.STEP_CONSOLIDATE}
)
_INSIDE_A_WRITE = frozenset({semconv.STEP_ADD, semconv.STEP_EXTRACT, semconv.STEP_DECIDE})
_RECORDS = (semconv.KIND_MEMORY, semconv.KIND_DOCUMENT)
_MAX_DEPTH = 32


class View:
    """Keyed access to a case. Built once; everything is a lookup."""

    def __init__(self, case: Case, judgements: Judgements = NO_JUDGEMENTS) -> None:
        self.case = case
        self.judgements = judgements
        self.answer = case.answer
        self._readable = case.readable_graphs or frozenset({case.answer.graph_id})
        self._by_digest: dict[str, str] = {}
        for ref, content in case.texts.items():
            self._by_digest.setdefault(variables.text_version(variables.version_of(ref)), content)
        self.operations = sorted(
            (op for op in case.operations.values() if not op.composite and op.key not in case.met),
            key=by_time,
        )
        self._producers: dict[str, list[Operation]] = defaultdict(list)
        self._readers: dict[str, list[Operation]] = defaultdict(list)
        for op in sorted(case.operations.values(), key=lambda op: (op.composite, op.start_ns)):
            for ref in op.outputs:
                self._producers[ref].append(op)
            for ref in op.inputs:
                self._readers[ref].append(op)

    def text(self, ref: str) -> str | None:
        """The content of a reference, also when captured under another one of equal text."""
        known = self.case.texts.get(ref)
        if known is not None:
            return known
        digest = variables.text_version(variables.version_of(ref))
        if digest in (semconv.DELETED_VERSION, semconv.UNKNOWN_VERSION):
            return None
        return self._by_digest.get(digest)

    def is_cut(self, ref: str) -> bool:
        """Whether what is known of a value is only a part of it."""
        value = self.case.values.get(ref)
        known = value is not None and value.cut
        return known or any(ref in op.cut for op in self._producers.get(ref, ()))

    def moment(self, ref: str, depth: int = 0) -> Moment | None:
        """When a value speaks: its declared time, else that of what it was made from."""
        if (declared := self.declared_times.get(ref)) is not None:
            return Moment(declared, False)
        makers = self.producers(ref)
        if not makers:
            readers = self.readers(ref)
            return Moment(day_of(readers[0].start_ns), True) if readers else None
        maker = makers[-1]
        if depth < _MAX_DEPTH:
            inherited = [
                moment
                for source in sources_within(maker, ref)
                if source != ref
                and (moment := self.moment(source, depth + 1))
                and not moment.assumed
            ]
            if inherited:
                return max(inherited)
        return Moment(day_of(maker.start_ns), True)

    @cached_property
    def declared_times(self) -> dict[str, date]:
        """The days that operations declared for values."""
        found: dict[str, date] = {}
        for op in self.case.operations.values():
            for ref, stamp in op.times.items():
                day = parse_day(stamp)
                if day is not None:
                    found[ref] = max(day, found.get(ref, day))
        return found

    # the question and the reply

    @cached_property
    def query(self) -> str | None:
        """The user's own question: a query nobody rewrote, else the last message in the prompt."""
        asked = [
            ref
            for op in self.turn
            for ref in op.outputs
            if kind(ref) == semconv.KIND_QUERY and op.step == semconv.STEP_INGEST
        ]
        named = [ref for ref in self.answer.inputs if kind(ref) == semconv.KIND_QUERY]
        searched = [
            ref
            for op in self.reads
            for ref in op.inputs
            if kind(ref) == semconv.KIND_QUERY
            and not any(maker.step == semconv.STEP_REWRITE for maker in self.producers(ref))
        ]
        messages = [ref for ref in self.answer.inputs if kind(ref) == semconv.KIND_MESSAGE]
        candidates = [
            *(ref for ref in asked if ref in named),
            *named,
            *asked,
            *searched,
            *reversed(messages),
        ]
        return next(
            (ref for ref in candidates if self.text(ref) is not None), next(iter(candidates), None)
        )

    @property
    def question(self) -> str | None:
        return self.text(self.query) if self.query else None

    @cached_property
    def reply_ref(self) -> str | None:
        answers = [ref for ref in self.answer.outputs if kind(ref) == semconv.KIND_ANSWER]
        known = (ref for ref in answers if self.text(ref) is not None)
        return next(known, next(iter(answers), None))

    @property
    def reply(self) -> str | None:
        return self.text(self.reply_ref) if self.reply_ref else None

    @property
    def asked_on(self) -> date:
        moment = self.moment(self.query) if self.query else None
        return moment.day if moment else day_of(self.answer.start_ns)

    # operations

    def producers(self, ref: str) -> list[Operation]:
        """Who has the reference as output: innermost first, composites only when alone."""
        found = self._producers.get(ref, [])
        visible = [op for op in found if not op.composite]
        return visible or found

    def readers(self, ref: str) -> list[Operation]:
        """Who used the reference, in time order, composites last."""
        return self._readers.get(ref, [])

    def before(self, op: Operation) -> bool:
        if op.start_ns < self.answer.start_ns:
            return True
        return op.key in self.case.ancestry and op.key != self.answer.key

    def enclosing(self, op: Operation, step: str = "") -> Operation | None:
        """The nearest enclosing operation (of this step)."""
        parent = self.case.operations.get(OperationKey(op.trace_id, op.parent_span_id))
        for _ in range(_MAX_DEPTH):
            if parent is None or not step or parent.step == step:
                return parent
            parent = self.case.operations.get(OperationKey(parent.trace_id, parent.parent_span_id))
        return None

    def same_call(self, one: Operation, other: Operation) -> bool:
        """Whether two operations are stages of one call of the memory system."""
        first = self.enclosing(one, semconv.STEP_ADD)
        second = self.enclosing(other, semconv.STEP_ADD)
        if first is not None or second is not None:
            return first is not None and second is not None and first.key == second.key
        return one.trace_id == other.trace_id

    @cached_property
    def turn(self) -> list[Operation]:
        """The answer's own turn before its end, without composites, in time order."""
        return [
            op
            for op in self.operations
            if op.key in self.case.turn
            and op.key != self.answer.key
            and (op.key in self.case.ancestry or op.start_ns <= self.answer.end_ns)
        ]

    @cached_property
    def reads(self) -> list[Operation]:
        """The turn's retrievals and rerankings for the answer (not those inside an ``add``).

        A turn may hold reads for other questions asked shortly before; those of this answer's
        trace, lineage or query are its own, and only where there is none do the others count.
        """
        found = [
            op
            for op in self.turn
            if op.step in READS and not any(self.enclosing(op, step) for step in _INSIDE_A_WRITE)
        ]
        own = [op for op in found if self._is_own_read(op)]
        return own or [op for op in found if not self._asks_something_else(op)]

    def _is_own_read(self, op: Operation) -> bool:
        if op.key in self.case.ancestry or op.key in self.answer.sources.values():
            return True
        if set(queries_of(op)) & set(queries_of(self.answer)):
            return True
        return op.trace_id == self.answer.trace_id and op.start_ns >= self._turn_start_ns

    @cached_property
    def _turn_start_ns(self) -> int:
        """The end of the previous answer of the same trace: one trace may hold many turns."""
        return max(
            (
                op.end_ns
                for op in self.operations
                if op.step == semconv.STEP_ANSWER
                and op.trace_id == self.answer.trace_id
                and op.end_ns <= self.answer.start_ns
                and any(kind(ref) == semconv.KIND_ANSWER for ref in op.outputs)
            ),
            default=0,
        )

    def _asks_something_else(self, op: Operation) -> bool:
        return bool(queries_of(self.answer)) and bool(queries_of(op))

    @cached_property
    def read_ns(self) -> int:
        """When memory was read for this answer."""
        return min((op.start_ns for op in self.reads), default=self.answer.start_ns)

    @cached_property
    def candidates(self) -> frozenset[str]:
        """Everything the turn's reads returned or considered."""
        dropped = {entry.ref for op in self.reads for entry in op.dropped}
        return frozenset(dropped.union(*(op.delivered for op in self.reads)))

    @cached_property
    def delivered(self) -> tuple[str, ...]:
        """What came out of the turn's reads, after reranking, in order."""
        kept: dict[str, None] = {}
        for op in self.reads:
            if op.step == semconv.STEP_RERANK:
                gone = {*op.inputs, *(entry.ref for entry in op.dropped)} - set(op.delivered)
                kept = {ref: None for ref in kept if ref not in gone}
            kept.update(dict.fromkeys(op.delivered))
        return tuple(kept)

    # the context

    @cached_property
    def contexts(self) -> tuple[str, ...]:
        """The prompts, declared or found in what the model was sent."""
        seen = (*self.answer.inputs, *self.answer.shown)
        return tuple(dict.fromkeys(ref for ref in seen if kind(ref) == semconv.KIND_CONTEXT))

    @cached_property
    def assemblies(self) -> list[Operation]:
        """What put the answer's context together, the last first; earlier prompts included."""
        found: list[Operation] = []
        waiting = list(self.contexts)
        seen: set[str] = set()
        while waiting:
            ref = waiting.pop(0)
            if ref in seen:
                continue
            seen.add(ref)
            for op in self.producers(ref):
                if op.step == semconv.STEP_ASSEMBLE and op not in found:
                    found.append(op)
                    waiting.extend(r for r in op.inputs if kind(r) == semconv.KIND_CONTEXT)
        return found

    @cached_property
    def shown(self) -> tuple[str, ...]:
        """The values in the context: what the assemblies and the answer itself read."""
        refs: dict[str, None] = {}
        for op in (*self.assemblies, self.answer):
            refs.update(
                dict.fromkeys(
                    ref
                    for ref in op.inputs
                    if kind(ref) in (*_RECORDS, semconv.KIND_MESSAGE, semconv.KIND_FACT)
                    and ref != self.query
                )
            )
        return tuple(refs)

    # records

    @cached_property
    def histories(self) -> dict[str, list[Write]]:
        """Per record its writes up to the read, in order."""
        seen_in_turn = set(self.delivered) | set(self.shown)
        found: dict[str, list[Write]] = {}
        for record, writes in self.case.histories.items():
            upto = [
                write
                for write in writes
                if write.version in seen_in_turn
                or write.operation.key in self.case.ancestry
                or (write.operation.start_ns <= self.read_ns and self.readable(write.operation))
            ]
            if upto:
                found[record] = upto
        return found

    def current(self, record: str) -> Write | None:
        """The write that was current when memory was read."""
        writes = self.histories.get(record)
        return writes[-1] if writes else None

    def version_at(self, ref: str) -> str:
        """A reference as a version of this graph: what nobody was seen to write (another
        digest key, ``@?``) stands for the version current at the read."""
        record = variables.record_of(ref)
        write = self.current(record)
        if write is None or any(ref == known.version for known in self.case.histories[record]):
            return ref
        return write.version if self.other_key(ref) else ref

    def other_key(self, ref: str) -> bool:
        """Whether a version cannot be compared with the record's known versions."""
        if variables.version_of(ref) == semconv.UNKNOWN_VERSION:
            return True
        writers = {
            write.operation.digest_key
            for write in self.case.histories.get(variables.record_of(ref), ())
        }
        readers = {op.digest_key for op in self.reads if ref in op.delivered}
        return bool(writers and readers and writers.isdisjoint(readers))

    @cached_property
    def documents(self) -> tuple[str, ...]:
        """Indexed chunks, and messages that reads deliver: stored values without history."""
        found = [
            ref
            for op in self.operations
            for ref in op.outputs
            if kind(ref) == semconv.KIND_DOCUMENT
            and self.before(op)
            and self.readable(op)
            and variables.record_of(ref) not in self.histories
        ]
        loose = [
            ref
            for ref in (*self.delivered, *self.shown)
            if variables.record_of(ref) not in self.case.histories
            and kind(ref) != semconv.KIND_FACT
        ]
        return tuple(dict.fromkeys([*found, *loose]))

    @cached_property
    def current_versions(self) -> tuple[str, ...]:
        """Every stored value that could be read for this answer."""
        live = [
            write.version
            for record in self.histories
            if (write := self.current(record)) and not is_deleted(write.version)
        ]
        unknown = [
            ref
            for ref in (*self.delivered, *sorted(self.candidates), *self.shown)
            if kind(ref) == semconv.KIND_MEMORY
            and variables.record_of(ref) not in self.case.histories
        ]
        return tuple(dict.fromkeys([*live, *unknown, *self.documents]))

    def readable(self, op: Operation) -> bool:
        """Whether what an operation wrote could be read by this answer's operations: of an answer
        that read nothing, nobody knows what it would have."""
        nothing_read = not self.reads and not self.shown
        return nothing_read or op.graph_id in self._readable or op.key in self.case.ancestry

    def window(self, start_ns: int, end_ns: int, operations: Iterable[Operation]) -> Window:
        """An absence claimed over a time, in the processes of these operations."""
        processes = frozenset(op.sequence.process for op in operations if op.sequence)
        return Window(start_ns, max(start_ns, end_ns), processes)

    def writers(self) -> list[Operation]:
        """Operations that put something into memory."""
        steps = WRITES | _INSIDE_A_WRITE | {semconv.STEP_INGEST}
        return [op for op in self.case.operations.values() if op.step in steps]
