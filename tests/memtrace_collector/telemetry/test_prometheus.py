"""What is counted is shown as Prometheus reads it, within the catalogue whatever is reported."""

from __future__ import annotations

import logging
import shutil
import subprocess
from collections.abc import Iterator

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from memtrace_collector.telemetry.attribute_values import MAX_SYSTEMS
from memtrace_collector.telemetry.catalog import METRICS
from memtrace_collector.telemetry.histograms import distribution
from memtrace_collector.telemetry.metrics import Exemplar
from memtrace_collector.telemetry.telemetry import Reading, Telemetry

OPEN_METRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
CASE_TRACE = Exemplar("ab" * 16, "cd" * 8)
VERDICT = {"stage": "update", "type": "overwritten", "system": "mem0", "method": "rules"}
SYSTEM_NAMES = {
    *("anna@example.org", "user:anna", "", "mem:mem0:4f0c@a", "x" * 65, 'a"b', "a\nb", "ключ"),
    *("4bf92f3577b34da6a3ce929d0e0e4736:00f067aa0ba902b7", "<script>"),
}


@pytest.fixture
def telemetry() -> Iterator[Telemetry]:
    made = Telemetry("test")
    yield made
    made.close()


def lines(telemetry: Telemetry, name: str, accept: str = "") -> list[str]:
    text = telemetry.render(accept)[0].decode()
    return [each for each in text.splitlines() if each.startswith(name)]


def test_a_counter_is_shown_under_its_prometheus_name(telemetry: Telemetry) -> None:
    telemetry.add("memtrace.operations", 2, system="mem0", step="create")
    telemetry.add("memtrace.operations", 1, system="mem0", step="create")
    (shown,) = lines(telemetry, "memtrace_operations_total{")
    assert shown == 'memtrace_operations_total{step="create",system="mem0"} 3.0'


def test_a_counter_with_few_sets_of_attributes_starts_at_zero(telemetry: Telemetry) -> None:
    assert lines(telemetry, "memtrace_projection_failures_total ") == [
        "memtrace_projection_failures_total 0.0"
    ]
    assert len(lines(telemetry, "memtrace_invariants_found_total{")) == 6
    assert lines(telemetry, "memtrace_operations_total") == [], "its systems are not known yet"


def test_a_counter_never_shrinks(telemetry: Telemetry) -> None:
    telemetry.add("memtrace.log.commits", -1)
    assert lines(telemetry, "memtrace_log_commits_total ")[0].endswith(" 0.0")


def test_a_gauge_is_read_when_it_is_scraped(telemetry: Telemetry) -> None:
    depth = [3.0]
    telemetry.gauge("memtrace.outbox.depth", lambda: [Reading(depth[0], {"state": "pending"})])
    assert lines(telemetry, "memtrace_outbox_depth{")[0].endswith(" 3.0")
    depth[0] = 5
    assert lines(telemetry, "memtrace_outbox_depth{")[0].endswith(" 5.0")


def test_a_gauge_that_fails_costs_only_itself(telemetry: Telemetry) -> None:
    def fail() -> list[Reading]:
        raise OSError("the disk is gone")

    telemetry.gauge("memtrace.projection.lag", fail)
    telemetry.add("memtrace.log.commits", 1)
    assert lines(telemetry, "memtrace_projection_lag_bytes ") == []
    assert lines(telemetry, "memtrace_log_commits_total ")[0].endswith(" 1.0")


def test_a_histogram_has_recorded_and_gathered_values(telemetry: Telemetry) -> None:
    name, where = "memtrace.operation.duration", {"system": "mem0", "step": "add", "outcome": "ok"}
    telemetry.record(name, 0.003, **where)
    telemetry.merge(name, distribution(METRICS[name].bounds, [0.003, 0.02, 70.0]), **where)
    shown = {
        line.partition("{")[2].partition(",")[0]: float(line.rpartition(" ")[2])
        for line in lines(telemetry, "memtrace_operation_duration_seconds_bucket{")
    }
    assert shown['le="0.001"'] == 0
    assert (shown['le="0.005"'], shown['le="0.02"'], shown['le="60.0"']) == (2, 3, 3)
    assert shown['le="+Inf"'] == 4
    (total,) = lines(telemetry, "memtrace_operation_duration_seconds_sum{")
    assert float(total.rpartition(" ")[2]) == pytest.approx(70.026)


