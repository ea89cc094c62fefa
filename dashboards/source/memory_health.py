"""Memory health: is my memory getting better or worse, by system and stage, and since when."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard, stat, table, timeseries
from grafana_foundation_sdk.models.dashboard import DataTransformerConfig

from dashboards.source import frame
from dashboards.source.frame import Addresses
from dashboards.source.panels import (
    Column,
    amber_red,
    as_rows,
    at_the_end,
    bars,
    lines,
    number,
    over_time,
    rows,
)
from dashboards.source.queries import (
    FAULT,
    OF_STEP,
    OF_SYSTEM,
    SMOOTHED,
    before,
    increase,
    or_zero,
    present,
    quantile,
    rate,
    ratio,
    share,
)

NO_VERDICTS = "no verdict in this window"
NO_OPERATIONS = "no operation in this window"
VERDICTS = "memtrace.verdicts.stored"
ANSWERS = ("memtrace.operations", 'step="answer"', OF_SYSTEM)


def build(addresses: Addresses) -> dashboard.Dashboard:
    page = frame.board(
        frame.MEMORY_HEALTH,
        "Memory health",
        "Is the agents' memory getting better or worse, by system and stage, and since when?"
        " Rates count verdicts as they were found; a deploy is a vertical line.",
        "now-24h",
    )
    for variable in (*frame.instances(), *frame.system_and_step(), frame.smoothed()):
        page.with_variable(variable)
    frame.with_addresses(page, addresses)
    for add in (_trend, _over_time, _operations, _retrieval, _invariants, _confidence, _people):
        add(page)
    return page


def _trend(page: dashboard.Dashboard) -> None:
    faults, found = increase(VERDICTS, FAULT, OF_SYSTEM), increase(VERDICTS, OF_SYSTEM)
    page.with_row(dashboard.Row("Better or worse?"))
    page.with_panel(
        number(
            "Faults per flagged answer, now and before",
            "Share of judged answers that a memory operation broke, in this window and in the one"
            " of the same length before. Rising after a deploy: open Failures and see which"
            " operation decides.",
            "percentunit",
            at_the_end("this window", ratio(faults, found)),
            at_the_end("the window before", before(ratio(faults, found))),
            empty=NO_VERDICTS,
            limits=amber_red(0.5, 0.8),
            width=8,
        )
    )
    page.with_panel(
        number(
            "Faults per answer",
            "Memory faults for each answer given, flagged or not. Depends on how many answers are"
            " flagged: compare it only while flagging stays the same.",
            "percentunit",
            at_the_end("", ratio(faults, increase(*ANSWERS))),
            empty="no answer in this window",
            limits=amber_red(0.02, 0.1),
        )
    )
    page.with_panel(
        number(
            "Verdicts",
            "Verdicts found in this window, also those that a later one superseded. Few of them"
            " make every rate on this page uncertain.",
            "short",
            at_the_end("", or_zero(found)),
            empty=NO_VERDICTS,
        )
    )
    page.with_panel(
        number(
            "Flags",
            "Flags that are known now, over all time: by users, evaluators, data sets, operators."
            " None: nobody tells memtrace which answers are wrong; only invariants are watched.",
            "short",
            at_the_end("", or_zero(present("memtrace.answers.flagged"))),
            empty="no flag yet",
        )
    )
    page.with_panel(
        number(
            "Broken invariants",
            "Stale, deleted or foreign records delivered, writes decided and lost, as of now."
            " Needs no flags. Anything above zero is worth a look at the explorer's invariants.",
            "short",
            at_the_end("", or_zero(present("memtrace.invariants"))),
            empty="none found",
            limits=amber_red(1, 100),
        )
    )


def _over_time(page: dashboard.Dashboard) -> None:
    page.with_panel(_comparison())
    for attribute in ("stage", "type", "system"):
        page.with_panel(_share_over_time(attribute))
    page.with_panel(
        lines(
            "Verdicts, by stage and type",
            "Verdicts over the time chosen as `Rates over`, memory faults and others. A point's"
            " exemplar opens the trace of its case.",
            "short",
            over_time(
                "{{stage}}: {{type}}",
                increase(VERDICTS, OF_SYSTEM, by="stage, type", over=SMOOTHED),
                exemplars=True,
            ),
            empty=NO_VERDICTS,
            width=24,
        )
    )


def _share_over_time(attribute: str) -> timeseries.Panel:
    faults = increase(VERDICTS, FAULT, OF_SYSTEM, by=attribute, over=SMOOTHED)
    return lines(
        f"Faults per flagged answer, by {attribute}",
        f"Share of verdicts that name a memory fault, by {attribute} of the decisive operation."
        " The area that grows is what got worse; the rest up to 100 % is not the memory's fault,"
        " or unknown.",
        "percentunit",
        over_time(
            f"{{{{{attribute}}}}}",
            f"{faults} / scalar({increase(VERDICTS, OF_SYSTEM, over=SMOOTHED)} > 0)",
        ),
        empty=NO_VERDICTS,
        stacked=True,
    )


def _comparison() -> table.Panel:
    """Faults by stage and type, this window beside the one before."""
    now = increase(VERDICTS, FAULT, OF_SYSTEM, by="stage, type")
    return rows(
        "This window against the one before",
        "Memory faults by stage and type: how many in this window, and how many in the window of"
        " the same length before it. Choose a window that starts at a deploy to compare before and"
        " after. An empty cell: none.",
        as_rows(now),
        as_rows(before(now)),
        empty=NO_VERDICTS,
        columns={
            "stage": Column("Stage"),
            "type": Column("Error type"),
            "Value #A": Column("This window", "short"),
            "Value #B": Column("The window before", "short"),
            "Time": Column(""),
        },
        transformations=[DataTransformerConfig("merge", options={})],
        height=8,
    )


def _operations(page: dashboard.Dashboard) -> None:
    name, duration = "memtrace.operations", "memtrace.operation.duration"
    chosen = (OF_SYSTEM, OF_STEP)
    by, legend = "system, step", "{{system}} {{step}}"
    ended = rate(duration, *chosen, by=by, suffix="_count")
    failed = rate(duration, *chosen, 'outcome="error"', by=by, suffix="_count")
    page.with_row(dashboard.Row("Operations"))
    page.with_panel(
        lines(
            "Operations",
            "Memory operations per second, by system and step. A step that stops while others go"
            " on: the agent, or its instrumentation, changed.",
            "ops",
            over_time(legend, rate(name, *chosen, by=by)),
            empty=NO_OPERATIONS,
        )
    )
    for part, what in ((0.5, "Half"), (0.95, "95 %")):
        page.with_panel(
            lines(
                f"Latency: {what} take at most",
                "By system and step, as the operations' own spans say. Slow retrieval delays every"
                " answer; slow writes widen the time in which a read sees the old record.",
                "s",
                over_time(legend, quantile(duration, part, *chosen, by=by)),
                empty=NO_OPERATIONS,
            )
        )
    page.with_panel(
        lines(
            "Operations with an error",
            "Share of operations whose span ended with an error. A failed write is information"
            " that is missing later; a failed search is an answer without memory.",
            "percentunit",
            over_time(legend, share(failed, ended)),
            empty=NO_OPERATIONS,
            limits=((0.05, "red"),),
            width=12,
        )
    )
    page.with_panel(
        lines(
            "Records changed",
            "Records created, updated and deleted. Deletions that outgrow creations, or updates"
            " without new messages: the memory is being rewritten or compacted.",
            "short",
            over_time(
                "{{change}}",
                increase("memtrace.records.changed", OF_SYSTEM, by="change", over=SMOOTHED),
            ),
            empty="no record changed",
            stacked=True,
            width=12,
        )
    )


def _retrieval(page: dashboard.Dashboard) -> None:
    searches = "memtrace.retrievals"
    empty = increase(searches, 'result="empty"', OF_SYSTEM, by="system", over=SMOOTHED)
    all_of_them = increase(searches, OF_SYSTEM, by="system", over=SMOOTHED)
    delivered = increase("memtrace.retrieval.delivered", OF_SYSTEM, by="system", over=SMOOTHED)
    page.with_row(dashboard.Row("Retrieval"))
    page.with_panel(
        lines(
            "Searches that found nothing",
            "Share of searches without an error that returned no record, by system. Rising: the"
            " filter or scope changed, the index is behind, or nothing was stored.",
            "percentunit",
            over_time("{{system}}", share(empty, all_of_them)),
            empty="no search in this window",
            limits=((0.5, "red"),),
        )
    )
    page.with_panel(
        lines(
            "Records returned per search",
            "References returned per search, by system. Near the limit k everywhere: the limit"
            " decides what is recalled, and what ranks below it is never seen.",
            "short",
            over_time("{{system}}", ratio(delivered, all_of_them)),
            empty="no search in this window",
        )
    )
    page.with_panel(
        lines(
            "Records dropped, by why",
            "References that searches considered and cut: threshold, limit, rerank, dedup, expired,"
            " budget, filter. The reason that grows is the setting to look at.",
            "short",
            over_time(
                "{{reason}}",
                or_zero(
                    increase("memtrace.retrieval.dropped", OF_SYSTEM, by="reason", over=SMOOTHED)
                ),
            ),
            empty="none dropped",
            stacked=True,
        )
    )


def _invariants(page: dashboard.Dashboard) -> None:
    page.with_row(dashboard.Row("Invariants: what is wrong without any flag"))
    page.with_panel(
        lines(
            "Newly broken invariants",
            "Found by watching alone: stale, zombie (deleted and delivered), foreign (another"
            " owner's), lost_write, flapping, empty_retrieval. Foreign is a leak between users: act"
            " at once.",
            "short",
            over_time(
                "{{kind}}",
                or_zero(increase("memtrace.invariants.found", by="kind", over=SMOOTHED)),
            ),
            empty="none found",
            stacked=True,
            width=16,
        )
    )
    page.with_panel(
        bars(
            "Broken invariants as of now",
            "How many are known of each kind; the explorer lists them with their spans.",
            "short",
            at_the_end("{{kind}}", or_zero(present("memtrace.invariants", by="kind"))),
            empty="none found",
            width=8,
        )
    )


def _confidence(page: dashboard.Dashboard) -> None:
    page.with_row(dashboard.Row("How far to trust the verdicts"))
    score, lineage = "memtrace.verdict.score", "memtrace.lineage"
    page.with_panel(
        lines(
            "Scores of verdicts",
            "Half of the verdicts, and all but the lowest tenth, score at least this, by stage. A"
            " score orders verdicts by how sure they are; it is not a probability.",
            "percentunit",
            over_time("{{stage}}: half", quantile(score, 0.5, by="stage", over=SMOOTHED)),
            over_time("{{stage}}: nine of ten", quantile(score, 0.1, by="stage", over=SMOOTHED)),
            empty=NO_VERDICTS,
        )
    )
    page.with_panel(
        lines(
            "Abstentions, by what was missing",
            "Verdicts that name nothing because something could not be known. gap and sampled:"
            " spans were lost on the way; no_content: capture is off; unseen_writer: a program that"
            " is not instrumented writes to the store.",
            "short",
            over_time(
                "{{missing}}",
                or_zero(increase("memtrace.verdicts.abstained", by="missing", over=SMOOTHED)),
            ),
            empty="none abstained",
            stacked=True,
        )
    )
    page.with_panel(
        lines(
            "Lineage of judged cases",
            "How surely the ancestry of judged answers is known. incomplete: a producer never"
            " arrived; ambiguous: several could be meant. Growing: check sampling and exporters of"
            " the agents.",
            "short",
            over_time("{{status}}", increase(lineage, by="status", over=SMOOTHED)),
            empty=NO_VERDICTS,
            stacked=True,
        )
    )


def _people(page: dashboard.Dashboard) -> None:
    page.with_panel(_agreement())
    page.with_panel(
        bars(
            "What people corrected",
            "Judgements by hand in this window: confirmed, or the part that was corrected (the"
            " operation, the type, the stage).",
            "short",
            at_the_end("{{agreement}}", or_zero(increase("memtrace.judgements", by="agreement"))),
            empty="nobody judged by hand",
            width=8,
        )
    )
    page.with_panel(
        bars(
            "Replays, by result",
            "What came of putting the right value back and running again. refuted: the verdict"
            " does not stand; not_deterministic: the agent answers differently each time.",
            "short",
            at_the_end("{{result}}", or_zero(increase("memtrace.replays", by="result"))),
            empty="none replayed",
            width=8,
        )
    )


def _agreement() -> stat.Panel:
    agreed = ("memtrace.judged", 'agreement="confirmed"')
    everything, by_stage = (
        share(present(*agreed, by=by), present("memtrace.judged", by=by)) for by in ("", "stage")
    )
    return number(
        "Agreement with people",
        "Share of the answers judged by hand whose verdict was confirmed, as of now, in all and by"
        " the stage that the machine finds. Low: export the corrected cases and look at which rule"
        " or model goes wrong.",
        "percentunit",
        at_the_end("all", everything),
        at_the_end("{{stage}}", by_stage),
        empty="nobody judged by hand",
        width=8,
    )
