"""Every metric of ours, once: name, kind, unit, meaning, attributes and what these may say.

Names follow OpenTelemetry: dots, no unit and no ``_total`` in the name; units are UCUM, where
braces annotate what is counted. Prometheus shows ``memtrace.projection.lag`` in ``By`` as
``memtrace_projection_lag_bytes`` and a counter with ``_total`` (:attr:`Metric.prometheus`).

No attribute is without bounds: its values are a closed set, or the first so many names that
senders gave; what is beyond counts as ``other``. A graph, a user, a trace is never one.
"""

from __future__ import annotations

from collections.abc import Mapping

from memtrace_collector.telemetry import attribute_values as values
from memtrace_collector.telemetry.attribute_values import one_of
from memtrace_collector.telemetry.metric import Metric, counter, fleet_gauge, gauge, histogram

SECONDS_OF_AN_OPERATION = (
    *(0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
    *(1.0, 2.0, 5.0, 10.0, 30.0, 60.0),
)
SECONDS_OF_A_WAIT = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 21_600.0, 86_400.0, 604_800.0)
SCORES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


_COMING_IN = (
    counter(
        "memtrace.receiver.accepted",
        "{item}",
        "Spans and log records that were acknowledged.",
        signal=values.SIGNAL,
    ),
    counter(
        "memtrace.receiver.rejected",
        "{item}",
        "Spans and log records left out of an acknowledged request, as its answer said.",
        signal=values.SIGNAL,
    ),
    counter(
        "memtrace.receiver.refused",
        "{request}",
        "Requests that were not acknowledged, by transport and code of google.rpc.",
        transport=one_of("grpc http"),
        code=values.CODE,
    ),
    counter(
        "memtrace.receiver.throttled", "{request}", "Requests of a tenant that was over its limits."
    ),
    counter(
        "memtrace.receiver.connections_closed",
        "{connection}",
        "HTTP connections closed or not taken: slow, too long a head, or too many.",
        reason=one_of("slow head connections"),
    ),
    counter("memtrace.api.denied", "{request}", "Requests to the API without a valid token."),
    counter(
        "memtrace.access.reload_failures", "{reload}", "Failed readings of the file of tokens."
    ),
)

_LOG = (
    counter("memtrace.log.records", "{request}", "Requests written to the log and synced."),
    counter("memtrace.log.written", "By", "Bytes written to the log and synced."),
    counter("memtrace.log.commits", "{commit}", "Syncs of the log; one covers several requests."),
    counter(
        "memtrace.log.refused",
        "{request}",
        "Requests that the log did not take.",
        reason=one_of("overloaded disk_nearly_full unavailable"),
    ),
    counter("memtrace.log.torn", "By", "Bytes of an unfinished write, cut off at a start."),
    counter(
        "memtrace.log.missed",
        "{segment}",
        "Segments that were taken away before they were read.",
        reader=one_of("projection forward"),
    ),
    counter(
        "memtrace.log.expired",
        "By",
        "Bytes of the log that retention took away.",
        reason=one_of("age size not_forwarded"),
    ),
    counter("memtrace.log.retention_failures", "{pass}", "Failed passes of the log's retention."),
    gauge(
        "memtrace.store.wal",
        "By",
        "Size of SQLite's write-ahead logs: one that grows is held by a reader that stays.",
        file=one_of("facts values text cases"),
    ),
)

_PROJECTION = (
    counter("memtrace.projection.records", "{request}", "Requests read from the log."),
    counter("memtrace.projection.passed", "{request}", "Of these, requests without facts."),
    counter("memtrace.projection.operations", "{operation}", "Operations new to the graphs."),
    counter("memtrace.projection.duplicates", "{span}", "Spans that were known already."),
    counter(
        "memtrace.projection.conflicts", "{span}", "Spans whose id was known with other content."
    ),
    counter("memtrace.projection.salvaged", "{problem}", "Unreadable parts of spans, left out."),
    counter(
        "memtrace.projection.quarantined",
        "{record}",
        "Records of the log that could not be projected and were set aside.",
        kind=one_of("poison damaged"),
    ),
    counter("memtrace.projection.failures", "{pass}", "Failed passes; each is tried again."),
    counter("memtrace.projection.restarts", "{restart}", "Ends of the projecting process."),
    gauge("memtrace.projection.lag", "By", "Bytes of the log that are not in the graphs yet."),
    gauge(
        "memtrace.projection.delay",
        "s",
        "Age of the oldest request that is not in the graphs yet; 0 when all are.",
    ),
    counter("memtrace.values.expired", "{value}", "Captured values that retention took away."),
    counter("memtrace.text_index.failures", "{pass}", "Failed passes of the full-text index."),
    counter("memtrace.erase.failures", "{pass}", "Failed passes of erasures; tried again."),
)

