"""The alerts fire when they must and rest when all is well, in Prometheus's own rule engine."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from memtrace_collector.telemetry.catalog import METRICS
from tests import components
from tests.dashboards.grafana import ROOT
from tests.dashboards.sources import Monitored

FILE = ROOT / "dashboards" / "prometheus" / "alerts.yml"
RULES = [rule for group in yaml.safe_load(FILE.read_text())["groups"] for rule in group["rules"]]
WHERE = {"job": "memtrace", "instance": "m:4319"}
VERDICTS = "memtrace_verdicts_stored_total"


@dataclass(frozen=True)
class Case:
    """``series``: samples a minute apart, as promtool writes them; ``at``: when the alert is
    looked for; ``fires``: labels it has then, None when it must rest."""

    alert: str
    series: Mapping[str, str]
    at: str
    fires: Mapping[str, str] | None

    def __str__(self) -> str:
        return f"{self.alert} {'fires' if self.fires is not None else 'rests'}"


def series(name: str, **labels: str) -> str:
    said = ",".join(f'{key}="{value}"' for key, value in {**WHERE, **labels}.items())
    return f"{name}{{{said}}}"


def refused(code: str) -> str:
    return series("memtrace_receiver_refused_total", transport="grpc", code=code)


def verdicts(stage: str) -> str:
    return series(VERDICTS, stage=stage, type="t", system="s", method="rules")


def found(kind: str) -> str:
    return series("memtrace_invariants_found_total", kind=kind)


def lost(what: str) -> str:
    where = {"job": "otelcol", "exporter": "otlp_http/jaeger", "url_path": "/v1/traces"}
    return series(f"otelcol_exporter_send_failed_{what}", **where)


def queue(part: str, exporter: str) -> str:
    where = {"job": "otelcol", "exporter": exporter, "data_type": "traces"}
    return series(f"otelcol_exporter_queue_{part}", **where)


FOREVER = "x2000"
WAITING = series("memtrace_outbox_age_seconds")
CASES = [
    Case("MemtraceDown", {series("up"): "1x5 0x20"}, "12m", WHERE),
    Case("MemtraceDown", {series("up"): "1x5 0 0 1x20"}, "12m", None),
    Case("MemtraceDown", {series("up", job="otelcol"): "0x20"}, "12m", {**WHERE, "job": "otelcol"}),
    Case("MemtraceDown", {series("up", job="agent"): "0x20"}, "12m", None),
    Case(
        "MemtraceCollectorLosesData",
        {lost("spans"): "_x5 1x5"},
        "8m",
        {"exporter": "otlp_http/jaeger"},
    ),
    Case(
        "MemtraceCollectorLosesData",
        {lost("log_records"): "_x5 1x5"},
        "8m",
        {"exporter": "otlp_http/jaeger"},
    ),
    Case("MemtraceCollectorLosesData", {lost("spans"): "3x60"}, "50m", None),
    Case(
        "MemtraceCollectorQueueFills",
        {
            queue("size", "otlp_http/jaeger"): "600x20",
            queue("capacity", "otlp_http/jaeger"): "1000x20",
            queue("size", "otlp_http/memtrace"): "600x20",
            queue("capacity", "otlp_http/memtrace"): "2000x20",
        },
        "12m",
        {"exporter": "otlp_http/jaeger"},
    ),
    Case(
        "MemtraceRefusesData",
        {refused("UNAVAILABLE"): "0+1x30"},
        "20m",
        {"transport": "grpc", "code": "UNAVAILABLE"},
    ),
    Case("MemtraceRefusesData", {refused("INVALID_ARGUMENT"): "0+1x30"}, "20m", None),
    Case("MemtraceRefusesData", {refused("UNAVAILABLE"): "7x30"}, "20m", None),
    Case(
        "MemtraceDiskNearlyFull",
        {series("memtrace_log_refused_total", reason="disk_nearly_full"): "0x5 1x5"},
        "6m",
        {},
    ),
    Case(
        "MemtraceDiskNearlyFull",
        {series("memtrace_log_refused_total", reason="overloaded"): "0x5 1x5"},
        "6m",
        None,
    ),
    Case(
        "MemtraceRejectsSpans",
        {series("memtrace_receiver_rejected_total", signal="traces"): "0x5 3x5"},
        "8m",
        {"signal": "traces"},
    ),
    Case(
        "MemtraceLogLost",
        {series("memtrace_log_missed_total", reader="projection"): "0x5 1x5"},
        "8m",
        {"reader": "projection"},
    ),
    Case(
        "MemtraceProjectionStuck",
        {series("memtrace_projection_delay_seconds"): "0+60x40"},
        "30m",
        {"instance": "m:4319"},
    ),
    Case(
        "MemtraceProjectionStuck",
        {series("memtrace_projection_delay_seconds"): "0 400 800 0x40"},
        "30m",
        None,
    ),
    Case(
        "MemtraceQuarantined",
        {series("memtrace_projection_quarantined_total", kind="poison"): "_x5 1x5"},
        "8m",
        {"kind": "poison"},
    ),
    Case(
        "MemtraceQuarantined",
        {series("memtrace_projection_quarantined_total", kind="poison"): f"4{FOREVER}"},
        "5h",
        None,
    ),
    Case("MemtraceCasesWait", {series("memtrace_cases_age_seconds"): "0+60x90"}, "80m", {}),
    Case("MemtraceCasesWait", {series("memtrace_cases_age_seconds"): "0x90"}, "80m", None),
    Case(
        "MemtraceVerdictsNotDelivered",
        {series("memtrace_outbox_age_seconds"): "5000x20"},
        "15m",
        {},
    ),
    Case(
        "MemtraceVerdictsNotDelivered", {series("memtrace_outbox_age_seconds"): "9x20"}, "15m", None
    ),
    Case(
        "MemtraceVerdictsAbandoned",
        {series("memtrace_outbox_abandoned_total"): "0x5 1x5"},
        "8m",
        {},
    ),
    Case(
        "MemtraceVerdictsNotVisible",
        {series("memtrace_readback_total", result="missing"): "0x5 1x30"},
        "25m",
        {},
    ),
    Case(
        "MemtraceVerdictsNotVisible",
        {series("memtrace_readback_total", result="visible"): "0+5x30"},
        "25m",
        None,
    ),
    Case(
        "MemtraceModelBudgetStopped",
        {series("memtrace_model_stopped_total", reason="run budget"): "0x5 1x5"},
        "8m",
        {"reason": "run budget"},
    ),
    Case(
        "MemoryFaultsJump",
        {verdicts("update"): "0x700 0+1x400", verdicts("not_memory"): f"0+1{FOREVER}"},
        "1100m",
        {},
    ),
    Case(
        "MemoryFaultsJump",
        {verdicts("update"): f"0+1{FOREVER}", verdicts("not_memory"): f"0+1{FOREVER}"},
        "1100m",
        None,
    ),
    Case(
        "MemoryInvariantsJump",
        {found("stale"): "0+0.1x1800 180+10x30"},
        "1829m",
        {"kind": "stale"},
    ),
    Case("MemoryInvariantsJump", {found("stale"): f"0+0.5{FOREVER}"}, "1829m", None),
    Case("MemoryInvariantsJump", {found("stale"): "0+1x60"}, "60m", None),
    Case("MemoryLeaksBetweenOwners", {found("foreign"): "0x5 1x5"}, "8m", {}),
    Case("MemoryLeaksBetweenOwners", {found("stale"): "0x5 1x5"}, "8m", None),
]


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    components.prometheus()
    return subprocess.run(
        ["promtool", *arguments], capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_alert(case: Case, tmp_path: Path) -> None:
    rule = next(each for each in RULES if each["alert"] == case.alert)
    rules, test = tmp_path / "rules.yml", tmp_path / "test.yml"
    bare = {key: value for key, value in rule.items() if key != "annotations"}
    rules.write_text(yaml.safe_dump({"groups": [{"name": "one", "rules": [bare]}]}))
    fired = [] if case.fires is None else [{"exp_labels": {**rule["labels"], **case.fires}}]
    document = {
        "rule_files": [str(rules)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    {"series": name, "values": values} for name, values in case.series.items()
                ],
                "alert_rule_test": [
                    {"eval_time": case.at, "alertname": case.alert, "exp_alerts": fired}
                ],
            }
        ],
    }
    test.write_text(yaml.safe_dump(document))
    done = promtool("test", "rules", str(test))
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_tried() -> None:
    assert {case.alert for case in CASES if case.fires is not None} == {
        rule["alert"] for rule in RULES
    }


def test_the_file_is_one_of_prometheus() -> None:
    done = promtool("check", "rules", str(FILE))
    assert done.returncode == 0 and f"{len(RULES)} rules found" in done.stdout, done.stderr


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_says_what_it_means_and_what_to_do_first(rule: dict[str, Any]) -> None:
    said = rule["annotations"]
    assert set(said) == {"summary", "description", "action"}
    assert rule["labels"]["severity"] in ("critical", "warning")
    known = {metric.prometheus for metric in METRICS.values()}
    used = set(re.findall(r"memtrace_[a-z_]+", rule["expr"]))
    assert used <= known


def test_a_running_prometheus_takes_them_and_all_is_well_but_what_is_not(
    monitored: Monitored,
) -> None:
    groups = monitored.rules()
    states = {rule["name"]: rule for group in groups for rule in group["rules"]}
    assert {rule["alert"] for rule in RULES} == set(states)
    assert {rule["health"] for rule in states.values()} <= {"ok", "unknown"}
    firing = {name for name, rule in states.items() if rule["state"] == "firing"}
    assert firing <= {"MemoryInvariantsJump", "MemoryLeaksBetweenOwners"}
