"""Settings of the page: where its links to traces lead."""

from __future__ import annotations

from dataclasses import dataclass
from string import Formatter
from urllib.parse import urlsplit

from memtrace_collector.settings.checks import check

_PLACES = frozenset(("trace_id", "span_id"))
_EXPECTED = (
    "http(s)://… with {trace_id} and, where the backend can show one span, {span_id}, such as "
    "http://localhost:16686/trace/{trace_id}?uiFind={span_id}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplorerConfig:
    """What the page needs to know of its surroundings."""

    trace_url: str = ""
    """Template of the address of a span in the trace backend's own page; empty: no links."""

    def validate(self) -> None:
        check("explorer.trace_url", not self.trace_url or _is_template(self.trace_url), _EXPECTED)


def _is_template(text: str) -> bool:
    try:
        parts = urlsplit(text)
        parsed = list(Formatter().parse(text))
    except ValueError:
        return False
    plain = all(not form and not conversion for _, name, form, conversion in parsed if name)
    names = {name for _, name, _, _ in parsed if name is not None}
    # a place in the host's name would let a span choose whom the reader is sent to
    is_fixed = parts.scheme in ("http", "https") and "{" not in parts.netloc and parts.hostname
    return bool(is_fixed) and plain and "trace_id" in names and names <= _PLACES
