"""The configuration of Jaeger's page holds to the page's rules, and names what exists."""

from __future__ import annotations

import re
from typing import Any

import pytest

from memtrace_otel import semconv
from tests import jaeger_ui

NAMES = {
    value for name, value in vars(semconv).items() if name.isupper() and isinstance(value, str)
}
TRACE: dict[str, Any] = {
    "traceID": "ab" * 16,
    "processes": {"p1": {"serviceName": "writer", "tags": [{"key": "zone", "value": "a/b"}]}},
    "spans": [
        {
            "spanID": "0a",
            "operationName": "memtrace.case",
            "references": [],
            "processID": "p1",
            "startTime": 1_600_000_000_000_000,
            "duration": 1_000,
            "tags": [{"key": "memtrace.graph.id", "value": "user:a b/c"}],
        },
        {
            "spanID": "0b",
            "operationName": "memtrace.hop",
            "references": [{"refType": "CHILD_OF", "traceID": "ab" * 16, "spanID": "0a"}],
            "processID": "p1",
            "startTime": 1_600_000_000_000_000,
            "duration": 5,
            "tags": [{"key": "memtrace.hop.record", "value": "mem:x:1"}],
        },
    ],
}
HOP = TRACE["spans"][1]


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    document: dict[str, Any] = {"linkPatterns": [], "topTagPrefixes": []}
    monkeypatch.setattr(jaeger_ui, "configuration", lambda: document)
    return document


def _pattern(url: str, kind: str = "tags", key: str = "memtrace.hop.record") -> dict[str, str]:
    return {"type": kind, "key": key, "url": url, "text": f"to {url}"}


def test_every_pattern_is_complete_and_asks_for_attributes_that_exist() -> None:
    for pattern in jaeger_ui.configuration()["linkPatterns"]:
        assert set(pattern) == {"type", "key", "url", "text"}
        assert pattern["type"] in ("process", "tags", "logs", "traces")
        for name in (pattern["key"], *re.findall(r"#\{([^}]*)\}", pattern["url"])):
            assert name in NAMES, name


def test_every_preferred_tag_exists_and_prose_comes_before_ids() -> None:
    prefixes = jaeger_ui.configuration()["topTagPrefixes"]
    assert all(any(name.startswith(prefix) for name in NAMES) for prefix in prefixes)
    assert prefixes[0] == semconv.MEMTRACE_ATTRIBUTION_EXPLANATION
    span = {"tags": [{"key": name} for name in sorted(NAMES)]}
    shown = [name for name in jaeger_ui.shown_tags(span) if name.startswith("memtrace.")]
    assert shown.index("memtrace.cause.operation") < shown.index("memtrace.cause.trace_id")
    assert shown.index("memtrace.hop.outcome") < shown.index("memtrace.hop.span_id")


def test_values_are_encoded_as_parts_of_a_url_and_not_in_the_text(configured: Any) -> None:
    configured["linkPatterns"] = [_pattern("/x/#{memtrace.graph.id}?r=#{memtrace.hop.record}")]
    (link,) = jaeger_ui.links(TRACE, HOP)
    assert link.url == "/x/user%3Aa%20b%2Fc?r=mem%3Ax%3A1"
    assert link.text == "to /x/user:a b/c?r=mem:x:1"


def test_a_link_with_a_parameter_that_nobody_has_is_not_shown(configured: Any) -> None:
    configured["linkPatterns"] = [_pattern("/#{memtrace.case.id}")]
    assert jaeger_ui.links(TRACE, HOP) == []


def test_a_process_does_not_look_at_ancestors(configured: Any) -> None:
    configured["linkPatterns"] = [
        _pattern("/#{zone}/#{trace.traceID}", "process", "zone"),
        _pattern("/#{memtrace.graph.id}", "process", "zone"),
    ]
    assert [link.url for link in jaeger_ui.links(TRACE, HOP)] == [f"/a%2Fb/{'ab' * 16}"]


def test_links_of_a_trace_can_be_formatted(configured: Any) -> None:
    configured["linkPatterns"] = [
        _pattern("/#{startTime | add 1000 | epoch_micros_to_date_iso}", "traces"),
        _pattern("/#{traceID | pad_start 34 0}", "traces"),
    ]
    assert [link.url for link in jaeger_ui.trace_links(TRACE)] == [
        "/2020-09-13T12%3A26%3A40.001Z",
        f"/00{'ab' * 16}",
    ]


def test_a_span_is_found_by_its_id_and_by_what_names_it() -> None:
    assert jaeger_ui.found_by(TRACE, "000b") == ["0b"]
    assert jaeger_ui.found_by(TRACE, "mem:x") == ["0b"]
    assert jaeger_ui.found_by(TRACE, "writer") == ["0a", "0b"]