def test_exemplars_lead_to_the_case_trace_until_the_next(telemetry: Telemetry) -> None:
    telemetry.add("memtrace.verdicts.stored", 1, CASE_TRACE, **VERDICT)
    telemetry.record("memtrace.verdict.score", 0.95, CASE_TRACE, stage="update")
    for _ in range(2):  # also where a scrape was lost
        (stored,) = lines(telemetry, "memtrace_verdicts_stored_total{", OPEN_METRICS)
        assert f'# {{span_id="{CASE_TRACE.span_id}",trace_id="{CASE_TRACE.trace_id}"}}' in stored
        scores = lines(telemetry, "memtrace_verdict_score_bucket{", OPEN_METRICS)
        assert [CASE_TRACE.trace_id in each for each in scores] == [*9 * [False], True, False]
    telemetry.add("memtrace.verdicts.stored", 1, Exemplar("12" * 16, "34" * 8), **VERDICT)
    (stored,) = lines(telemetry, "memtrace_verdicts_stored_total{", OPEN_METRICS)
    assert "12" * 16 in stored


def test_the_format_is_the_one_that_is_asked_for(telemetry: Telemetry) -> None:
    telemetry.add("memtrace.verdicts.stored", 1, CASE_TRACE, **VERDICT)
    text, media_type = telemetry.render(OPEN_METRICS)
    assert media_type.startswith("application/openmetrics-text; version=1.0.0")
    families = {each.name: each for each in text_string_to_metric_families(text.decode())}
    (sample,) = families["memtrace_verdicts_stored"].samples
    assert sample.exemplar is not None
    text, media_type = telemetry.render("text/plain")
    assert media_type.startswith("text/plain; version=0.0.4")
    assert b"trace_id" not in text and b"# EOF" not in text


def test_what_is_not_in_the_catalogue_is_said_once_and_not_counted(
    telemetry: Telemetry, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        telemetry.add("memtrace.nothing", 1)
        telemetry.add("memtrace.operations", 1, system="mem0")
        telemetry.record("memtrace.operations", 1.0, system="mem0", step="add")
    assert lines(telemetry, "memtrace_nothing") == lines(telemetry, "memtrace_operations_") == []
    assert [record.levelno for record in caplog.records] == 2 * [logging.ERROR]


def test_values_beyond_the_catalogue_count_as_other(telemetry: Telemetry) -> None:
    telemetry.add("memtrace.projection.quarantined", 1, kind="user:anna")
    shown = lines(telemetry, "memtrace_projection_quarantined_total{")
    assert 'memtrace_projection_quarantined_total{kind="other"} 1.0' in shown
    assert not any("anna" in each for each in shown)


@pytest.mark.parametrize("accept", ["", OPEN_METRICS])
def test_names_that_senders_choose_stay_few_and_are_never_ids(
    telemetry: Telemetry, accept: str
) -> None:
    for name in sorted(SYSTEM_NAMES) + [f"system-{n}" for n in range(10 * MAX_SYSTEMS)]:
        telemetry.add("memtrace.operations", 1, system=name, step=name)
        telemetry.add("memtrace.retrieval.dropped", 1, system=name, reason=name)
    shown = lines(telemetry, "memtrace_operations_total{", accept)
    assert len(shown) == MAX_SYSTEMS + 2, "with unknown and other"
    assert all('step="other"' in each for each in shown)
    text = telemetry.render(accept)[0].decode()
    assert not [name for name in SYSTEM_NAMES if name and name in text]


@pytest.mark.skipif(not shutil.which("promtool"), reason="apt-get install prometheus")
def test_promtool_finds_nothing_to_say_against_any_metric(telemetry: Telemetry) -> None:
    for metric in METRICS.values():
        some = dict.fromkeys(metric.attributes, "mem0")
        if metric.kind == "counter":
            telemetry.add(metric.name, 1, **some)
        elif metric.kind == "histogram":
            telemetry.record(metric.name, 0.5, **some)
        else:
            telemetry.gauge(metric.name, lambda some=some: [Reading(1.0, some)])
    shown, _ = telemetry.render()
    assert all(f" {each.prometheus} ".encode() in shown for each in METRICS.values())
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=shown, capture_output=True, timeout=30, check=False
    )
    assert (checked.returncode, checked.stderr, checked.stdout) == (0, b"", b"")
