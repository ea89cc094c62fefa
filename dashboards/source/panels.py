"""Panels as these dashboards use them, over the builders of Grafana's SDK.

Every panel says what it means and what to do (``description``), in which unit, and what it means
that there is nothing to show (``empty``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import (
    bargauge,
    common,
    dashboard,
    nodegraph,
    prometheus,
    stat,
    table,
    timeseries,
)
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.runtime import UnknownDataquery
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models import common as options
from grafana_foundation_sdk.models.dashboard import (
    DataSourceRef,
    DataTransformerConfig,
    DynamicConfigValue,
    Threshold,
    ThresholdsMode,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

PROMETHEUS = DataSourceRef("prometheus", "${prometheus_datasource}")
POSTGRESQL = DataSourceRef("grafana-postgresql-datasource", "${postgresql_datasource}")
GRAFANA = DataSourceRef("grafana", "-- Grafana --")

_AMBER, _RED = "orange", "red"


class Sql(Builder[Dataquery]):
    """A query of PostgreSQL, whose data source the SDK has no model of."""

    def __init__(self, sql: str, ref_id: str = "A") -> None:
        self._query = UnknownDataquery(
            {
                "refId": ref_id,
                "datasource": POSTGRESQL.to_json(),
                "editorMode": "code",
                "format": "table",
                "rawQuery": True,
                "rawSql": sql,
            }
        )

    def build(self) -> Dataquery:
        return self._query


def over_time(legend: str, expression: str, *, exemplars: bool = False) -> prometheus.Dataquery:
    """A query of one value per step."""
    query = prometheus.Dataquery().expr(expression).legend_format(legend).range()
    return query.datasource(PROMETHEUS.to_json()).exemplar(exemplars)


def at_the_end(legend: str, expression: str) -> prometheus.Dataquery:
    """A query of one value: that of the end of the window."""
    query = prometheus.Dataquery().expr(expression).legend_format(legend).instant()
    return query.datasource(PROMETHEUS.to_json())


def as_rows(expression: str) -> prometheus.Dataquery:
    """A query of one row per set of labels."""
    return at_the_end("", expression).format(PromQueryFormat.TABLE)


def lines(
    title: str,
    description: str,
    unit: str,
    *targets: Builder[Dataquery],
    empty: str = "none in this window",
    stacked: bool = False,
    width: int = 8,
    limits: Sequence[tuple[float, str]] = (),
) -> timeseries.Panel:
    """Lines over time; ``stacked``: as areas that add up."""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(f"{description} {_nothing(empty)}")
        .datasource(PROMETHEUS)
        .unit(unit)
        .min(0)
        .no_value(empty)
        .span(width)
        .height(8)
        .line_width(1)
        .fill_opacity(25 if stacked else 8)
        .span_nulls(False)
        .show_points(options.VisibilityMode.AUTO)
        .tooltip(
            common.VizTooltipOptions()
            .mode(options.TooltipDisplayMode.MULTI)
            .sort(options.SortOrder.DESCENDING)
        )
        .legend(
            common.VizLegendOptions()
            .display_mode(options.LegendDisplayMode.TABLE)
            .placement(options.LegendPlacement.BOTTOM)
            .calcs(["lastNotNull", "max"])
            .show_legend(True)
        )
        .targets(_named(targets))
    )
    if stacked:
        panel.stacking(common.StackingConfig().mode(options.StackingMode.NORMAL))
    if limits:
        panel.thresholds(_thresholds(limits))
        panel.thresholds_style(
            common.GraphThresholdsStyleConfig().mode(options.GraphTresholdsStyleMode.DASHED)
        )
    return panel


def number(
    title: str,
    description: str,
    unit: str,
    *targets: Builder[Dataquery],
    empty: str,
    limits: Sequence[tuple[float, str]] = (),
    width: int = 4,
) -> stat.Panel:
    """One value, or one per series, coloured from each of ``limits`` on."""
    return (
        stat.Panel()
        .title(title)
        .description(f"{description} {_nothing(empty)}")
        .datasource(PROMETHEUS)
        .unit(unit)
        .no_value(empty)
        .span(width)
        .height(4)
        .thresholds(_thresholds(limits))
        .color_mode(options.BigValueColorMode.VALUE)
        .graph_mode(options.BigValueGraphMode.NONE)
        .text_mode(
            options.BigValueTextMode.VALUE_AND_NAME
            if len(targets) > 1
            else options.BigValueTextMode.AUTO
        )
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .targets(_named(targets))
    )


def bars(
    title: str, description: str, unit: str, *targets: Builder[Dataquery], empty: str, width: int
) -> bargauge.Panel:
    """One bar per series, or per row of a query of PostgreSQL."""
    is_sql = any(isinstance(target, Sql) for target in targets)
    return (
        bargauge.Panel()
        .title(title)
        .description(f"{description} {_nothing(empty)}")
        .datasource(POSTGRESQL if is_sql else PROMETHEUS)
        .unit(unit)
        .min(0)
        .no_value(empty)
        .span(width)
        .height(8)
        .orientation(options.VizOrientation.HORIZONTAL)
        .display_mode(options.BarGaugeDisplayMode.BASIC)
        .value_mode(options.BarGaugeValueMode.TEXT)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(is_sql))
        .targets(_named(targets))
    )


def rows(
    title: str,
    description: str,
    *targets: Builder[Dataquery],
    empty: str,
    columns: Mapping[str, Column],
    width: int = 24,
    height: int = 9,
    transformations: Sequence[DataTransformerConfig] = (),
) -> table.Panel:
    """A table; what is no column of ``columns`` is hidden, and can be used in links."""
    is_sql = any(isinstance(target, Sql) for target in targets)
    panel = (
        table.Panel()
        .title(title)
        .description(f"{description} {_nothing(empty)}")
        .datasource(POSTGRESQL if is_sql else PROMETHEUS)
        .unit("none")
        .no_value(empty)
        .span(width)
        .height(height)
        .show_header(True)
        .cell_height(options.TableCellHeight.SM)
        .targets(_named(targets))
        .transformations(list(transformations))
    )
    for name, column in columns.items():
        panel.override_by_name(name, column.properties())
    return panel


def evolution(
    title: str,
    description: str,
    nodes: str,
    edges: str,
    *,
    empty: str,
    links: Sequence[tuple[str, str]],
    width: int,
) -> nodegraph.Panel:
    """A graph of nodes and edges; a node's menu has the links."""
    return (
        nodegraph.Panel()
        .title(title)
        .description(f"{description} {_nothing(empty)}")
        .datasource(POSTGRESQL)
        .no_value(empty)
        .span(width)
        .height(14)
        .targets([Sql(nodes, "nodes"), Sql(edges, "edges")])
        .nodes(nodegraph.NodeOptions())
        .edges(nodegraph.EdgeOptions())
        .override_by_name("id", [_links(links)])
    )


