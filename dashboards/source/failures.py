"""Failures: what breaks and where, down to the operation that decided and its path."""

from __future__ import annotations

from grafana_foundation_sdk.builders import bargauge, dashboard, nodegraph, table, timeseries

from dashboards.source import frame, queries
from dashboards.source.frame import Addresses
from dashboards.source.panels import Column, Sql, amber_red, bars, evolution, lines, over_time, rows
from dashboards.source.queries import SMOOTHED, increase
from memtrace_collector.attribution.verdict import STAGES

NO_FAILURES = "no verdict in this window"
NO_CASE = "no case chosen, or it has no path"
DECISIVE_TRACE = (
    "The operation that decided, in Jaeger",
    "${jaeger:raw}/trace/${__data.fields.decisive_trace}?uiFind=${__data.fields.decisive_span}",
)
ANSWER_TRACE = (
    "The answer, in Jaeger",
    "${jaeger:raw}/trace/${__data.fields.answer_trace}?uiFind=${__data.fields.answer_span}",
)
CASE_TRACE = ("The case, hop by hop, in Jaeger", "${jaeger:raw}/trace/${__data.fields.case_trace}")
HOP_TRACE = (
    "This operation, in Jaeger",
    "${jaeger:raw}/trace/${__data.fields.trace}?uiFind=${__data.fields.span}",
)
NODE_TRACE = (
    "This operation, in Jaeger",
    "${jaeger:raw}/trace/${__data.fields.detail__trace}?uiFind=${__data.fields.detail__span}",
)
HOP_GRAPH = (
    "This operation, in the explorer",
    "${explorer:raw}/#/operation/${__data.fields.detail__trace}:${__data.fields.detail__span}",
)
EXPLORER = (
    "The path of the information, in the explorer",
    "${explorer:raw}/#/failure/${__data.fields.case_id}",
)
ITS_PATH = (
    "Its path, on this page",
    f"/d/{frame.FAILURES}?${{__url_time_range}}&var-tenant=${{tenant}}"
    "&var-case=${__data.fields.case_id}",
)
OF_TYPE = (
    "These failures, in the explorer",
    "${explorer:raw}/#/failures?type=${__data.fields.error_type}",
)
OF_SERVICE = (
    "Failures of this service, in the explorer",
    "${explorer:raw}/#/failures?service=${__data.fields.service:percentencode}",
)


def build(addresses: Addresses) -> dashboard.Dashboard:
    page = frame.board(
        frame.FAILURES,
        "Failures",
        "What breaks and where: the newest verdict of each flagged answer, the operations that"
        " decided, and the path of one case. Rows lead to Jaeger and to the explorer.",
        "now-7d",
    )
    page.with_variable(frame.postgresql())
    for variable in frame.instances():
        page.with_variable(variable)
    page.with_variable(frame.of_postgresql("tenant", "Tenant", queries.TENANTS))
    page.with_variable(frame.one_of("stage", "Stage", STAGES))
    systems = frame.of_postgresql("system", "Memory system", queries.SYSTEMS, several=True)
    page.with_variable(systems)
    page.with_variable(frame.of_postgresql("case", "Case", queries.CASES))
    page.with_variable(frame.smoothed())
    frame.with_addresses(page, addresses)
    page.with_row(dashboard.Row("What broke"))
    page.with_panel(_latest())
    page.with_panel(_ranking())
    page.with_panel(_services())
    page.with_panel(_by_type())
    page.with_panel(_over_time())
    page.with_row(dashboard.Row("One case: how the information went"))
    page.with_panel(_evolution())
    page.with_panel(_path())
    return page


