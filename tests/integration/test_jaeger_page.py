"""What a person sees in Jaeger: the order of what stands there, searches, links to follow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import httpx
import pytest

from memtrace_collector.config import load
from tests import jaeger_ui
from tests.demo_run import ROOT, DemoRun
from tests.integration.servers import Jaeger, Up, get, links, parent, tags, up

EXPLORER = "http://localhost:4319/#/"
PARAMETERS = {
    "failure": ("id",),
    "failures": (),
    "answer": ("answer",),
    "operation": ("span",),
    "record": ("graph", "record"),
}
"""What the parts of an address are called when the explorer's view is asked for its data."""

SEARCHES = {
    "omission": ("memtrace.attribution.type", "omission"),
    "stage": ("memtrace.attribution.stage", "extraction"),
    "system": ("memtrace.cause.system", "mem0"),
    "operation": ("memtrace.cause.operation", "memtrace.extract"),
    "service": ("memtrace.cause.service", "memtrace-demo-writer"),
}
"""As the README says; by the graph's id it is searched in a test of its own."""


@pytest.fixture(scope="module")
def explorer(forwarded_demo: DemoRun) -> Iterator[Up]:
    """The explorer over what the demo left."""
    with up(forwarded_demo.store) as found:
        yield found


@pytest.fixture(scope="module")
def omission(forwarded_demo: DemoRun) -> dict[str, Any]:
    """A case whose decisive operation stands in another trace."""
    return next(
        case
        for case in forwarded_demo.cases
        if case["planted"] and case["planted"]["error_type"] == "omission"
    )


def _marker(jaeger: Jaeger, case: dict[str, Any]) -> dict[str, Any]:
    cause = case["planted"]["operation"]
    (found,) = [
        span
        for span in jaeger.spans_named(cause["traceId"], "memtrace.cause")
        if parent(span) == cause
    ]
    return found


def _case_trace(jaeger: Jaeger, case: dict[str, Any]) -> dict[str, Any]:
    found = jaeger.trace(case["verdict"]["case_trace"])
    assert found is not None
    return found


def _searched(jaeger: Jaeger, service: str, **wanted: str) -> list[dict[str, Any]]:
    """As the page searches: service, operation, tags, the last four weeks."""
    now = datetime.now(timezone.utc)
    response = get(
        f"{jaeger.query}/api/traces",
        service=service,
        operation=wanted.pop("operation", "memtrace.case"),
        tags=json.dumps(wanted),
        start=str(int((now - timedelta(weeks=4)).timestamp() * 1e6)),
        end=str(int((now + timedelta(minutes=1)).timestamp() * 1e6)),
        limit="100",
    )
    assert response is not None
    found: list[dict[str, Any]] = response.json()["data"]
    return found


def test_the_verdict_is_read_from_the_top_what_happened_first_and_ids_last(jaeger, omission):
    shown = jaeger_ui.shown_tags(jaeger.verdict_span(omission["answer"]))
    assert shown[:7] == [
        "memtrace.attribution.explanation",
        "memtrace.attribution.stage",
        "memtrace.attribution.type",
        "memtrace.cause.operation",
        "memtrace.cause.service",
        "memtrace.cause.system",
        "memtrace.cause.time",
    ]
    ids = ["memtrace.cause.span_id", "memtrace.cause.trace_id"]
    assert [name for name in shown if name.startswith("memtrace.")][-4:] == [
        *ids,
        "memtrace.case.id",
        "memtrace.case.trace_id",
    ]


def test_the_root_of_the_case_tells_the_whole_path_before_any_id(jaeger, omission):
    trace = _case_trace(jaeger, omission)
    (root,) = [span for span in trace["spans"] if span["operationName"] == "memtrace.case"]
    assert jaeger_ui.shown_tags(root)[:2] == [
        "memtrace.attribution.explanation",
        "memtrace.case.path",
    ]
    lines = json.loads(tags(root)["memtrace.case.path"])
    assert len(lines) == len(omission["verdict"]["path"])
    assert any(line.endswith("memtrace-demo-writer (decisive)") for line in lines)


def test_the_hops_stand_in_order_each_with_the_service_it_was_in(jaeger, omission):
    trace = _case_trace(jaeger, omission)
    hops = sorted(
        (span for span in trace["spans"] if span["operationName"] == "memtrace.hop"),
        key=lambda span: span["startTime"],
    )
    told = omission["verdict"]["path"]
    services = [trace["processes"][hop["processID"]]["serviceName"] for hop in hops]
    assert services == [hop["service"] for hop in told]
    assert [tags(hop)["memtrace.hop.span_id"] for hop in hops] == [
        hop["span"]["spanId"] for hop in told
    ]
    assert {"memtrace-demo-writer", "memtrace-demo-reader"} <= set(services)


@pytest.mark.fault("F39")
def test_every_tag_of_ours_is_under_the_limits_of_other_destinations(jaeger, forwarded_demo):
    for case in forwarded_demo.cases:
        spans = [jaeger.verdict_span(case["answer"]), *_case_trace(jaeger, case)["spans"]]
        for name, value in (pair for span in spans for pair in tags(span).items()):
            is_prose = name.endswith((".explanation", ".path", ".versions", "_description"))
            assert len(str(value).encode()) < (2_048 if is_prose else 256), name


def test_the_cause_is_marked_in_its_own_trace_with_a_way_to_the_case_and_the_answer(
    jaeger, omission
):
    marker = _marker(jaeger, omission)
    assert tags(marker)["otel.status_code"] == "ERROR"
    assert tags(marker)["memtrace.attribution.type"] == "omission"
    case_trace, answer = links(marker)
    assert case_trace["traceId"] == omission["verdict"]["case_trace"]
    assert answer == omission["answer"]


