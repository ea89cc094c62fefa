"""PromQL and SQL of the panels.

A PromQL selector names a metric and attributes of ``telemetry.catalog``: a name that the service
does not export cannot be drawn. Every one is narrowed to the job and instance that are chosen.
"""

from __future__ import annotations

import re
from typing import Literal

from memtrace_collector.telemetry.catalog import METRICS

Suffix = Literal["", "_bucket", "_sum", "_count"]

CHOSEN = ('job=~"$job"', 'instance=~"$instance"')
WINDOW = "$__range"
RATE = "$__rate_interval"
SMOOTHED = "$smoothed"
"""The dashboard's own interval, long enough for what happens a few times an hour."""

FAULT = 'stage!~"not_memory|unknown"'
"""Verdicts of a memory fault: the stages that are not one are left out."""
LOSABLE = ("spans", "log_records")
OF_SYSTEM = 'system=~"$system"'
OF_STEP = 'step=~"$step"'


def series(name: str, *conditions: str, suffix: Suffix = "") -> str:
    """A selector of the metric that OpenTelemetry calls ``name``.

    Raises:
        KeyError: no such metric.
        ValueError: a condition on an attribute that it does not have, or a part of a histogram
            where it is none.
    """
    metric = METRICS[name]
    if (suffix != "") != (metric.kind == "histogram"):
        raise ValueError(f"{name} is a {metric.kind}; it has no series {name}{suffix}")
    for condition in conditions:
        attribute = re.split("[=!]", condition)[0]
        if attribute not in metric.attributes and condition not in CHOSEN:
            raise ValueError(f"{name} has no attribute {attribute}")
    narrowed = f"{{{','.join(conditions)}}}" if conditions else ""
    return f"{metric.prometheus}{suffix}{narrowed}"


def select(name: str, *conditions: str, suffix: Suffix = "") -> str:
    """A selector of what the chosen processes say; see :func:`series`."""
    return series(name, *CHOSEN, *conditions, suffix=suffix)


def process(name: str) -> str:
    """A selector of what a Prometheus client tells of its process, as ``process_*``."""
    return f"{name}{{{','.join(CHOSEN)}}}"


def collector(name: str) -> str:
    """A selector of what the OpenTelemetry Collector in front tells of itself, as ``otelcol_*``."""
    return f'{name}{{job="otelcol"}}'


def lost_by_collector(what: str) -> str:
    """``what``: one of LOSABLE; the Collector counts it when it gives up."""
    return collector(f"otelcol_exporter_send_failed_{what}")


def queue_share(by: str) -> str:
    """How full the Collector's queues are: each has a unit and a limit of its own."""
    size, limit = (collector(f"otelcol_exporter_queue_{part}") for part in ("size", "capacity"))
    return f"max by ({by}) ({size} / {limit})"


def rate(name: str, *conditions: str, by: str = "", suffix: Suffix = "") -> str:
    """Per second, as of the last few scrapes."""
    return _sum(f"rate({select(name, *conditions, suffix=suffix)}[{RATE}])", by)


def increase(name: str, *conditions: str, by: str = "", over: str = WINDOW) -> str:
    """How many in a window. A series that is new in it began at zero, which Prometheus's own
    ``increase`` does not know: it would miss the first of what happens rarely."""
    return gained(select(name, *conditions), over, by)


def gained(selector: str, over: str, by: str = "") -> str:
    """See :func:`increase`."""
    before_it = f"{selector} offset {over}"
    went_on = f"increase({selector}[{over}]) and {before_it}"
    began = f"max_over_time({selector}[{over}]) unless {before_it}"
    return _sum(f"({went_on}) or ({began})", by)


def before(expression: str, ago: str = WINDOW) -> str:
    """What ``expression`` was so long ago."""
    return f"last_over_time(({expression})[1s:1s] offset {ago})"


def present(name: str, *conditions: str, by: str = "") -> str:
    """What is now. What all processes over one store tell alike is counted once."""
    metric = METRICS[name]
    selector = select(name, *conditions)
    if metric.teller == "fleet":
        alike = ", ".join(metric.attributes)
        selector = f"max by ({alike}) ({selector})"
    return _sum(selector, by)


def quantile(name: str, part: float, *conditions: str, by: str = "", over: str = "") -> str:
    """The value below which ``part`` of a histogram lies; ``over``: of what is rare, in a window
    such as that of :func:`increase`."""
    labels = f"le, {by}" if by else "le"
    buckets = select(name, *conditions, suffix="_bucket")
    if over:
        return f"histogram_quantile({part}, {gained(buckets, over, labels)})"
    return f"histogram_quantile({part}, sum by ({labels}) (rate({buckets}[{RATE}])))"


def ratio(part: str, whole: str) -> str:
    """A share; where nothing happened, nothing is shown."""
    return f"{part} / ({whole} > 0)"


def share(part: str, whole: str) -> str:
    """A share of each group; a group without any part has none of it."""
    return f"({part} or {whole} * 0) / ({whole} > 0)"


def or_zero(expression: str) -> str:
    """What is absent until it first happens counts as zero."""
    return f"{expression} or (vector(0) unless on () {expression})"


