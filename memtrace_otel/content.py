"""What content may leave the process: policy, redaction, size caps. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from memtrace_otel import packing
from memtrace_otel.guard import handle

Redactor = Callable[[str, str], str | None]
"""``redactor(reference, text)`` gives the text that may leave the process, ``None`` for none."""


class Published(NamedTuple):
    """``values``: reference -> text to send. ``cut``: references whose text is not whole."""

    values: dict[str, str]
    cut: list[str]


def redact(reference: str, text: str, redactor: Redactor | None) -> str | None:
    """What the user's redactor leaves of ``text``; a redactor that fails withholds it."""
    if redactor is None:
        return text
    try:
        redacted: object = redactor(reference, text)
        if redacted is None or isinstance(redacted, str):
            return redacted
        raise TypeError(f"the redactor returned {type(redacted).__name__}, not a text or None")
    except Exception as error:
        handle(error, "redactor")
        return None


def publish(
    values: Iterable[tuple[str, str]],
    *,
    redactor: Redactor | None,
    max_value_chars: int,
    max_span_chars: int,
) -> Published:
    """Redact and shorten ``(reference, text)`` pairs to what one span may carry.

    What does not fit is shortened to the room that is left; without room it is withheld.
    """
    kept: dict[str, str] = {}
    cut: list[str] = []
    room = max_span_chars
    for ref, text in values:
        allowed = text if redactor is None else redact(ref, text, redactor)
        if allowed is None:
            cut.append(ref)
            continue
        limit = min(max_value_chars, room)
        if len(allowed) > limit:
            allowed = allowed[:limit]
        if allowed != text:
            cut.append(ref)
        if allowed or not text:
            kept[ref] = allowed
        room -= len(allowed)
    return Published(kept, cut)


def fit(published: Published, limit: int | None) -> tuple[str, Published]:
    """The JSON of the values in at most ``limit`` characters, and what it holds.

    Whole values go, the largest first: half a JSON text cannot be read.
    """
    text = packing.dumps(published.values)
    if limit is None or len(text) <= limit:
        return text, published
    values: Mapping[str, str] = published.values
    sizes = {ref: len(packing.dumps({ref: value})) for ref, value in values.items()}
    over = len(text) - limit
    gone: set[str] = set()
    for ref in sorted(sizes, key=lambda ref: -sizes[ref]):
        if over <= 0:
            break
        gone.add(ref)
        over -= sizes[ref] - 1
    kept = {ref: value for ref, value in values.items() if ref not in gone}
    cut = [*published.cut, *(ref for ref in values if ref in gone)]
    return packing.dumps(kept), Published(kept, cut)