@pytest.mark.parametrize("wanted", SEARCHES)
def test_failures_are_found_by_what_they_are(jaeger, omission, wanted):
    name, value = SEARCHES[wanted]
    cases = _searched(jaeger, "memtrace", **{name: value})
    assert omission["verdict"]["case_trace"] in [trace["traceID"] for trace in cases]
    for trace in cases:
        (root,) = [span for span in trace["spans"] if span["operationName"] == "memtrace.case"]
        assert tags(root)[name] == value
    failing = _searched(
        jaeger, "memtrace-demo-reader", operation="memtrace.attribution", **{name: value}
    )
    assert omission["answer"]["traceId"] in [trace["traceID"] for trace in failing]


def test_failures_are_found_by_the_id_of_the_graph_and_no_others(jaeger, omission, forwarded_demo):
    graph = omission["verdict"]["graph_id"]
    found = _searched(jaeger, "memtrace", **{"memtrace.graph.id": graph})
    assert {trace["traceID"] for trace in found} >= {
        case["verdict"]["case_trace"]
        for case in forwarded_demo.cases
        if case["verdict"]["graph_id"] == graph
    }
    assert _searched(jaeger, "memtrace", **{"memtrace.graph.id": "user:nobody"}) == []


def test_what_was_found_together_is_found_by_all_of_it(jaeger, omission):
    both = dict([SEARCHES["omission"], SEARCHES["system"]])
    assert _searched(jaeger, "memtrace", **both)
    assert _searched(jaeger, "memtrace", **{**both, "memtrace.attribution.stage": "update"}) == []


def test_the_third_api_lists_the_cases_of_a_time_too(jaeger, omission):
    now = datetime.now(timezone.utc)
    response = get(
        f"{jaeger.query}/api/v3/traces",
        **{
            "query.service_name": "memtrace",
            "query.operation_name": "memtrace.case",
            "query.start_time_min": f"{now - timedelta(weeks=4):%Y-%m-%dT%H:%M:%SZ}",
            "query.start_time_max": f"{now + timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}",
            "query.num_traces": "100",
        },
    )
    assert response is not None
    found = {
        span["traceId"]
        for group in response.json()["result"]["resourceSpans"]
        for scope in group["scopeSpans"]
        for span in scope.get("spans", ())
    }
    assert omission["verdict"]["case_trace"] in found


def _spans_with_links(jaeger: Jaeger, case: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    failing = jaeger.trace(case["answer"]["traceId"])
    yield failing, jaeger.verdict_span(case["answer"])
    cause = jaeger.trace(case["planted"]["operation"]["traceId"])
    yield cause, _marker(jaeger, case)
    trace = _case_trace(jaeger, case)
    for span in trace["spans"]:
        yield trace, span


def _opened_in_jaeger(jaeger: Jaeger, url: str) -> bool:
    parts = urlsplit(url)
    trace = jaeger.trace(parts.path.removeprefix("/trace/"))
    ui_find = dict(parse_qsl(parts.query)).get("uiFind")
    return trace is not None and (ui_find is None or ui_find in jaeger_ui.found_by(trace, ui_find))


def _open_in_explorer(explorer: Up, url: str) -> Any:
    """What the view answers."""
    path, _, query = url.removeprefix(EXPLORER).partition("?")
    view, *parts = map(unquote, path.split("/"))
    given = dict(zip(PARAMETERS[view], parts, strict=True)) | dict(parse_qsl(query))
    response = httpx.get(
        f"{explorer.addresses['api']}/api/v1/view/{view}", params=given, trust_env=False
    )
    assert response.is_success, f"{url}: {response.text}"
    return response.json()


def test_every_link_leads_somewhere(jaeger, explorer, omission):
    views = set()
    for trace, span in _spans_with_links(jaeger, omission):
        shown = jaeger_ui.links(trace, span)
        assert shown
        for link in shown:
            if link.url.startswith(EXPLORER):
                views.add(link.url.removeprefix(EXPLORER).split("/")[0].split("?")[0])
                shown_there = _open_in_explorer(explorer, link.url)
                # a hop may have been in the memory of somebody whom nothing failed for
                assert shown_there.get("total", 1) or span["operationName"] == "memtrace.hop"
            else:
                assert _opened_in_jaeger(jaeger, link.url), link
    assert views == set(PARAMETERS)


def test_from_a_search_to_the_decisive_operation_it_is_one_click(jaeger, omission):
    trace = next(
        trace
        for trace in _searched(jaeger, "memtrace", **dict([SEARCHES["omission"]]))
        if trace["traceID"] == omission["verdict"]["case_trace"]
    )
    (root,) = [span for span in trace["spans"] if span["operationName"] == "memtrace.case"]
    by_key = {link.key: link.url for link in jaeger_ui.links(trace, root)}
    cause = omission["planted"]["operation"]
    assert by_key["memtrace.cause.trace_id"] == (
        f"/trace/{cause['traceId']}?uiFind={cause['spanId']}"
    )
    assert by_key["memtrace.cause.operation"] == (
        f"{EXPLORER}operation/{cause['traceId']}:{cause['spanId']}"
    )


def test_the_explorers_links_find_the_span_in_jaeger(jaeger, omission):
    template = load({}, {}, ROOT / "collector" / "memtrace.yaml").explorer.trace_url
    for hop in omission["verdict"]["path"]:
        span = hop["span"]
        url = template.format(trace_id=span["traceId"], span_id=span["spanId"])
        assert _opened_in_jaeger(jaeger, url)