def label_values(name: str, label: str) -> str:
    """The query of a template variable: what an attribute says."""
    metric = METRICS[name]
    suffix = "_count" if metric.kind == "histogram" else ""
    conditions = ",".join(CHOSEN)
    return f"label_values({metric.prometheus}{suffix}{{{conditions}}}, {label})"


def _sum(expression: str, by: str) -> str:
    return f"sum by ({by}) ({expression})" if by else f"sum({expression})"


CHOSEN_FAILURES = (
    "tenant = ${tenant:sqlstring} AND $__timeFilter(created)"
    " AND stage IN (${stage:sqlstring}) AND coalesce(decisive_system, '') IN (${system:sqlstring})"
)
CHOSEN_CASE = "tenant = ${tenant:sqlstring} AND case_id = ${case:sqlstring}"


def of_failures(columns: str, rest: str) -> str:
    """A statement about the failures of the tenant, time, stages and systems that are chosen."""
    return _one_line(columns, f"FROM memtrace_report.failure WHERE {CHOSEN_FAILURES}", rest)


def of_case(columns: str, view: str, rest: str) -> str:
    """A statement about the case that is chosen."""
    return _one_line(columns, f"FROM memtrace_report.{view} WHERE {CHOSEN_CASE}", rest)


def _one_line(*parts: str) -> str:
    return " ".join(line.strip() for part in parts for line in part.strip().splitlines())


TENANTS = "SELECT DISTINCT tenant FROM memtrace_report.failure ORDER BY 1"
SYSTEMS = (
    "SELECT DISTINCT coalesce(decisive_system, '') AS __value,"
    " coalesce(nullif(decisive_system, ''), 'none named') AS __text FROM memtrace_report.failure"
    " WHERE tenant = ${tenant:sqlstring} UNION SELECT '', 'none named' ORDER BY 1"
)
"""Never empty, so that all of them are a list that SQL allows."""
CASES = of_failures(
    """
    SELECT case_id AS __value, to_char(created AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS')
      || ' UTC, ' || error_type AS __text
    """,
    "ORDER BY created DESC LIMIT 200",
)
FAILURES = of_failures(
    """
    SELECT created, case_id, stage, error_type, score, graph_id, answer_service, decisive_system,
      decisive_service, decisive_operation, method, explanation, case_trace, answer_trace,
      answer_span, decisive_trace, decisive_span
    """,
    "ORDER BY created DESC LIMIT 200",
)
DECISIVE = of_failures(
    """
    SELECT coalesce(decisive_service, '') AS service,
      coalesce(decisive_operation, 'none named') AS operation,
      coalesce(decisive_system, '') AS system, stage, error_type, count(*) AS failures,
      (count(*) / sum(count(*)) OVER ())::float8 AS share, max(created) AS last_seen
    """,
    "GROUP BY 1, 2, 3, 4, 5 ORDER BY failures DESC LIMIT 50",
)
SERVICES = of_failures(
    """
    SELECT coalesce(decisive_service, answer_service, '') AS service, count(*) AS failures,
      count(*) FILTER (WHERE is_memory_fault) AS memory_faults,
      count(DISTINCT graph_id) AS graphs, max(created) AS last_seen
    """,
    "GROUP BY 1 ORDER BY memory_faults DESC, failures DESC LIMIT 50",
)
BY_TYPE = of_failures(
    "SELECT stage || ': ' || error_type AS error, count(*) AS failures",
    "GROUP BY 1 ORDER BY 2 DESC",
)
NODES = of_case(
    """
    SELECT position::text AS id, operation AS title, kind || ' by ' || service AS subtitle,
      CASE WHEN is_decisive THEN 'DECISIVE: ' ELSE '' END || outcome AS mainstat,
      to_char(at AT TIME ZONE 'UTC', 'MM-DD HH24:MI:SS') AS secondarystat,
      CASE WHEN is_decisive THEN 'red' WHEN outcome = 'kept' THEN 'green'
        WHEN outcome = 'unknown' THEN 'gray' ELSE 'orange' END AS color,
      record AS detail__record, system AS detail__system, trace AS detail__trace,
      span AS detail__span
    """,
    "hop",
    "ORDER BY position",
)
EDGES = of_case(
    """
    SELECT source || '-' || target AS id, source::text AS source, target::text AS target,
      coalesce(carries, '') AS mainstat
    """,
    "hop_edge",
    "ORDER BY target, source",
)
PATH = of_case(
    """
    SELECT position AS hop, at, kind, outcome, CASE WHEN is_decisive THEN 'decisive' ELSE '' END
      AS decisive, service, system, operation, record, says, trace, span
    """,
    "hop",
    "ORDER BY position",
)
UNDELIVERED = _one_line(
    """
    SELECT case_id, revision, destination, state, signal, attempts, not_before AS next_attempt,
      last_error
    FROM memtrace_report.delivery WHERE tenant = ${tenant:sqlstring} AND state <> 'delivered'
    ORDER BY state, not_before LIMIT 200
    """
)
