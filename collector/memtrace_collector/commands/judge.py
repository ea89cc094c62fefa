"""`judge`: a person says whether a verdict is right."""

from __future__ import annotations

from typing import Any

import click

from memtrace_collector.attribution.judging.said import (
    CONFIRM,
    CORRECT,
    WITHDRAW,
    Said,
    read,
)
from memtrace_collector.attribution.verdict import STAGE_OF
from memtrace_collector.commands.options import format_option, store_option
from memtrace_collector.commands.output import print_json, print_line, span_text
from memtrace_collector.commands.session import open_questions
from memtrace_collector.errors import WrongUseError


@click.command()
@click.argument("answer", metavar="TRACE[:SPAN]")
@store_option
@format_option()
@click.option("--confirm", is_flag=True, help="The verdict is right as it stands.")
@click.option(
    "--type",
    "error_type",
    type=click.Choice(tuple(STAGE_OF)),
    metavar="TYPE",
    help="It is wrong: this type, such as overwritten, is right. The stage follows from it.",
)
@click.option(
    "--decisive",
    multiple=True,
    metavar="TRACE:SPAN",
    help="With --type: the operation that lost the information (repeat).",
)
@click.option("--last-right", metavar="REF", help="With --type: what was last right there.")
@click.option("--first-wrong", metavar="REF", help="With --type: what took its place.")
@click.option("--withdraw", is_flag=True, help="Take a judgement back: the machine's stands again.")
@click.option("--note", default="", help="Why, in words.")
@click.option("--by", default="", metavar="NAME", help="Who says so.")
@click.option(
    "--revision",
    type=click.IntRange(1),
    help="The revision that was looked at; refused when it is not current any more.",
)
def judge(
    answer: str,
    store: str,
    output_format: str,
    revision: int | None,
    **given: Any,
) -> None:
    """Confirm or correct the verdict on an answer, by hand; no later finding supersedes it.

    What the rules find afterwards is shown beside it. A judgement is exported with its case
    (`case`, `bench export`) and goes back into the trace as any verdict does.

    \b
    Example:
      memtrace-otel judge 4bf92f3577b34da6a3ce929d0e0e4736:00f067aa0ba902b7 --confirm --by anna
      memtrace-otel judge 4bf92f3577b34da6a3ce929d0e0e4736 --type omission \\
        --decisive 0af7651916cd43dd8448eb211c80319c:b7ad6b7169203331 --note "it was never noted"
    """
    said = _said(given, revision or 0)
    with open_questions(store, "judge") as ask:
        verdict = ask.judge(answer, said)
    if output_format == "json":
        print_json(verdict)
        return
    print_line(_told(verdict))


def _said(given: dict[str, Any], revision: int) -> Said:
    error_type = given.pop("error_type")
    actions = {CONFIRM: given.pop("confirm"), WITHDRAW: given.pop("withdraw"), CORRECT: error_type}
    asked = [action for action, is_asked in actions.items() if is_asked]
    if len(asked) != 1:
        raise WrongUseError("give one of --confirm, --type and --withdraw")
    if asked != [CORRECT] and (given["decisive"] or given["last_right"] or given["first_wrong"]):
        raise WrongUseError("--decisive, --last-right and --first-wrong belong to --type")
    decisive = list(given.pop("decisive"))
    return read(
        {
            "action": asked[0],
            "revision": revision,
            "type": error_type or "",
            "decisive": decisive,
            **given,
        }
    )


def _told(verdict: dict[str, Any]) -> str:
    what = f"{verdict['stage']}/{verdict['error_type']}"
    said = verdict["judgement"]
    if said is None:
        return f"withdrawn: revision {verdict['revision']} is {what} ({verdict['method']}) again"
    where = ", ".join(map(span_text, verdict["decisive"])) or "no operation"
    agreed = (
        "agrees with" if said["agreement"] == "confirmed" else f"another {said['agreement']} than"
    )
    return (
        f"{said['action']}: revision {verdict['revision']} is {what} at {where}; "
        f"{agreed} the machine"
    )
