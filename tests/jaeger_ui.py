"""What Jaeger's page makes of its configuration and of a trace, by its documented rules.

The Jaeger that the tests build has no page. These are the rules of "Link Patterns" and "Top Tag
Prefixes" in Jaeger's documentation of its page, for traces in the form of the page's own API
(``/api/traces/{id}``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

CONFIGURATION = Path(__file__).parent.parent / "dashboards" / "jaeger-ui.json"
_PARAMETER = re.compile(r"#\{([^{}]*)\}")
_UNESCAPED = "-_.!~*'()"
"""What encodeURIComponent leaves as it is, besides letters and digits."""
_OF_A_TRACE = ("duration", "endTime", "startTime", "traceName", "traceID")

Tag = Mapping[str, Any]
Trace = Mapping[str, Any]
Span = Mapping[str, Any]


class Link(NamedTuple):
    """A link as it is shown at the value of a tag, or (``key`` empty) of the trace."""

    key: str
    url: str
    text: str


def configuration() -> dict[str, Any]:
    """The page's configuration in this repository."""
    found: dict[str, Any] = json.loads(CONFIGURATION.read_text(encoding="utf-8"))
    return found


def links(trace: Trace, span: Span) -> list[Link]:
    """Every link that is shown at the tags of a span and of its process, in order."""
    patterns = configuration()["linkPatterns"]
    process = trace["processes"][span["processID"]]["tags"]
    return [
        link
        for kind, tags in (("tags", span["tags"]), ("process", process))
        for tag in tags
        for pattern in patterns
        if pattern["type"] == kind and pattern["key"] == tag["key"]
        for link in _rendered(pattern, _values(trace, span, tags, kind))
    ]


def trace_links(trace: Trace) -> list[Link]:
    """Every link that is shown at the head of a trace."""
    patterns = configuration()["linkPatterns"]
    return [
        link
        for pattern in patterns
        if pattern["type"] == "traces"
        for link in _rendered(pattern, lambda name: _formatted(name, _fields(trace)))
    ]


def shown_tags(span: Span) -> list[str]:
    """The keys of a span's tags in the order in which they are shown: first those of the
    configured prefixes, in the order of these, then by name."""
    prefixes = [prefix.lower() for prefix in configuration()["topTagPrefixes"]]

    def place(key: str) -> tuple[list[bool], str]:
        return [not key.lower().startswith(prefix) for prefix in prefixes], key.lower()

    return sorted((tag["key"] for tag in span["tags"]), key=place)


def found_by(trace: Trace, ui_find: str) -> list[str]:
    """Ids of the spans that ``?uiFind=`` finds: by their id, or a text in name, service or tag."""
    wanted = ui_find.lower()

    def is_found(span: Span) -> bool:
        process = trace["processes"][span["processID"]]
        texts = [span["operationName"], process["serviceName"]]
        for tag in (*span["tags"], *process["tags"]):
            texts += [tag["key"], str(tag["value"])]
        return span["spanID"].lstrip("0") == wanted.lstrip("0") or any(
            wanted in text.lower() for text in texts
        )

    return [span["spanID"] for span in trace["spans"] if is_found(span)]


def _rendered(pattern: Mapping[str, str], value: Callable[[str], Any]) -> Iterator[Link]:
    """Nothing, when a parameter has no value."""
    names = {name for part in ("url", "text") for name in _PARAMETER.findall(pattern[part])}
    values = {name: value(name) for name in names}
    if None in values.values():
        return
    yield Link(
        pattern.get("key", ""),
        _PARAMETER.sub(lambda name: quote(_text(values[name[1]]), safe=_UNESCAPED), pattern["url"]),
        _PARAMETER.sub(lambda name: _text(values[name[1]]), pattern["text"]),
    )


def _values(trace: Trace, span: Span, tags: Sequence[Tag], kind: str) -> Callable[[str], Any]:
    """A parameter's value: of the trace, of these tags, of the span or its ancestors."""

    def value(name: str) -> Any:
        if name.startswith("trace."):
            return _fields(trace).get(name.removeprefix("trace."))
        found = _value(name, tags)
        if found is None and kind != "process":
            chain = (_value_at(name, trace, each) for each in _ancestry(trace, span))
            found = next((each for each in chain if each is not None), None)
        return found

    return value


def _value_at(name: str, trace: Trace, span: Span) -> Any:
    found = _value(name, span["tags"])
    return _value(name, trace["processes"][span["processID"]]["tags"]) if found is None else found


def _value(name: str, tags: Sequence[Tag]) -> Any:
    return next((tag["value"] for tag in tags if tag["key"] == name), None)


def _ancestry(trace: Trace, span: Span) -> Iterator[Span]:
    """The span, its parent and so on, as far as they are in the trace."""
    by_id = {each["spanID"]: each for each in trace["spans"]}
    at: Span | None = span
    while at is not None:
        yield at
        parents = [ref["spanID"] for ref in at["references"] if ref["refType"] == "CHILD_OF"]
        at = by_id.get(parents[0]) if parents else None


def _fields(trace: Trace) -> dict[str, Any]:
    start = min(span["startTime"] for span in trace["spans"])
    end = max(span["startTime"] + span["duration"] for span in trace["spans"])
    ids = {span["spanID"] for span in trace["spans"]}
    root = next(
        span
        for span in sorted(trace["spans"], key=lambda each: each["startTime"])
        if not any(ref["spanID"] in ids for ref in span["references"])
    )
    service = trace["processes"][root["processID"]]["serviceName"]
    named = (end - start, end, start, f"{service}: {root['operationName']}", trace["traceID"])
    return dict(zip(_OF_A_TRACE, named, strict=True))


def _formatted(parameter: str, fields: Mapping[str, Any]) -> Any:
    """``field | function argument | …``, as links of traces may have."""
    name, *functions = (part.strip() for part in parameter.split("|"))
    value = fields.get(name)
    for function in functions:
        called, *arguments = function.split(" ")
        value = _FUNCTIONS[called](value, *arguments)
    return value


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "epoch_micros_to_date_iso": lambda micros: (
        datetime.fromtimestamp(micros / 1e6, tz=timezone.utc)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    ),
    "pad_start": lambda text, length, character: text.rjust(int(length), character),
    "add": lambda number, offset: number + int(offset),
}


def _text(value: Any) -> str:
    """As JavaScript writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
