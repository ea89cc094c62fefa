"""Which of two contents of one key wins: the rules that make facts order-free. Pure."""

from __future__ import annotations

import msgspec

from memtrace_collector.graph.facts import Flag, Operation, Value
from memtrace_collector.graph.reader import SequenceNumber

_encode = msgspec.json.Encoder(order="deterministic").encode


def operation_wins(new: Operation, old: Operation) -> bool:
    """Later end, then greater digest."""
    return (new.end_ns, new.digest) > (old.end_ns, old.digest)


def value_wins(new: Value, old: Value) -> bool:
    """Verified beats unverified, then uncut, then longer, then bytewise greater."""
    return _value_rank(new) > _value_rank(old)


def _value_rank(value: Value) -> tuple[bool, bool, int, bytes]:
    content = _encode(value.content)
    return value.verified, not value.cut, len(content), content


def flag_wins(new: Flag, old: Flag) -> bool:
    """Of two flags of one origin: the later, then the bytewise greater."""
    return (new.at_ns, _encode(new)) > (old.at_ns, _encode(old))


def join_numbers(one: SequenceNumber, other: SequenceNumber) -> SequenceNumber:
    """Two sightings of one number, as one."""
    return SequenceNumber(
        one.process,
        one.number,
        min(one.start_ns, other.start_ns),
        max(one.end_ns, other.end_ns),
        one.farewell or other.farewell,
    )
