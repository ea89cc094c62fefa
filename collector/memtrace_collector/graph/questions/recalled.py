"""Why something was recalled for an answer, or was not: in plain sentences without content."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from memtrace_collector.graph import content, receipt
from memtrace_collector.graph.case import Case, Write
from memtrace_collector.graph.facts import Operation, OperationKey, Value
from memtrace_collector.graph.forward import downstream
from memtrace_collector.graph.history import current_at, is_deleted
from memtrace_collector.graph.latest import MAX_OTHER_GRAPHS
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.questions.shapes import time_json
from memtrace_collector.graph.receipt import CUT, INJECTED, NOT_INJECTED, Candidate, Read
from memtrace_collector.graph.resolution import Occurrence, innermost
from memtrace_collector.graph.terms import share_of
from memtrace_otel import semconv, variables

RETURNED, NOT_CONSIDERED, DELETED, LATER = "returned", "not_considered", "deleted", "later"
FOREIGN, UNWRITTEN, NEVER_STORED, LEFT_OUT, NOT_SEARCHED, REPLACED = (
    "foreign", "unwritten", "never_stored", "left_out", "not_searched", "replaced",
)  # fmt: skip
MAX_FOUND = 5
"""Records, or messages, that a text may mean."""
_MAX_SEARCHED_GRAPHS = 50
"""Graphs of other owners that are searched for what this owner's do not have."""
_MAX_OPERATIONS = 2_000
_STATED = 0.6
"""Share of the words asked about that a text must have to say it."""
_STORED = (semconv.KIND_MEMORY, semconv.KIND_DOCUMENT)
_REASONS = {
    "threshold": "its score was below the threshold",
    "limit": "it was beyond the limit of results",
    "rerank": "the reranker put it too low",
    "dedup": "it was taken for a duplicate",
    "expired": "it had expired",
    "budget": "the budget of the prompt was used up",
    "filter": "a filter excluded it",
}


class Sentence(NamedTuple):
    """``operation``: the one that the sentence is about."""

    text: str
    operation: OperationKey | None = None


class Told(NamedTuple):
    """What became of one record (``kind:id``), or of what was never made one.

    ``ref``: the version that was a candidate, or current then, or the message. ``graph_id``:
    where it is; empty: nowhere. ``beaten_by``: what was returned in its place, best last.
    """

    record: str
    ref: str
    graph_id: str
    outcome: str
    says: tuple[Sentence, ...]
    beaten_by: tuple[str, ...] = ()

    @property
    def is_record(self) -> bool:
        """Is it a stored record, and no message or fact?"""
        return self.record.partition(":")[0] in _STORED


class Recalled(NamedTuple):
    """``says``: what is to be known before; ``told``: best match first."""

    what: str
    says: str
    told: tuple[Told, ...]


class _Match(NamedTuple):
    """``ref``: the version whose text says it, empty when the record was named."""

    record: str
    ref: str = ""


def recalled(lookups: Lookups, case: Case, reads: Sequence[Read], what: str) -> Recalled:
    """Why ``what`` (a reference, a record, or a text) was recalled for the answer, or was not."""
    asked = _Asked(lookups, case, reads)
    kind = what.partition(":")[0]
    if kind in _STORED:
        version = what if "@" in what else ""
        return Recalled(what, "", (asked.tell(_Match(variables.record_of(what), version)),))
    if kind in semconv.KINDS:
        return Recalled(what, "", tuple(asked.tell_of_source(asked.occurrences(what), what)))
    return asked.by_text(what)


def fate(read: Operation, item: Candidate) -> str:
    """What became of a candidate, as a sentence."""
    rank = "at an unknown rank" if item.rank is None else f"at rank {item.rank}"
    score = "" if item.score is None else f" with {item.score:.3f}"
    if item.outcome == CUT:
        return (
            f"{read.name} considered it {rank}{score}; it was cut: {_why(read, item)}; {_bar(read)}"
        )
    returned = f"{read.name} returned it {rank} of {len(read.delivered)}{score}"
    if item.outcome == NOT_INJECTED:
        return f"{returned}, but it did not go into the prompt"
    if item.outcome != INJECTED:
        return returned
    has = {None: "", True: "; the reply has words of it", False: "; the reply has no word of it"}
    return f"{returned}, and it went into the prompt{has[item.used]}"


def state(writes: Sequence[Write], at_ns: int) -> Sentence:
    """What a record was at a moment."""
    if not writes:
        return Sentence("nobody was seen to write it")
    current = current_at(writes, at_ns)
    by = (current or writes[0]).operation
    when = time_json(by.start_ns)
    if current is None:
        return Sentence(f"it was first written after this answer, {when}", by.key)
    if is_deleted(current.version):
        return Sentence(f"it had been deleted before this answer, {when}, by {by.name}", by.key)
    number = writes.index(current) + 1
    return Sentence(f"it was v{number} then, written {when} by {by.name}", by.key)