_MEMORY = (
    counter(
        "memtrace.operations",
        "{operation}",
        "Memory operations new to the graphs.",
        system=values.SYSTEM,
        step=values.STEP,
    ),
    histogram(
        "memtrace.operation.duration",
        "s",
        "How long memory operations took, as their spans say.",
        SECONDS_OF_AN_OPERATION,
        system=values.SYSTEM,
        step=values.STEP,
        outcome=one_of("ok error"),
    ),
    counter(
        "memtrace.records.changed",
        "{record}",
        "Versions of records that operations without an error made: new records, others, or none.",
        system=values.SYSTEM,
        change=one_of("created updated deleted"),
    ),
    counter(
        "memtrace.retrievals",
        "{operation}",
        "Searches that ended without an error, by whether they returned anything.",
        system=values.SYSTEM,
        result=one_of("delivered empty"),
    ),
    counter(
        "memtrace.retrieval.delivered",
        "{record}",
        "References that searches returned.",
        system=values.SYSTEM,
    ),
    counter(
        "memtrace.retrieval.dropped",
        "{record}",
        "References that searches considered and cut, by why.",
        system=values.SYSTEM,
        reason=values.DROPPED,
    ),
)

_INVARIANTS = (
    counter(
        "memtrace.invariants.found",
        "{finding}",
        "Broken memory invariants beyond those of the check before of the same graph; what was"
        " there before a start is not counted.",
        kind=values.INVARIANT,
    ),
    fleet_gauge(
        "memtrace.invariants",
        "{finding}",
        "Broken memory invariants, as of now.",
        kind=values.INVARIANT,
    ),
    counter(
        "memtrace.invariants.flagged",
        "{answer}",
        "Answers flagged because a broken invariant reached them.",
        kind=values.INVARIANT,
    ),
    counter("memtrace.invariants.failures", "{pass}", "Failed passes of the invariants' watch."),
    counter(
        "memtrace.invariants.unwatched", "{graph}", "Graphs beyond those watched, at each look."
    ),
    counter(
        "memtrace.tenants.unattended", "{tenant}", "Tenants beyond those worked for, at each look."
    ),
)

_ATTRIBUTION = (
    counter("memtrace.attribution.cases", "{case}", "Flagged answers that were judged."),
    counter("memtrace.attribution.failures", "{failure}", "Failed looks and passes; tried again."),
    counter("memtrace.attribution.set_aside", "{case}", "Flagged answers given up."),
    counter("memtrace.attribution.leases_lost", "{lease}", "Cases that another worker took over."),
    counter("memtrace.attribution.rate_limited", "{pass}", "Passes ended by the pace."),
    counter(
        "memtrace.verdicts.stored",
        "{verdict}",
        "Verdicts, also those that a later one superseded; system: of the decisive operation."
        " Exemplar: the case trace.",
        stage=values.STAGE,
        type=values.TYPE,
        system=values.SYSTEM,
        method=values.METHOD,
    ),
    counter(
        "memtrace.verdicts.abstained",
        "{verdict}",
        "Of these, verdicts that name nothing, by each thing that was missing.",
        missing=values.MISSING,
    ),
    counter(
        "memtrace.lineage",
        "{verdict}",
        "Of these, by how surely the ancestry is known.",
        status=values.LINEAGE,
    ),
    histogram(
        "memtrace.verdict.score",
        "1",
        "Scores of these verdicts: how sure they are, not a probability. Exemplar: the case trace.",
        SCORES,
        stage=values.STAGE,
    ),
    counter(
        "memtrace.judgements",
        "{judgement}",
        "What people said of verdicts: confirmed, or the part that they corrected.",
        agreement=one_of("confirmed operation type stage"),
    ),
    counter("memtrace.judgements.withdrawn", "{judgement}", "Judgements that were taken back."),
    counter(
        "memtrace.judgements.outdated",
        "{verdict}",
        "Findings that differ from what a person judged: they stand beside the judgement.",
    ),
    fleet_gauge(
        "memtrace.judged",
        "{case}",
        "Flagged answers whose verdict a person judged, by stage of what the machine finds and by"
        " how far they agree.",
        stage=values.STAGE,
        agreement=one_of("confirmed operation type stage"),
    ),
    counter(
        "memtrace.replays",
        "{verdict}",
        "Replays of stored verdicts, by result.",
        result=values.REPLAY,
    ),
    histogram(
        "memtrace.references.wait",
        "s",
        "How long flagged answers waited for the producer of a reference that"
        " arrived, from the first look at which it was missing.",
        SECONDS_OF_A_WAIT,
    ),
    gauge(
        "memtrace.references.unresolved",
        "{reference}",
        "References without a known producer in the ancestries of flagged answers, as of the last"
        " looks of this process; at most 10000.",
    ),
    fleet_gauge(
        "memtrace.answers.flagged",
        "{flag}",
        "Flags by source.",
        source=one_of("user evaluator dataset operator"),
    ),
    fleet_gauge(
        "memtrace.verdicts",
        "{verdict}",
        "Current verdicts: the last of each flagged answer.",
        stage=values.STAGE,
        type=values.TYPE,
        method=values.METHOD,
    ),
    fleet_gauge(
        "memtrace.cases",
        "{case}",
        "Flagged answers by state.",
        state=one_of("unresolved waiting judged set_aside"),
    ),
    fleet_gauge(
        "memtrace.cases.age",
        "s",
        "For how long the oldest flagged answer has waited for its verdict; 0 when none does.",
    ),
)

