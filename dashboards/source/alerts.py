"""Alerts: what a person must act on, as rules of Prometheus.

Rules of Prometheus and not of Grafana: they are evaluated where the numbers are, also while Grafana
is away, are checked and tested by ``promtool``, and Grafana lists them all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from dashboards.source.queries import FAULT, LOSABLE, gained, lost_by_collector, queue_share, series

CRITICAL, WARNING = "critical", "warning"
PENDING = "memtrace.outbox.age"


@dataclass(frozen=True)
class Alert:
    """``means``: what is at stake. ``first``: what to do first. ``lasting``: how long it must
    hold before somebody is called."""

    name: str
    expression: str
    severity: str
    lasting: str
    summary: str
    means: str
    first: str

    def rule(self) -> dict[str, Any]:
        return {
            "alert": self.name,
            "expr": self.expression,
            "for": self.lasting,
            "labels": {"severity": self.severity, "service": "memtrace-otel"},
            "annotations": {
                "summary": self.summary,
                "description": self.means,
                "action": self.first,
            },
        }


def happened(name: str, *conditions: str, over: str, by: str = "") -> str:
    """More than nothing in the window, also when it is the first time ever."""
    return f"{gained(series(name, *conditions), over, by)} > 0"


def _share(window: str, offset: str = "") -> str:
    """Memory faults among the verdicts of a window."""
    faults = gained(series("memtrace.verdicts.stored", FAULT), window)
    found = gained(series("memtrace.verdicts.stored"), window)
    share = f"{faults} / {found}"
    return f"last_over_time(({share})[1s:1s] offset {offset})" if offset else f"({share})"


_DATA = (
    Alert(
        "MemtraceDown",
        'up{job=~"memtrace.*|otelcol"} == 0',
        CRITICAL,
        "5m",
        "{{ $labels.instance }} does not answer",
        "A memtrace process, or the Collector in front, is not running or cannot be reached:"
        " nothing is received, judged or shown by it. Collectors hold data back for as long as"
        " their queue allows; without one senders try again for minutes, then drop spans.",
        "Look at the last lines of its log and at its exit code; start it again.",
    ),
    Alert(
        "MemtraceRefusesData",
        happened(
            *("memtrace.receiver.refused", 'code=~"RESOURCE_EXHAUSTED|UNAVAILABLE"'),
            over="10m",
            by="transport, code",
        ),
        CRITICAL,
        "5m",
        "Requests are refused over {{ $labels.transport }} ({{ $labels.code }})",
        "memtrace cannot take what is sent. Senders try again for minutes, then drop spans: their"
        " graphs get gaps, and verdicts abstain.",
        "Open Pipeline, `Requests that the log did not take`: overloaded asks for a faster disk or"
        " one more process, disk_nearly_full for room, unavailable for a look at the log.",
    ),
    Alert(
        "MemtraceDiskNearlyFull",
        happened("memtrace.log.refused", 'reason="disk_nearly_full"', over="10m"),
        CRITICAL,
        "0m",
        "The log's disk is nearly full: requests are refused",
        "Below the reserved room nothing more is written, so that what is there stays readable.",
        "Free room on the log's disk, or lower `retention.log_bytes`; refusals end by themselves.",
    ),
    Alert(
        "MemtraceRejectsSpans",
        happened("memtrace.receiver.rejected", over="30m", by="signal"),
        WARNING,
        "0m",
        "Some {{ $labels.signal }} are rejected as malformed",
        "A sender exports what OTLP does not allow. It was told so, and does not send it again.",
        "Find the sender by the warnings of its exporter (`partial_success`) and bring its SDK up"
        " to date.",
    ),
    Alert(
        "MemtraceLogLost",
        happened("memtrace.log.missed", over="1h", by="reader"),
        CRITICAL,
        "0m",
        "Parts of the log were deleted before {{ $labels.reader }} read them",
        "Retention took away what was not processed: the graphs have a gap for good.",
        "Raise `retention.log_bytes`, then look at why {{ $labels.reader }} is behind.",
    ),
    Alert(
        "MemtraceProjectionStuck",
        f"max by (instance) ({series('memtrace.projection.delay')}) > 300",
        CRITICAL,
        "10m",
        "The graphs of {{ $labels.instance }} are {{ $value | humanizeDuration }} behind",
        "Data is safe in the log, but no graph, verdict or dashboard sees it.",
        "Look for `projection` in the log of the process; when nothing fails, it is too slow:"
        " compare `Received` with `Projected` in Pipeline.",
    ),
    Alert(
        "MemtraceQuarantined",
        happened("memtrace.projection.quarantined", over="1h", by="kind"),
        WARNING,
        "0m",
        "Requests were set aside ({{ $labels.kind }})",
        "They could not be projected and are kept apart; what they say is missing from the graphs."
        " damaged: the disk returned other bytes than were written.",
        "Read `quarantine.jsonl` beside the log: position and reason. A release that can read them"
        " takes them up with `memtrace-otel rebuild`.",
    ),
)

_COLLECTOR = (
    Alert(
        "MemtraceCollectorLosesData",
        " or ".join(
            f"{gained(lost_by_collector(what), '10m', 'exporter')} > 0" for what in LOSABLE
        ),
        CRITICAL,
        "0m",
        "The Collector gave up data for {{ $labels.exporter }}",
        "What stands behind refused it for good. It is gone: graphs get gaps, verdicts abstain, or"
        " traces and verdicts are missing in Jaeger.",
        "Read the answer in the Collector's log (`Exporting failed. Dropping data.`) and mend what"
        " it says: a size limit, a credential, a wrong address.",
    ),
    Alert(
        "MemtraceCollectorQueueFills",
        f"{queue_share('exporter')} > 0.5",
        WARNING,
        "5m",
        "The queue for {{ $labels.exporter }} is {{ $value | humanizePercentage }} full",
        "What stands behind is down, or slower than what comes in. Full: senders wait, then drop"
        " spans.",
        "Look at what stands behind that exporter (process, Jaeger, Prometheus); the queue empties"
        " by itself once it answers.",
    ),
)

_VERDICTS = (
    Alert(
        "MemtraceCasesWait",
        f"max({series('memtrace.cases.age')}) > 3600",
        WARNING,
        "10m",
        "The oldest flagged answer has waited {{ $value | humanizeDuration }} for its verdict",
        "No worker runs, they fail, or there are too few of them.",
        "Check that `memtrace-otel work` (or `up`) runs; then `Judged, failed, set aside` in"
        " Pipeline.",
    ),
    Alert(
        "MemtraceVerdictsNotDelivered",
        f"max({series(PENDING)}) > 3600",
        WARNING,
        "10m",
        "Verdicts have waited {{ $value | humanizeDuration }} for their destination",
        "They are kept and tried again, but do not appear in Jaeger.",
        "Read the last answer of the destination in Pipeline, `Verdicts not delivered`.",
    ),
    Alert(
        "MemtraceVerdictsAbandoned",
        happened("memtrace.outbox.abandoned", over="1h"),
        WARNING,
        "0m",
        "The destination refused verdicts for good",
        "They stay in the store and in the explorer, and are missing in Jaeger.",
        "Read its answer in Pipeline, `Verdicts not delivered`; repair it, then"
        " `memtrace-otel verdicts --redeliver`.",
    ),
    Alert(
        "MemtraceVerdictsNotVisible",
        happened("memtrace.readback", 'result="missing"', over="1h"),
        WARNING,
        "15m",
        "Delivered verdicts are not found at the destination",
        "The backend acknowledges spans and does not show them: it drops late spans, samples, or"
        " its storage is full.",
        "Set the destination's profile (`forward.profile`) to what it is; check that sampling"
        " leaves out the service memtrace.",
    ),
    Alert(
        "MemtraceModelBudgetStopped",
        happened("memtrace.model.stopped", over="1h", by="reason"),
        WARNING,
        "0m",
        "The model is no longer asked ({{ $labels.reason }})",
        "Cases that need a model are judged by rules alone: more of them abstain.",
        "A budget: raise `model.case_*` or `model.run_*`, or accept it. unreachable, time: check"
        " the endpoint.",
    ),
)

_FOUND_IN_AN_HOUR = gained(series("memtrace.invariants.found"), "1h", "kind")
_FOUND_PER_HOUR_BEFORE = (
    f"last_over_time(({gained(series('memtrace.invariants.found'), '1d', 'kind')} / 24)[1s:1s]"
    " offset 1h)"
)
_MEMORY = (
    Alert(
        "MemoryFaultsJump",
        f"{_share('6h')} > 1.5 * {_share('7d', '6h')} + 0.05"
        f" and on () {gained(series('memtrace.verdicts.stored'), '6h')} >= 20",
        WARNING,
        "30m",
        "Memory breaks {{ $value | humanizePercentage }} of the flagged answers, half more than"
        " in the week before",
        "Something changed in the last hours: a deploy, a model, a prompt, a new kind of user.",
        "Open Memory health, `This window against the one before`, from the last deploy on; then"
        " Failures, `Operations that decide`.",
    ),
    Alert(
        "MemoryInvariantsJump",
        f"{_FOUND_IN_AN_HOUR} > 10 + 3 * {_FOUND_PER_HOUR_BEFORE}"
        f" and on (kind) {series('memtrace.invariants.found')} offset 25h",
        WARNING,
        "0m",
        "Many more {{ $labels.kind }} findings than yesterday",
        "The memory breaks its own rules much more often than before, flagged or not.",
        "Open the explorer, invariants of this kind: the spans name the writing and the reading"
        " operation.",
    ),
    Alert(
        "MemoryLeaksBetweenOwners",
        happened("memtrace.invariants.found", 'kind="foreign"', over="1h"),
        CRITICAL,
        "0m",
        "A search delivered another owner's record",
        "What one user told the agent was shown to another: a leak of personal data.",
        "Open the explorer, invariants of kind foreign; stop the search without scope that it"
        " names.",
    ),
)

_HEAD = "# Written by `python -m dashboards.source` from dashboards/source/alerts.py.\n"
GROUPS = {
    "memtrace-data": _DATA,
    "memtrace-collector": _COLLECTOR,
    "memtrace-verdicts": _VERDICTS,
    "memtrace-memory": _MEMORY,
}


def to_yaml() -> str:
    """A rule file of Prometheus."""
    groups = [
        {"name": name, "rules": [alert.rule() for alert in alerts]}
        for name, alerts in GROUPS.items()
    ]
    return _HEAD + yaml.safe_dump({"groups": groups}, sort_keys=False, width=1000)
