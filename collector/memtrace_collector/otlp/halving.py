"""Export requests taken apart and put together as bytes. Pure.

Trace and log requests have the same shape and field numbers, so that one description of the
wire format cuts both; spans and log records stay as they came.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memtrace_collector.otlp.slices import SlicedRequest, sliced


def count(body: bytes) -> int:
    """Spans or log records of a protobuf request.

    Raises:
        DecodeError: it is none.
    """
    return sum(map(len, _containers(sliced(body))))


def halve(body: bytes) -> tuple[bytes, bytes] | None:
    """The first and the second half of a protobuf request; None when it has but one item.

    Raises:
        DecodeError: it is none.
    """
    total = count(body)
    if total < 2:
        return None
    middle = total // 2
    return _part(body, lambda number: number < middle), _part(body, lambda number: number >= middle)


def without_empty(request: SlicedRequest) -> None:
    """Remove scopes without items and resources without scopes, in place."""
    for group in request.resource_spans:
        _keep(group.scope_spans, [scope for scope in group.scope_spans if scope.spans])
    _keep(request.resource_spans, [group for group in request.resource_spans if group.scope_spans])


def _part(body: bytes, belongs: Callable[[int], bool]) -> bytes:
    request = sliced(body)
    number = 0
    for container in _containers(request):
        items = list(container)
        kept = [item for at, item in enumerate(items, number) if belongs(at)]
        number += len(items)
        if len(kept) != len(items):
            _keep(container, kept)
    without_empty(request)
    return bytes(request.SerializeToString())


def _containers(request: SlicedRequest) -> list[Any]:
    return [scope.spans for group in request.resource_spans for scope in group.scope_spans]


def _keep(container: Any, kept: list[Any]) -> None:
    if len(kept) != len(container):
        del container[:]
        container.extend(kept)