@dataclass(frozen=True)
class Column:
    """How a column of a table is shown.

    ``title``: its head, empty to hide it. ``link``: title and URL of the link of each cell.
    """

    title: str
    unit: str = ""
    width: int = 0
    link: tuple[str, str] | None = None
    limits: Sequence[tuple[float, str]] = ()

    def properties(self) -> list[DynamicConfigValue]:
        if not self.title:
            return [DynamicConfigValue("custom.hidden", True)]
        found = [DynamicConfigValue("displayName", self.title)]
        if self.unit:
            found.append(DynamicConfigValue("unit", self.unit))
        if self.width:
            found.append(DynamicConfigValue("custom.width", self.width))
        if self.link:
            found.append(_links([self.link]))
        if self.limits:
            found.append(DynamicConfigValue("thresholds", _thresholds(self.limits).build()))
            cell = {"type": options.TableCellDisplayMode.COLOR_TEXT.value}
            found.append(DynamicConfigValue("custom.cellOptions", cell))
        return found


def _links(links: Sequence[tuple[str, str]]) -> DynamicConfigValue:
    return DynamicConfigValue(
        "links",
        [
            {"title": title, "url": url, "targetBlank": not url.startswith("/d/")}
            for title, url in links
        ],
    )


def _named(targets: Sequence[Builder[Dataquery]]) -> list[Builder[Dataquery]]:
    """Each with a letter of its own, by which transformations and alerts refer to it."""
    for letter, target in zip("ABCDEFGH", targets):
        if isinstance(target, prometheus.Dataquery):
            target.ref_id(letter)
    return list(targets)


def _thresholds(limits: Sequence[tuple[float, str]]) -> dashboard.ThresholdsConfig:
    steps = [Threshold(None, "green" if limits else "text")]
    steps += [Threshold(value, color) for value, color in limits]
    return dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps)


def amber_red(amber: float, red: float) -> tuple[tuple[float, str], tuple[float, str]]:
    """Limits from which a value is worth a look, and from which somebody must act."""
    return (amber, _AMBER), (red, _RED)


def _nothing(empty: str) -> str:
    return f'"{empty}" means that there is nothing to show.'