class _Asked:
    """One answer of which it is asked."""

    def __init__(self, lookups: Lookups, case: Case, reads: Sequence[Read]) -> None:
        self._lookups = lookups
        self._case = case
        self._reads = reads
        self._own = tuple(dict.fromkeys((case.answer.graph_id, *sorted(case.readable_graphs))))

    def by_text(self, what: str) -> Recalled:
        candidates = receipt.matching_records(self._case, what)
        if candidates:
            told = (self.tell(_Match(record)) for record in candidates[:MAX_FOUND])
            return Recalled(what, "", tuple(told))
        hits = list(self._search(self._own, what, _STORED))
        stating = [value for value in hits if _says(value, what)]
        if stating:
            return Recalled(what, "", tuple(self._tell_each(stating)))
        messages = [
            value
            for value in self._search(self._own, what, (semconv.KIND_MESSAGE,))
            if _says(value, what)
        ]
        if messages:
            told = (each for value in messages for each in self._tell_of_message(value))
            return Recalled(what, "", tuple(_each_once(told)))
        abroad = self._search(self._others(_MAX_SEARCHED_GRAPHS), what, _STORED)
        strange = [value for value in abroad if _says(value, what)]
        if strange:
            return Recalled(what, "", tuple(self._tell_each(strange)))
        nearest = tuple(self._tell_each(hits))
        after = "; the nearest that is stored:" if nearest else ""
        says = f"nothing that was recorded for this owner matches {what!r}{after}"
        return Recalled(what, says, nearest)

    def tell(self, match: _Match) -> Told:
        """What became of one record."""
        graph_id, writes = self._history(match.record)
        met = [(read, item) for read in self._reads for item in read.of_record(match.record)]
        if met:
            return self._tell_candidate(match, graph_id, writes, met)
        if not writes:
            return self._tell_elsewhere(match)
        at_ns = self._case.answer.start_ns
        current = current_at(writes, at_ns)
        if current is None:
            return _told(match, writes[0].version, graph_id, LATER, _whole(state(writes, at_ns)))
        if is_deleted(current.version):
            ref = match.ref or current.version
            return _told(match, ref, graph_id, DELETED, _whole(state(writes, at_ns)))
        return self._tell_not_considered(match, graph_id, writes, current)

    def tell_of_source(self, found: Sequence[Occurrence], name: str) -> Iterator[Told]:
        """What became of a message or a fact: of the records made from it, else that there is
        none."""
        if not found:
            says = Sentence(f"Nobody was seen to take {name} in.")
            yield Told(variables.record_of(name), name, "", UNWRITTEN, (says,))
            return
        source = found[0]
        began = source.operation
        entered = Sentence(f"It entered {time_json(began.start_ns)} by {began.name}.", began.key)
        ahead = downstream(self._lookups, found, self._own, _MAX_OPERATIONS)
        stored = [ref for ref in ahead.refs if ref.partition(":")[0] in _STORED]
        records = dict.fromkeys(map(variables.record_of, stored))
        for record in list(records)[:MAX_FOUND]:
            told = self.tell(_Match(record))
            became = Sentence(f"{record} was made from it.", None)
            yield told._replace(says=(entered, became, *told.says))
        if not records:
            kinds = {ref.partition(":")[0] for ref in ahead.refs if ref != source.ref}
            made = "a fact was made from it, and" if semconv.KIND_FACT in kinds else "no fact, and"
            missing = Sentence(f"It was never stored: {made} no record.")
            outcome = NEVER_STORED
            if began.start_ns > self._case.answer.start_ns:
                outcome, missing = LATER, Sentence("That was after this answer.")
            graph_id = began.graph_id
            record = variables.record_of(source.ref)
            yield Told(record, source.ref, graph_id, outcome, (entered, missing))

    def _tell_of_message(self, message: Value) -> Iterator[Told]:
        """No stored text says what this message says: what was made from it says something else,
        or in other words."""
        found = self.occurrences(message.ref)
        told = list(self.tell_of_source(found, message.ref))
        if any(each.is_record for each in told):
            entered = told[0].says[0]
            says = Sentence("What was stored from it does not have these words:")
            name, graph_id = variables.record_of(message.ref), message.graph_id
            yield Told(name, message.ref, graph_id, LEFT_OUT, (entered, says))
        yield from told

    def occurrences(self, name: str) -> list[Occurrence]:
        """Where a reference, or any version of what has that name, entered what was readable."""
        record, exact = variables.record_of(name), "@" in name
        for graph_id in self._own:
            made = self._lookups.writers(graph_id, [record]).get(record, [])
            if made:
                return [
                    Occurrence(ref, item)
                    for item in innermost(self._lookups, made)
                    for ref in item.outputs
                    if (ref == name if exact else variables.record_of(ref) == record)
                ]
        return []

    def _tell_each(self, values: Iterable[Value]) -> Iterator[Told]:
        matches = {variables.record_of(each.ref): each.ref for each in reversed(list(values))}
        for record, ref in list(matches.items())[::-1][:MAX_FOUND]:
            yield self.tell(_Match(record, ref))

    def _tell_candidate(
        self,
        match: _Match,
        graph_id: str,
        writes: Sequence[Write],
        met: Sequence[tuple[Read, Candidate]],
    ) -> Told:
        order = (INJECTED, NOT_INJECTED, CUT)
        best = min((item for _, item in met), key=lambda item: order.index(item.outcome))
        reworded = list(_reworded(match, writes, {item.ref for _, item in met}))
        says = [
            Sentence(f"{fate(read.operation, item)}.", read.operation.key) for read, item in met
        ]
        if writes:
            says.append(_whole(state(writes, self._case.answer.start_ns)))
        cut = next((read for read, item in met if item is best and best.outcome == CUT), None)
        beaten_by = cut.operation.delivered[-MAX_FOUND:] if cut else ()
        outcome = RETURNED if best.outcome == NOT_INJECTED else best.outcome
        if reworded:
            outcome = REPLACED
        return Told(match.record, best.ref, graph_id, outcome, (*reworded, *says), beaten_by)

    def _tell_not_considered(
        self, match: _Match, graph_id: str, writes: Sequence[Write], current: Write
    ) -> Told:
        reworded = list(_reworded(match, writes, {current.version}))
        says = [*reworded, _whole(state(writes, self._case.answer.start_ns))]
        operations = [read.operation for read in self._reads]
        searches = [item for item in operations if graph_id in (item.graph_id, *item.reads)]
        for item in operations:
            missed = f"did not consider it; {_bar(item)}"
            if item not in searches:
                missed = f"searched {item.graph_id}, where it is not"
            says.append(Sentence(f"{item.name} {missed}.", item.key))
        if not searches:
            says.append(Sentence(f"No search of {graph_id} was recorded for this answer."))
        beaten_by = searches[-1].delivered[-MAX_FOUND:] if searches else ()
        outcome = NOT_CONSIDERED if searches else NOT_SEARCHED
        if reworded:
            outcome = REPLACED
        return Told(match.record, current.version, graph_id, outcome, tuple(says), beaten_by)

    def _tell_elsewhere(self, match: _Match) -> Told:
        for graph_id in self._others(MAX_OTHER_GRAPHS):
            writes = self._lookups.history(graph_id, match.record)
            if writes:
                read = ", ".join(self._own[:MAX_FOUND])
                says = f"It belongs to another graph, {graph_id}. This answer read {read}."
                by = writes[-1].operation.key
                ref = match.ref or writes[-1].version
                return _told(match, ref, graph_id, FOREIGN, Sentence(says, by))
        says = "Nobody was seen to write it, and no search of this answer considered it."
        return _told(match, match.ref, "", UNWRITTEN, Sentence(says))

    def _history(self, record: str) -> tuple[str, tuple[Write, ...]]:
        histories = ((each, self._lookups.history(each, record)) for each in self._own)
        return next(((each, writes) for each, writes in histories if writes), ("", ()))

    def _search(self, graph_ids: Iterable[str], what: str, kinds: Sequence[str]) -> Iterator[Value]:
        for graph_id in graph_ids:
            yield from self._lookups.reader.search_values(graph_id, what, kinds, MAX_FOUND)

    def _others(self, limit: int) -> list[str]:
        """At most so many other graphs, those written last before the answer first."""
        others = [each for each in self._lookups.reader.graphs() if each.graph_id not in self._own]
        others.sort(key=lambda each: -min(each.last_ns, self._case.answer.end_ns))
        return [each.graph_id for each in others[:limit]]


