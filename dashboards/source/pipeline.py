"""Pipeline: is memtrace itself healthy, from the door to the destination."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from dashboards.source import frame, queries, verdict_rows
from dashboards.source.frame import Addresses
from dashboards.source.panels import (
    amber_red,
    at_the_end,
    lines,
    number,
    over_time,
)
from dashboards.source.queries import (
    RATE,
    WINDOW,
    collector,
    gained,
    increase,
    or_zero,
    present,
    process,
    quantile,
    queue_share,
    rate,
)

QUIET = "none in this window"
NOBODY = "nobody sends"


def build(addresses: Addresses) -> dashboard.Dashboard:
    page = frame.board(
        frame.PIPELINE,
        "Pipeline",
        "Is memtrace itself healthy, from the door to the destination? Losses are counted where"
        " they happen: every panel about one is zero when all is well.",
        "now-6h",
    )
    page.with_variable(frame.postgresql())
    for variable in frame.instances():
        page.with_variable(variable)
    page.with_variable(frame.of_postgresql("tenant", "Tenant", queries.TENANTS))
    frame.with_addresses(page, addresses)
    for add in (_now, _collector, _door, _losses, _projection, _references):
        add(page)
    for add in (*verdict_rows.ROWS, _processes):
        add(page)
    return page


def _now(page: dashboard.Dashboard) -> None:
    page.with_row(dashboard.Row("As of now"))
    for title, description, unit, expression, limits in (
        (
            "Not taken",
            "Requests that were refused in this window: senders try again, or lose them. Look at"
            " the reason below.",
            "short",
            increase("memtrace.receiver.refused"),
            amber_red(1, 100),
        ),
        (
            "Projection behind",
            "Age of the oldest request that is in the log and not in the graphs. Grows without end:"
            " the projection is stuck; read the process's log.",
            "s",
            f"max({queries.select('memtrace.projection.delay')})",
            amber_red(30, 300),
        ),
        (
            "Quarantined",
            "Requests set aside in this window because they could not be projected. They are kept;"
            " the line of the process's log that says `quarantined` says why.",
            "short",
            increase("memtrace.projection.quarantined"),
            amber_red(1, 10),
        ),
        (
            "Oldest case waits",
            "For how long the oldest flagged answer has waited for its verdict.",
            "s",
            present("memtrace.cases.age"),
            amber_red(900, 3600),
        ),
        (
            "Oldest delivery waits",
            "Age of the oldest verdict that the destination has not taken.",
            "s",
            present("memtrace.outbox.age"),
            amber_red(300, 3600),
        ),
        (
            "Verdicts not visible",
            "Verdicts that were delivered in this window and then not found at the destination.",
            "short",
            increase("memtrace.readback", 'result="missing"'),
            amber_red(1, 10),
        ),
    ):
        page.with_panel(
            number(
                title,
                description,
                unit,
                at_the_end("", or_zero(expression)),
                empty="nothing to tell",
                limits=limits,
            )
        )


def _collector(page: dashboard.Dashboard) -> None:
    refused = collector("otelcol_exporter_enqueue_failed_spans")
    page.with_row(dashboard.Row("The Collector in front"))
    page.with_panel(
        lines(
            "Queues of the Collector",
            "How full the queue in front of each exporter is. Climbs: what stands behind does not"
            " take as much as comes in, or nothing. Full: senders wait, then lose what they send.",
            "percentunit",
            over_time("{{exporter}} {{data_type}}", queue_share("exporter, data_type")),
            empty="no Collector is scraped",
            limits=((0.5, "red"),),
            width=12,
        )
    )
    page.with_panel(
        lines(
            "Lost and refused by the Collector",
            "Lost: the exporter was told not to try again, and the data is gone; the Collector's"
            " log has the answer. Refused: the queue was full, and the sender was told so.",
            "short",
            *(
                over_time(
                    f"lost {what.replace('_', ' ')} {{{{exporter}}}}",
                    or_zero(gained(queries.lost_by_collector(what), RATE, "exporter")),
                )
                for what in queries.LOSABLE
            ),
            over_time("refused spans {{exporter}}", or_zero(gained(refused, RATE, "exporter"))),
            empty=QUIET,
            limits=((1, "red"),),
            width=12,
        )
    )


def _door(page: dashboard.Dashboard) -> None:
    page.with_row(dashboard.Row("Coming in"))
    page.with_panel(
        lines(
            "Received",
            "Spans, log records and data points acknowledged per second. Zero while agents run:"
            " their exporter points elsewhere, or the Collector holds them back.",
            "cps",
            over_time("{{signal}}", rate("memtrace.receiver.accepted", by="signal")),
            empty=NOBODY,
        )
    )
    page.with_panel(
        lines(
            "Refused and rejected",
            "Requests refused, by transport and code, and items left out of a request that was"
            " taken. RESOURCE_EXHAUSTED and UNAVAILABLE: senders try again; INVALID_ARGUMENT: a"
            " sender is wrong and loses them.",
            "short",
            over_time(
                "{{transport}} {{code}}",
                or_zero(increase("memtrace.receiver.refused", by="transport, code", over=RATE)),
            ),
            over_time(
                "rejected {{signal}}",
                or_zero(increase("memtrace.receiver.rejected", by="signal", over=RATE)),
            ),
            over_time("throttled", or_zero(increase("memtrace.receiver.throttled", over=RATE))),
            empty=QUIET,
            limits=((1, "red"),),
        )
    )
    page.with_panel(
        lines(
            "Log",
            "Bytes written to the log and synced per second, requests that the log did not take,"
            " by why, and bytes that retention took away. disk_nearly_full: free space on the"
            " log's disk now.",
            "Bps",
            over_time("written", rate("memtrace.log.written")),
            over_time("expired {{reason}}", or_zero(rate("memtrace.log.expired", by="reason"))),
            empty=NOBODY,
        )
    )


def _losses(page: dashboard.Dashboard) -> None:
    page.with_panel(
        lines(
            "Requests that the log did not take",
            "By reason: overloaded (the disk is slower than what comes in), disk_nearly_full,"
            " unavailable (a write failed). Senders are told to try again.",
            "short",
            over_time(
                "{{reason}}", or_zero(increase("memtrace.log.refused", by="reason", over=RATE))
            ),
            empty=QUIET,
            limits=((1, "red"),),
            width=12,
        )
    )
    page.with_panel(
        lines(
            "Segments lost before they were read",
            "Parts of the log that retention took away before the projection or the forwarder had"
            " read them: data is missing for good. Give retention more room.",
            "short",
            over_time(
                "{{reader}}", or_zero(increase("memtrace.log.missed", by="reader", over=RATE))
            ),
            empty=QUIET,
            limits=((1, "red"),),
            width=12,
        )
    )


def _projection(page: dashboard.Dashboard) -> None:
    page.with_row(dashboard.Row("Projection into graphs"))
    lag, delay = (
        queries.select("memtrace.projection.lag"),
        queries.select("memtrace.projection.delay"),
    )
    page.with_panel(
        lines(
            "Lag of the projection",
            "Bytes of the log that are not in the graphs yet, by process. A line that climbs and"
            " never falls: stuck, or too slow for what comes in.",
            "bytes",
            over_time("{{instance}}", f"sum by (instance) ({lag})"),
            empty="no process projects",
        )
    )
    page.with_panel(
        lines(
            "Delay of the projection",
            "Age of the oldest request that is not in the graphs yet: how stale what you see here"
            " and in the explorer can be.",
            "s",
            over_time("{{instance}}", f"max by (instance) ({delay})"),
            empty="no process projects",
            limits=((300, "red"),),
        )
    )
    page.with_panel(
        lines(
            "Projected, repeated, set aside",
            "Operations that became part of graphs per second, spans that were known already, spans"
            " known with other content, parts left out, and records set aside.",
            "cps",
            over_time("operations", rate("memtrace.projection.operations")),
            over_time("duplicates", or_zero(rate("memtrace.projection.duplicates"))),
            over_time("conflicts", or_zero(rate("memtrace.projection.conflicts"))),
            over_time("salvaged", or_zero(rate("memtrace.projection.salvaged"))),
            over_time(
                "quarantined {{kind}}", or_zero(rate("memtrace.projection.quarantined", by="kind"))
            ),
            empty=NOBODY,
        )
    )


def _references(page: dashboard.Dashboard) -> None:
    wait = "memtrace.references.wait"
    page.with_panel(
        lines(
            "References without a producer",
            "References in the ancestries of flagged answers whose producing operation has not"
            " arrived. Stays high: a writer is not instrumented, or its spans are lost.",
            "short",
            over_time("unresolved", or_zero(present("memtrace.references.unresolved"))),
            empty="none",
            width=12,
        )
    )
    page.with_panel(
        lines(
            "How long references waited",
            "For the producers that did arrive: half, and 95 %, waited at most this. Longer than"
            " the settling time: verdicts are found before all is known, and revised later.",
            "s",
            over_time("half", or_zero(quantile(wait, 0.5, over=WINDOW))),
            over_time("95 %", or_zero(quantile(wait, 0.95, over=WINDOW))),
            empty="none waited",
            width=12,
        )
    )


def _processes(page: dashboard.Dashboard) -> None:
    page.with_row(dashboard.Row("Processes"))
    for title, description, unit, expression in (
        (
            "Memory",
            "Resident memory by process. A process that projects stays below 300 MB, however much"
            " comes in; more is worth a report.",
            "bytes",
            process("process_resident_memory_bytes"),
        ),
        (
            "CPU",
            "Cores used by process.",
            "short",
            f"rate({process('process_cpu_seconds_total')}[{RATE}])",
        ),
        (
            "Open files",
            "Open file descriptors by process. Near its limit, connections are refused.",
            "short",
            process("process_open_fds"),
        ),
    ):
        page.with_panel(
            lines(
                title,
                description,
                unit,
                over_time("{{instance}}", expression),
                empty="not exported on this system",
                width=6,
            )
        )
    page.with_panel(
        number(
            "Restarts",
            "Processes that started in this window, and ends of the projecting child. More than"
            " deploys: something kills them; look for memory limits.",
            "short",
            at_the_end(
                "processes", f"sum(changes({process('process_start_time_seconds')}[{WINDOW}]))"
            ),
            at_the_end("projection", or_zero(increase("memtrace.projection.restarts"))),
            empty="none",
            limits=amber_red(1, 5),
            width=6,
        )
    )
