"""`demo`: the main job on real dialogue, end to end, in one command."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

import click

from memtrace_collector.commands.output import on_terminal, print_line
from memtrace_collector.demo.outcome import Outcome, table
from memtrace_collector.demo.run import Settings, run
from memtrace_collector.errors import EXIT_FINDING


@click.command()
@click.option(
    "--store",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="New or empty folder for the store and, below it, the agent's own files.  "
    "[default: a temporary one]",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Write the cases and their verdicts here, as JSON.",
)
@click.option("--forward", metavar="URL", help="Send traces and verdicts on (Jaeger, a Collector).")
@click.option(
    "--model",
    metavar="NAME",
    help="Use this model at OPENAI_BASE_URL with OPENAI_API_KEY instead of the stand-in, which "
    "goes wrong in planted places. The stand-in still makes the embeddings.",
)
@click.pass_context
def demo(
    ctx: click.Context,
    store: Path | None,
    output: Path | None,
    forward: str | None,
    model: str | None,
) -> None:
    """Watch an agent's memory go wrong, and see which operation broke each answer.

    A writer feeds real dialogue into mem0, a reader answers questions from it; both are plain
    scripts, traced from outside. A stand-in model goes wrong in planted places. Every answer,
    right ones too, is flagged; each verdict is compared with what was planted (exit 1 when one
    differs). Needs no network, key or GPU.

    \b
    Example:
      memtrace-otel demo --forward http://localhost:4318
    """
    store = store or Path(tempfile.mkdtemp(prefix="memtrace-demo-"))
    settings = Settings(store=store, forward=forward, model=model)
    outcomes = run(settings, _progress)
    if output:
        cases = {"cases": [outcome.to_json() for outcome in outcomes]}
        output.write_text(json.dumps(cases, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print_line(table(outcomes, judged=model is None))
    print_line(_next_steps(settings, outcomes))
    if model is None and not all(outcome.is_as_planted() for outcome in outcomes):
        ctx.exit(EXIT_FINDING)


def _progress(line: str) -> None:
    if on_terminal():
        click.echo(f"  {line}", err=True)


def _next_steps(settings: Settings, outcomes: list[Outcome]) -> str:
    lines = [_summary(settings, outcomes), "", "Where to look next:"]
    wrong = next((o for o in outcomes if o.planted), outcomes[0])
    answer = f"{wrong.answer.trace_id}:{wrong.answer.span_id}"
    where, program = f"--store {settings.store}", _program()
    lines += [
        f"  {program} verdicts {where}",
        f"  {program} why {answer} {where}",
        f"  {program} graph {wrong.answer.graph_id} --answer {answer} {where}",
        f"  {program} up {where}    and then its page at http://127.0.0.1:4319",
    ]
    if settings.forward:
        lines.append(f"  trace {wrong.answer.trace_id} behind {settings.forward}")
    return "\n".join(lines)


def _program() -> str:
    """The console script, as the user can type it from here."""
    if shutil.which("memtrace-otel"):
        return "memtrace-otel"
    script = Path(sys.executable).with_name("memtrace-otel")
    here = Path.cwd()
    return str(script.relative_to(here) if script.is_relative_to(here) else script)


def _summary(settings: Settings, outcomes: list[Outcome]) -> str:
    if settings.model:
        return f"{len(outcomes)} answers by {settings.model}; nothing was planted."
    planted = [outcome for outcome in outcomes if outcome.planted]
    right = [outcome for outcome in outcomes if not outcome.planted]
    return (
        f"{sum(o.is_as_planted() for o in planted)} of {len(planted)} planted faults named with "
        f"their stage and operation; {sum(o.is_as_planted() for o in right)} of {len(right)} right "
        "answers cleared of a memory fault."
        + ("" if all(o.is_as_planted() for o in outcomes) else "  ! marks the others.")
    )
