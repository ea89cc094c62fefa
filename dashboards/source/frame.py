"""What the dashboards have in common: variables, links from one to the other, annotations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

from dashboards.source import queries
from dashboards.source.panels import GRAFANA, POSTGRESQL, PROMETHEUS

MEMORY_HEALTH = "memtrace-memory-health"
FAILURES = "memtrace-failures"
PIPELINE = "memtrace-pipeline"
TAG = "memtrace"
ANY = ".+"
"""Of a variable that narrows what is always there."""
ALSO_NONE = ".*"
"""Of a variable that narrows an attribute that may be absent."""


@dataclass(frozen=True)
class Addresses:
    """Where a browser finds the explorer and Jaeger: links start with these URLs."""

    explorer: str = "http://localhost:4319"
    jaeger: str = "http://localhost:16686"


def board(uid: str, title: str, description: str, since: str) -> dashboard.Dashboard:
    """A dashboard that shows from ``since`` (such as ``now-24h``) until now."""
    return (
        dashboard.Dashboard(title)
        .uid(uid)
        .description(description)
        .tags([TAG])
        .timezone("browser")
        .readonly()
        .refresh("30s")
        .time(since, "now")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .link(
            dashboard.DashboardLink("Memory health, failures, pipeline")
            .type(DashboardLinkType.DASHBOARDS)
            .tags([TAG])
            .keep_time(True)
            .include_vars(False)
        )
        .link(_elsewhere("Explorer", "${explorer:raw}/", "How a memory came to say what it says"))
        .link(_elsewhere("Jaeger", "${jaeger:raw}/search", "The traces themselves"))
        .annotation(_deploys())
        .annotation(_restarts())
        .with_variable(
            dashboard.DatasourceVariable("prometheus_datasource")
            .label("Prometheus data source")
            .type("prometheus")
            .current(VariableOption(False, "Prometheus", "prometheus"))
        )
    )


def with_addresses(page: dashboard.Dashboard, addresses: Addresses) -> dashboard.Dashboard:
    """Constants that links use: a link that came from elsewhere cannot change them."""
    for name, url in (("explorer", addresses.explorer), ("jaeger", addresses.jaeger)):
        page.with_variable(dashboard.ConstantVariable(name).value(url))
    return page


def instances() -> tuple[dashboard.QueryVariable, dashboard.QueryVariable]:
    """Which processes are meant, by the labels that Prometheus gives them."""
    job = _of_prometheus("job", "Job", "label_values(memtrace_receiver_accepted_total, job)", ANY)
    instance = _of_prometheus(
        "instance",
        "Instance",
        'label_values(process_start_time_seconds{job=~"$job"}, instance)',
        ANY,
    )
    return job, instance


def smoothed() -> dashboard.IntervalVariable:
    """Over how long rates of rare events are taken."""
    return (
        dashboard.IntervalVariable("smoothed")
        .label("Rates over")
        .values("10m,1h,6h,1d,7d")
        .current(VariableOption(True, "1h", "1h"))
    )


def system_and_step() -> tuple[dashboard.QueryVariable, dashboard.QueryVariable]:
    """Which memory systems and steps are meant."""
    system = queries.label_values("memtrace.operations", "system")
    step = queries.label_values("memtrace.operations", "step")
    return (
        _of_prometheus("system", "Memory system", system, ALSO_NONE),
        _of_prometheus("step", "Step", step, ALSO_NONE),
    )


def of_postgresql(
    name: str, label: str, sql: str, *, several: bool = False
) -> dashboard.QueryVariable:
    """A variable whose values a statement finds; ``several``: any of them, at first all."""
    variable = (
        dashboard.QueryVariable(name)
        .label(label)
        .datasource(POSTGRESQL)
        .query(sql)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
    )
    return variable.multi(True).include_all(True).current(_ALL) if several else variable


def one_of(name: str, label: str, values: Iterable[str]) -> dashboard.CustomVariable:
    """A variable over a closed set: any of them, at first all."""
    variable = dashboard.CustomVariable(name).label(label).values(",".join(values))
    return variable.multi(True).include_all(True).current(_ALL)


def postgresql() -> dashboard.DatasourceVariable:
    return (
        dashboard.DatasourceVariable("postgresql_datasource")
        .label("PostgreSQL data source")
        .type("grafana-postgresql-datasource")
        .current(VariableOption(False, "PostgreSQL", "postgresql"))
    )


_ALL = VariableOption(True, "All", "$__all")


def _of_prometheus(name: str, label: str, query: str, every: str) -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .datasource(PROMETHEUS)
        .query(query)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(every)
        .current(_ALL)
    )


def _elsewhere(title: str, url: str, tooltip: str) -> dashboard.DashboardLink:
    link = dashboard.DashboardLink(title).type(DashboardLinkType.LINK).url(url)
    return link.tooltip(tooltip).icon("external link").target_blank(True)


def _deploys() -> dashboard.AnnotationQuery:
    """Annotations that a deployment writes into Grafana with the tag ``deploy``."""
    tagged = dashboard.AnnotationTarget().type("tags").tags(["deploy"]).match_any(True).limit(100)
    annotation = dashboard.AnnotationQuery().name("Deploys (annotations tagged deploy)")
    return annotation.datasource(GRAFANA).enable(True).icon_color("blue").target(tagged)


def _restarts() -> dashboard.AnnotationQuery:
    """A process of ours that started: a new version, or one that ended."""
    started = queries.process("process_start_time_seconds")
    annotation = dashboard.AnnotationQuery().name("memtrace processes that started")
    return (
        annotation.datasource(PROMETHEUS)
        .enable(True)
        .icon_color("purple")
        .expr(f"changes({started}[{queries.RATE}]) > 0")
    )