def _latest() -> table.Panel:
    return rows(
        "Latest failures",
        "The current verdict of each flagged answer, newest first. Click a stage to see the path of"
        " the information below, a case to open it in the explorer, and the operation, the answer"
        " or the case trace to open it in Jaeger. Explanations quote content only where content was"
        " captured.",
        Sql(queries.FAILURES),
        empty=NO_FAILURES,
        columns={
            "created": Column("Found", "dateTimeAsIso", 170),
            "case_id": Column("Case", width=120, link=EXPLORER),
            "stage": Column("Stage", width=95, link=ITS_PATH),
            "error_type": Column("Error type", width=140, link=ITS_PATH),
            "score": Column("Score", "percentunit", 70),
            "graph_id": Column("Graph", width=130),
            "answer_service": Column("Answering service", width=130),
            "decisive_system": Column("System", width=80),
            "decisive_service": Column("Deciding service", width=130),
            "decisive_operation": Column("Deciding operation", width=150, link=DECISIVE_TRACE),
            "method": Column("Method", width=75),
            "explanation": Column("Explanation"),
            "answer_trace": Column("Answer", width=110, link=ANSWER_TRACE),
            "case_trace": Column("Case trace", width=110, link=CASE_TRACE),
            "answer_span": Column(""),
            "decisive_trace": Column(""),
            "decisive_span": Column(""),
        },
        height=12,
    )


def _ranking() -> table.Panel:
    return rows(
        "Operations that decide",
        "Which operation of which service lost the information, most often first: repair the first"
        " row first. Without an operation: nothing of the memory was at fault, or it could not be"
        " known.",
        Sql(queries.DECISIVE),
        empty=NO_FAILURES,
        columns={
            "service": Column("Service", link=OF_SERVICE),
            "operation": Column("Operation"),
            "system": Column("System"),
            "stage": Column("Stage"),
            "error_type": Column("Error type", link=OF_TYPE),
            "failures": Column("Failures", "short"),
            "share": Column("Share", "percentunit", limits=amber_red(0.2, 0.5)),
            "last_seen": Column("Last", "dateTimeFromNow"),
        },
        width=14,
    )


def _services() -> table.Panel:
    return rows(
        "Failing services",
        "Where the deciding operation ran, or the answer when no operation decided. Graphs: how"
        " many owners' memories are concerned; one alone points at its data, many at the code.",
        Sql(queries.SERVICES),
        empty=NO_FAILURES,
        columns={
            "service": Column("Service", link=OF_SERVICE),
            "failures": Column("Verdicts", "short"),
            "memory_faults": Column("Memory faults", "short"),
            "graphs": Column("Graphs", "short"),
            "last_seen": Column("Last", "dateTimeFromNow"),
        },
        width=10,
    )


def _by_type() -> bargauge.Panel:
    return bars(
        "By stage and type",
        "Current verdicts of this window. The README's table says what each type means and what"
        " usually repairs it.",
        "short",
        Sql(queries.BY_TYPE),
        empty=NO_FAILURES,
        width=10,
    )


def _over_time() -> timeseries.Panel:
    return lines(
        "Verdicts over time",
        "Verdicts of every tenant over the time chosen as `Rates over`, by stage, as found. A"
        " point's exemplar opens the trace of its case.",
        "short",
        over_time(
            "{{stage}}",
            increase("memtrace.verdicts.stored", by="stage", over=SMOOTHED),
            exemplars=True,
        ),
        empty=NO_FAILURES,
        stacked=True,
        width=14,
    )


def _evolution() -> nodegraph.Panel:
    return evolution(
        "Evolution of the case",
        "The chosen case from the message that said it to the answer: operations, and what each"
        " carried on to the next. Red and DECISIVE: here the information was lost; orange: changed"
        " or lost; green: kept; grey: unknown. A node's menu opens its span.",
        queries.NODES,
        queries.EDGES,
        empty=NO_CASE,
        links=(NODE_TRACE, HOP_GRAPH),
        width=12,
    )


def _path() -> table.Panel:
    return rows(
        "Path of the case",
        "The same, hop by hop. What a hop says quotes content only where content was captured.",
        Sql(queries.PATH),
        empty=NO_CASE,
        columns={
            "hop": Column("Hop", "none", 45),
            "at": Column("At", "dateTimeAsIso", 165),
            "kind": Column("Kind", width=85),
            "outcome": Column("Outcome", width=80),
            "decisive": Column("Decisive", width=75),
            "service": Column("Service", width=110),
            "system": Column("System", width=70),
            "operation": Column("Operation", width=140, link=HOP_TRACE),
            "record": Column("Record", width=130),
            "says": Column("Says"),
            "trace": Column(""),
            "span": Column(""),
        },
        width=12,
        height=14,
    )
