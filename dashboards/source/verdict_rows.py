"""Rows of the pipeline dashboard about verdicts: found, delivered, and what models cost."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from dashboards.source import queries
from dashboards.source.panels import (
    Column,
    Sql,
    amber_red,
    at_the_end,
    lines,
    number,
    over_time,
    rows,
)
from dashboards.source.queries import RATE, increase, or_zero, present, share

QUIET = "none in this window"
_CASE = ("This case, in the explorer", "${explorer:raw}/#/failure/${__data.fields.case_id}")


def _judging(page: dashboard.Dashboard) -> None:
    page.with_row(dashboard.Row("Judging flagged answers"))
    page.with_panel(
        lines(
            "Flagged answers, by state",
            "unresolved: the answer that a flag names has not arrived; waiting: for a worker or for"
            " late spans; set_aside: given up after several failures.",
            "short",
            over_time("{{state}}", present("memtrace.cases", by="state")),
            empty="no flagged answer",
            stacked=True,
        )
    )
    page.with_panel(
        lines(
            "Age of the oldest case",
            "For how long the oldest flagged answer has waited for its verdict. Climbs: no worker"
            " runs, or too few.",
            "s",
            over_time("oldest", or_zero(present("memtrace.cases.age"))),
            empty="none waits",
            limits=((3600, "red"),),
        )
    )
    failures = (
        ("failures", "memtrace.attribution.failures"),
        ("set aside", "memtrace.attribution.set_aside"),
        ("leases lost", "memtrace.attribution.leases_lost"),
        ("ended by the pace", "memtrace.attribution.rate_limited"),
    )
    page.with_panel(
        lines(
            "Judged, failed, set aside",
            "Looks at flagged answers. Failures are tried again; set aside: see why with"
            " `memtrace-otel verdicts --set-aside`; leases lost: a worker was slower than its"
            " lease.",
            "short",
            over_time("judged", or_zero(increase("memtrace.attribution.cases", over=RATE))),
            *(over_time(what, or_zero(increase(name, over=RATE))) for what, name in failures),
            empty=QUIET,
        )
    )


def _going_out(page: dashboard.Dashboard) -> None:
    page.with_row(dashboard.Row("Going out"))
    page.with_panel(
        lines(
            "Outbox",
            "Deliveries of verdicts by state. pending that climbs: the destination is away;"
            " abandoned: it refused them for good.",
            "short",
            over_time("{{state}}", or_zero(present("memtrace.outbox.depth", by="state"))),
            empty="nothing to deliver",
        )
    )
    page.with_panel(
        lines(
            "Age of the oldest delivery",
            "How long the oldest verdict has waited for the destination to take it.",
            "s",
            over_time("oldest", or_zero(present("memtrace.outbox.age"))),
            empty="none waits",
            limits=((3600, "red"),),
        )
    )
    page.with_panel(
        lines(
            "Attempts and what became visible",
            "Attempts to deliver verdicts by outcome, and looks for delivered ones at the"
            " destination. missing: it took the verdict and does not show it.",
            "short",
            over_time(
                "{{outcome}}",
                or_zero(increase("memtrace.outbox.attempts", by="outcome", over=RATE)),
            ),
            over_time("{{result}}", or_zero(increase("memtrace.readback", by="result", over=RATE))),
            empty="nothing delivered",
        )
    )


def _forwarding(page: dashboard.Dashboard) -> None:
    lag = queries.select("memtrace.forward.lag")
    page.with_panel(
        lines(
            "Forwarding",
            "Bytes of the log that were not sent on yet, by process. Only where a destination is"
            " set.",
            "bytes",
            over_time("{{instance}}", or_zero(f"sum by (instance) ({lag})")),
            empty="no destination is set",
            width=8,
        )
    )
    page.with_panel(
        rows(
            "Verdicts not delivered",
            "What the destination has not taken, with its last answer: pending is tried again,"
            " abandoned is sent again by `memtrace-otel verdicts --redeliver`.",
            Sql(queries.UNDELIVERED),
            empty="all delivered",
            columns={
                "case_id": Column("Case", link=_CASE),
                "revision": Column("Revision", "none"),
                "destination": Column("Destination"),
                "state": Column("State"),
                "signal": Column("Signal"),
                "attempts": Column("Attempts", "short"),
                "next_attempt": Column("Next attempt", "dateTimeFromNow"),
                "last_error": Column("Last answer"),
            },
            width=16,
            height=8,
        )
    )


def _model(page: dashboard.Dashboard) -> None:
    page.with_row(dashboard.Row("Model calls"))
    calls, hits = increase("memtrace.model.calls"), increase("memtrace.model.cache.hits")
    invalid = increase("memtrace.model.invalid_replies")
    page.with_panel(
        number(
            "Cost",
            "What model calls cost in this window, at the prices that are set. Zero without prices,"
            " and with rules alone.",
            "currencyUSD",
            at_the_end("", or_zero(increase("memtrace.model.cost"))),
            empty="no model is asked",
            width=6,
        )
    )
    page.with_panel(
        number(
            "Calls answered from the cache",
            "Share of questions that were answered without a call. Low on re-runs: the cache's"
            " folder is not kept.",
            "percentunit",
            at_the_end("", or_zero(f"{hits} / (({hits} + {calls}) > 0)")),
            empty="no model is asked",
            width=6,
        )
    )
    page.with_panel(
        number(
            "Replies that say nothing",
            "Share of replies that counted as no answer. High: the model does not keep to the"
            " form; choose another.",
            "percentunit",
            at_the_end("", or_zero(share(invalid, calls))),
            empty="no model is asked",
            limits=amber_red(0.05, 0.2),
            width=6,
        )
    )
    page.with_panel(
        number(
            "Cases stopped by a budget",
            "Cases in this window in which no more could be asked: case budget, run budget, time,"
            " or the model unreachable. Their verdict rests on rules.",
            "short",
            at_the_end("", or_zero(increase("memtrace.model.stopped"))),
            empty="none stopped",
            limits=amber_red(1, 50),
            width=6,
        )
    )


def _tokens(page: dashboard.Dashboard) -> None:
    page.with_panel(
        lines(
            "Calls and tokens",
            "Model calls and tokens over time, by type of token.",
            "short",
            over_time("calls", or_zero(increase("memtrace.model.calls", over=RATE))),
            over_time(
                "tokens {{type}}", or_zero(increase("memtrace.model.tokens", by="type", over=RATE))
            ),
            empty="no model is asked",
            width=24,
        )
    )


ROWS = (_judging, _going_out, _forwarding, _model, _tokens)
