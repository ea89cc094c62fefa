"""`attribute` and `verdicts`: which operation broke the answer."""

from __future__ import annotations

from typing import Any

import click

from memtrace_collector.api.questions import Replaying
from memtrace_collector.attribution.judging.judged import HUMAN
from memtrace_collector.commands.options import (
    format_option,
    model_options,
    model_settings,
    store_option,
)
from memtrace_collector.commands.output import (
    on_terminal,
    plain,
    print_json,
    print_line,
    shorten,
    span_text,
    table,
)
from memtrace_collector.commands.replay import replay_options, replay_text, warn_if_nobody_was_asked
from memtrace_collector.commands.session import open_questions
from memtrace_collector.errors import DamagedError, UnreachableError
from memtrace_collector.settings.attribution import METHODS, check_method

SORTS = ("time", "score", "type")


@click.command()
@store_option
@format_option()
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default="rules",
    show_default=True,
    help="How: by rules; auto asks a model where they are unsure, model wherever a text decides; "
    "agent lets a model explore each case, for comparison.",
)
@model_options
@click.option("--graph", "graph_id", default="", metavar="GRAPH", help="Only this graph.")
@click.option("--no-evidence", is_flag=True, help="Do as if no flag had named its evidence.")
@replay_options
def attribute(
    store: str,
    output_format: str,
    method: str,
    graph_id: str,
    no_evidence: bool,
    replay: Replaying | None,
    **model: Any,
) -> None:
    """Look into the flagged answers once; print the current verdict of each, new or not.

    An answer that cannot be judged is named on standard error, and the exit code is 4. Where a
    model cannot be asked, the rules' verdict stands; only the methods model and agent then end
    with 3.

    \b
    Example:
      memtrace-otel attribute --method rules --format json
      memtrace-otel attribute --method auto --model gpt-5-mini --base-url http://localhost:8000/v1
      memtrace-otel attribute --replay --runs 5
    """
    check_method(method)
    if on_terminal():
        click.echo("attributing …", err=True)
    with open_questions(store, "attribute", model_settings(model)) as ask:
        found = ask.attribute(method, graph_id, not no_evidence, replay)
    _show(found["verdicts"], output_format)
    for case in found["set_aside"]:
        told = plain(f"answer {span_text(case['answer'])} set aside: {case['reason']}")
        click.echo(f"Warning: {told}", err=True)
    if found["set_aside"]:
        raise DamagedError(f"{len(found['set_aside'])} flagged answers could not be judged")
    if replay is not None:
        warn_if_nobody_was_asked(found["verdicts"])
    if method in ("model", "agent"):
        _check_asked(found["verdicts"])


def _check_asked(verdicts: list[dict[str, Any]]) -> None:
    """Refuse to call it judged by a model when none could be asked about anything."""
    asked = [each["model"] for each in verdicts if each.get("model")]
    unreachable = [each["stopped"] for each in asked if each["stopped"] and not each["calls"]]
    if unreachable and len(unreachable) == len(asked):
        raise UnreachableError(f"the model could not be asked; by rules alone: {unreachable[0]}")


@click.command()
@store_option
@format_option()
@click.option("--graph", "graph_id", default="", metavar="GRAPH", help="Only this graph.")
@click.option("--stage", default="", help="Only this stage, such as update.")
@click.option("--type", "error_type", default="", help="Only this type, such as overwritten.")
@click.option("--sort", type=click.Choice(SORTS), default="time", show_default=True)
@click.option("--history", is_flag=True, help="Also verdicts that a later one superseded.")
@click.option("--set-aside", is_flag=True, help="Instead, the answers that could not be judged.")
@click.option(
    "--undelivered", is_flag=True, help="Instead, what the destination of verdicts did not take."
)
@click.option("--redeliver", is_flag=True, help="Send again what was not taken.")
def verdicts(
    store: str,
    output_format: str,
    graph_id: str,
    stage: str,
    error_type: str,
    sort: str,
    history: bool,
    **instead: bool,
) -> None:
    """List what was found so far. What could not be judged is tried again by `attribute`.

    A verdict that its destination refused, or did not take for a week, is not sent again unless
    asked for; sending the same bytes twice is harmless.

    \b
    Example:
      memtrace-otel verdicts --stage update --sort score
    """
    with open_questions(store, "verdicts") as ask:
        if instead["set_aside"]:
            _show_set_aside(ask.set_aside(graph_id), output_format)
            return
        if instead["redeliver"]:
            print_line(f"{ask.redeliver()['reopened']} deliveries are due again")
            return
        if instead["undelivered"]:
            _show_undelivered(ask.undelivered(), output_format)
            return
        found = ask.verdicts(graph_id, stage, error_type, history)
    if sort == "score":
        found = sorted(found, key=lambda verdict: -float(verdict["score"]))
    elif sort == "type":
        found = sorted(found, key=lambda verdict: (verdict["stage"], verdict["error_type"]))
    _show(found, output_format)


def _show_set_aside(cases: list[dict[str, Any]], output_format: str) -> None:
    if output_format == "json":
        print_json(cases)
        return
    rows = ((span_text(case["answer"]), case["attempts"], case["reason"]) for case in cases)
    print_line(table(("ANSWER", "ATTEMPTS", "REASON"), rows))


def _show_undelivered(rows: list[dict[str, Any]], output_format: str) -> None:
    if output_format == "json":
        print_json(rows)
        return
    shown = (
        (row["case_id"], row["revision"], row["destination"], row["attempts"], row["error"])
        for row in rows
    )
    print_line(table(("CASE", "REVISION", "DESTINATION", "ATTEMPTS", "ERROR"), shown))


def _show(verdicts: list[dict[str, Any]], output_format: str) -> None:
    if output_format == "json":
        print_json(verdicts)
        return
    if not verdicts:
        print_line("no verdicts: no answer has been flagged")
        return
    header = ("ANSWER", "VERDICT", "SCORE", "REPLAY", "DECISIVE OPERATION", "WHY")
    print_line(table(header, map(_row, verdicts)))


def _row(verdict: dict[str, Any]) -> tuple[str, ...]:
    decisive = verdict["decisive"]
    by_hand = " (by hand)" if verdict["method"] == HUMAN else ""
    return (
        span_text(verdict["answer"]),
        f"{verdict['stage']}/{verdict['error_type']}{by_hand}",
        f"{verdict['score']:.2f}",
        replay_text(verdict["replay"]),
        span_text(decisive[0]) if decisive else "-",
        _why(verdict),
    )


def _why(verdict: dict[str, Any]) -> str:
    now = verdict.get("machine_now")
    said = f"{now['method']} now says {now['stage']}/{now['error_type']}. " if now else ""
    return shorten(said + verdict["explanation"], 100)