_MODEL = (
    counter("memtrace.model.calls", "{call}", "Calls of a model that were answered."),
    counter(
        "memtrace.model.tokens", "{token}", "Tokens of these calls.", type=one_of("input output")
    ),
    counter("memtrace.model.cost", "{USD}", "What these calls cost at the prices that are set."),
    counter("memtrace.model.cache.hits", "{call}", "Questions answered from the cache."),
    counter("memtrace.model.invalid_replies", "{reply}", "Replies that counted as no answer."),
    counter(
        "memtrace.model.stopped",
        "{case}",
        "Cases in which no more could be asked.",
        reason=values.STOPPED,
    ),
    counter("memtrace.embeddings.failures", "{case}", "Cases whose texts were not embedded."),
)

_GOING_OUT = (
    counter(
        "memtrace.forward.requests",
        "{request}",
        "Attempts to send a request on.",
        signal=values.SIGNAL,
        outcome=values.DELIVERY,
    ),
    counter(
        "memtrace.forward.split", "{request}", "Requests halved for size.", signal=values.SIGNAL
    ),
    counter(
        "memtrace.forward.rejected",
        "{item}",
        "Spans and log records that the destination refused for good.",
        signal=values.SIGNAL,
    ),
    counter("memtrace.forward.repeated", "{span}", "Spans sent on before, not sent again."),
    counter(
        "memtrace.forward.unreadable", "{record}", "Records that nobody can read, not sent on."
    ),
    counter("memtrace.forward.links_failed", "{span}", "Spans sent on without more links."),
    counter(
        "memtrace.forward.shortened", "{text}", "Texts shortened or split for the destination."
    ),
    counter("memtrace.forward.failures", "{pass}", "Failed passes; each is tried again."),
    gauge("memtrace.forward.lag", "By", "Bytes of the log that were not sent on yet."),
    counter(
        "memtrace.outbox.attempts",
        "{delivery}",
        "Attempts to deliver verdicts.",
        outcome=values.DELIVERY,
    ),
    counter("memtrace.outbox.abandoned", "{delivery}", "Deliveries of verdicts given up."),
    counter("memtrace.outbox.forgotten", "{delivery}", "Payloads dropped after delivery."),
    counter("memtrace.outbox.failures", "{pass}", "Failed passes; each is tried again."),
    fleet_gauge(
        "memtrace.outbox.depth",
        "{delivery}",
        "Deliveries of verdicts by state.",
        state=one_of("pending delivered declined abandoned"),
    ),
    fleet_gauge(
        "memtrace.outbox.age",
        "s",
        "Age of the oldest verdict that is not delivered yet; 0 when all are.",
    ),
    counter(
        "memtrace.readback",
        "{delivery}",
        "Delivered verdicts looked for at their destination, by what was found.",
        result=one_of("visible missing unreachable"),
    ),
    counter(
        "memtrace.telemetry.export_failures", "{export}", "Failed exports of these metrics (OTLP)."
    ),
)

METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for part in (
        *(_COMING_IN, _LOG, _PROJECTION, _MEMORY, _INVARIANTS),
        *(_ATTRIBUTION, _MODEL, _GOING_OUT),
    )
    for metric in part
}
"""By name, in the order in which information passes through the service."""
