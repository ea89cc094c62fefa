"""What one span says, as frozen values: the only form in which spans reach store and graph.

Facts are keyed and self-contained: applying them in any order, any number of times, gives the
same graph (DESIGN section 3.3). Trace and span ids are lower-case hex; times are integer
nanoseconds since the Unix epoch; references are the strings of DESIGN section 3.1.

The classes are msgspec Structs, so that building, encoding and decoding them run in C: change one
with ``msgspec.structs.replace``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct, field

DEFAULT_TENANT = "default"


class OperationKey(NamedTuple):
    """Identity of an operation: its span."""

    trace_id: str
    span_id: str

    def __str__(self) -> str:
        return f"{self.trace_id}:{self.span_id}"


class Dropped(NamedTuple):
    """A candidate that was considered and cut."""

    ref: str
    score: float | None = None
    reason: str = "other"
    rank: int | None = None


class Decision(NamedTuple):
    """What a decision did with one candidate fact; ``None``: the library does not say."""

    fact: str | None
    action: str
    target: str | None = None
    status: str | None = None


class Edge(NamedTuple):
    """This input made this output."""

    input: str
    output: str
    relation: str


class Sequence(NamedTuple):
    """One number of one process's run of memory operations (from 1, without gaps)."""

    process: str
    number: int


class Operation(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """One memory operation. Tuples keep the sender's order; ``delivered`` is rank order.

    ``digest`` is SHA-256 over the span's deterministic protobuf bytes: of two contents of one
    span, the later ``end_ns`` wins, then the greater digest.

    Encoded as an array in the order of the fields (:mod:`memtrace_collector.store.encoding`):
    another field goes to the end and has a default.
    """

    graph_id: str
    trace_id: str
    span_id: str
    name: str
    step: str
    start_ns: int
    end_ns: int
    tenant: str = DEFAULT_TENANT
    parent_span_id: str = ""
    system: str = ""
    system_version: str = ""
    service: str = ""
    capture: str = "observed"
    error_type: str = ""
    conversation_id: str = ""
    response_id: str = ""
    composite: bool = False
    inputs: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    delivered: tuple[str, ...] = ()
    scores: tuple[float | None, ...] = ()
    score_kind: str = ""
    dropped: tuple[Dropped, ...] = ()
    limits: Mapping[str, object] = field(default_factory=dict)
    supersedes: tuple[str, ...] = ()
    decisions: tuple[Decision, ...] = ()
    edges: tuple[Edge, ...] = ()
    reads: tuple[str, ...] = ()
    sources: Mapping[str, OperationKey] = field(default_factory=dict)
    """Key ``from`` of the lineage: which producer of a reference is meant."""
    times: Mapping[str, str] = field(default_factory=dict)
    roles: Mapping[str, str] = field(default_factory=dict)
    inferred: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()
    truncated: Mapping[str, int] = field(default_factory=dict)
    sequence: Sequence | None = None
    digest_key: str = ""
    digest: str = ""

    @property
    def key(self) -> OperationKey:
        return OperationKey(self.trace_id, self.span_id)

    @property
    def flag_targets(self) -> tuple[str, ...]:
        """Every :attr:`Flag.target` that may mean this operation."""
        named = (("response", self.response_id), ("conversation", self.conversation_id))
        return (f"trace:{self.trace_id}", *(f"{kind}:{name}" for kind, name in named if name))

    def score_of(self, reference: str) -> float | None:
        """The score with which ``reference`` was delivered, where one was given."""
        pairs = zip(self.delivered, self.scores)
        return next((score for ref, score in pairs if ref == reference), None)


def by_time(operation: Operation) -> tuple[int, str, str]:
    """The order in which readers give operations: by start, ties by their ids."""
    return operation.start_ns, operation.trace_id, operation.span_id


class Value(Struct, frozen=True, kw_only=True, gc=False):
    """The content of a variable version, as captured.

    ``content`` is a text, or a list of texts and ``{"ref": reference}`` to be expanded.
    ``verified``: its digest equals its version. Of several values of one reference a verified
    one wins, then an uncut one, then the longer, then the bytewise greater.
    """

    graph_id: str
    ref: str
    content: str | list[object]
    tenant: str = DEFAULT_TENANT
    cut: bool = False
    verified: bool = False


class Flag(Struct, frozen=True, kw_only=True, gc=False):
    """Somebody says that an answer is wrong (or, with ``expected``, what it should have been).

    Exactly one target is meant, in this order: span, trace, response, conversation; what is
    not an answer means the latest-ending answer below it. ``at_ns`` and ``origin`` (the span
    or record that carries the flag) identify it: a re-delivery is the same flag.
    """

    tenant: str = DEFAULT_TENANT
    graph_id: str = ""
    trace_id: str = ""
    span_id: str = ""
    response_id: str = ""
    conversation_id: str = ""
    expected: str | None = None
    """``None``: not given. Empty: it should have declined."""
    evidence: tuple[str, ...] = ()
    reason: str = ""
    source: str = ""
    """user, evaluator, dataset or operator."""
    at_ns: int = 0
    origin: str = ""

    @property
    def target(self) -> str:
        """The trace, response or conversation in which the flagged answer is, as one key."""
        if self.trace_id:
            return f"trace:{self.trace_id}"
        if self.response_id:
            return f"response:{self.response_id}"
        return f"conversation:{self.conversation_id}"


class SpanFacts(Struct, frozen=True, kw_only=True, gc=False):
    """Everything one span (or log record) says."""

    tenant: str = DEFAULT_TENANT
    operation: Operation | None = None
    values: tuple[Value, ...] = ()
    flags: tuple[Flag, ...] = ()
    farewell: Sequence | None = None
    farewell_ns: int = 0
    """When the process said that it ends."""
    problems: tuple[str, ...] = ()
    """What could not be read and was salvaged around, in words, for counters and logs."""
