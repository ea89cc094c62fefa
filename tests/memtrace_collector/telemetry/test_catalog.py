"""The catalogue has every metric that the code reports, and its sets are those of the code."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, get_args

import pytest

import memtrace_collector
from memtrace_collector.attribution.agent import ending
from memtrace_collector.attribution.replay import outcome
from memtrace_collector.attribution.verdict import STAGE_OF, STAGES
from memtrace_collector.exporter.delivery import Outcome
from memtrace_collector.graph import invariants, resolution
from memtrace_collector.log import format as log_format
from memtrace_collector.log.retention import Reason
from memtrace_collector.receiver.refusal import Code
from memtrace_collector.settings.attribution import METHODS
from memtrace_collector.store.queue import STATES
from memtrace_collector.telemetry import attribute_values as values
from memtrace_collector.telemetry.attribute_values import Names
from memtrace_collector.telemetry.catalog import METRICS
from memtrace_collector.telemetry.metric import Metric
from memtrace_otel import semconv

CODE = Path(memtrace_collector.__file__).parent
NAME = re.compile(r"memtrace(\.[a-z][a-z0-9]*(_[a-z0-9]+)*)+")
UNIT_WORDS = {"bytes", "seconds", "ms", "total", "count", "ratio", "percent"}
UCUM = re.compile(r"1|s|By|\{[A-Za-z]+\}")


class Report(NamedTuple):
    """A call that names a metric. ``attributes``: None where they are not spelled out."""

    where: str
    name: str
    attributes: frozenset[str] | None


def reports() -> Iterator[Report]:
    for path in sorted(CODE.rglob("*.py")):
        if path.name != "catalog.py":
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Call):
                    yield from reported(f"{path.relative_to(CODE)}:{node.lineno}", node)


def reported(where: str, call: ast.Call) -> Iterator[Report]:
    names = [name for each in call.args[:2] if (name := metric_name(each))]
    if not names:
        return
    what = getattr(call.func, "attr", getattr(call.func, "id", ""))
    given = [each.arg for each in call.keywords]
    is_plain = what in {"add", "record", "merge"} and None not in given
    attributes = frozenset(each for each in given if each) if is_plain else None
    for name in names:
        yield Report(where, name, attributes)


def metric_name(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value if NAME.fullmatch(node.value) else ""
    return ""


NOT_METRICS = {"memtrace.slices", "memtrace.attribution"}
REPORTS = [each for each in reports() if each.name not in NOT_METRICS]


@pytest.mark.parametrize("report", REPORTS, ids=lambda each: f"{each.where} {each.name}")
def test_what_the_code_reports_is_in_the_catalogue(report: Report) -> None:
    metric = METRICS[report.name]
    if report.attributes is not None:
        assert report.attributes == set(metric.attributes)


def test_every_metric_of_the_catalogue_is_reported() -> None:
    assert set(METRICS) == {each.name for each in REPORTS}


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda each: each.name)
def test_names_units_and_descriptions_follow_the_conventions(metric: Metric) -> None:
    assert NAME.fullmatch(metric.name), "dots between, underscores within"
    assert not UNIT_WORDS & set(re.split(r"[._]", metric.name)), "no unit in a name"
    assert UCUM.fullmatch(metric.unit)
    assert metric.description[0].isupper() and metric.description.endswith(".")
    assert all(re.fullmatch(r"[a-z]+", name) for name in metric.attributes)
    assert bool(metric.bounds) == (metric.kind == "histogram")
    assert list(metric.bounds) == sorted(set(metric.bounds))


def test_no_two_metrics_are_one_family_in_prometheus() -> None:
    families = Counter(each.prometheus.removesuffix("_total") for each in METRICS.values())
    assert max(families.values()) == 1


def test_every_attribute_is_bounded() -> None:
    for metric in METRICS.values():
        for name, allowed in metric.attributes.items():
            assert isinstance(allowed, (frozenset, Names)), f"{metric.name} {name}"
            assert (name == "system") == isinstance(allowed, Names)
            assert not isinstance(allowed, frozenset) or 1 < len(allowed) <= 32


@pytest.mark.parametrize(
    ("said", "defined"),
    [
        (values.STEP, semconv.SPAN_NAMES),
        (values.STAGE, STAGES),
        (values.TYPE, STAGE_OF),
        (values.METHOD - {"human"}, set(METHODS) - {"auto"}),
        (values.MISSING, get_args(ending.Missing)),
        (values.INVARIANT, invariants.KINDS),
        (
            values.LINEAGE,
            [
                resolution.COMPLETE,
                resolution.INEXACT,
                resolution.AMBIGUOUS,
                resolution.INCOMPLETE,
            ],
        ),
        (values.DELIVERY, get_args(Outcome)),
        (values.REPLAY, outcome.RESULTS),
        (values.CODE, [code.name for code in Code]),
        (values.SIGNAL, get_args(log_format.Signal)),
        (METRICS["memtrace.cases"].attributes["state"], STATES),
        (METRICS["memtrace.log.expired"].attributes["reason"], get_args(Reason)),
    ],
)
def test_closed_sets_are_those_of_the_code(
    said: frozenset[str], defined: dict[str, object] | list[str]
) -> None:
    assert said == set(defined)