def _reworded(match: _Match, writes: Sequence[Write], met: Collection[str]) -> Iterator[Sentence]:
    """That the text which was asked about is that of another version."""
    numbers = [n for n, write in enumerate(writes, 1) if write.version == match.ref]
    if numbers and match.ref not in met:
        replaced = writes[numbers[-1] :][:1]
        by = replaced[0].operation if replaced else None
        after = f", which {by.name} replaced {time_json(by.start_ns)}" if by else ""
        says = f"What was asked about is the text of v{numbers[-1]}{after}."
        yield Sentence(says, by.key if by else None)


def _whole(sentence: Sentence) -> Sentence:
    text = sentence.text
    return sentence._replace(text=f"{text[:1].upper()}{text[1:]}.")


def _told(match: _Match, ref: str, graph_id: str, outcome: str, *says: Sentence) -> Told:
    return Told(match.record, ref, graph_id, outcome, says)


def _each_once(told: Iterable[Told]) -> list[Told]:
    return list({each.record: each for each in told}.values())[:MAX_FOUND]


def _says(value: Value, what: str) -> bool:
    text = content.plain_text(value)
    return what.casefold() in text.casefold() or share_of(what, text) >= _STATED


def _why(read: Operation, item: Candidate) -> str:
    said = _REASONS.get(item.reason, item.reason)
    limits = {"threshold": "threshold", "limit": "k", "budget": "budget_tokens"}
    bound = read.limits.get(limits.get(item.reason, ""))
    return said if bound is None else f"{said} ({limits[item.reason]}={bound})"


def _bar(read: Operation) -> str:
    """What a candidate of this read had to beat, in words."""
    if not read.delivered:
        return "it returned nothing"
    last = read.delivered[-1]
    score = read.score_of(last)
    with_score = "" if score is None else f" with {score:.3f}"
    return f"the last that it returned is {last}{with_score}"
