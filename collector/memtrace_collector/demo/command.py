"""`demo`: the main job on real dialogue, end to end, in one command."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import click

from memtrace_collector.commands.output import on_terminal, print_line
from memtrace_collector.demo.next_steps import next_steps, summary
from memtrace_collector.demo.outcome import table
from memtrace_collector.demo.run import run
from memtrace_collector.demo.settings import Settings
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
    "--endpoint",
    metavar="URL",
    help="OTLP over HTTP of a running installation, or of the Collector in front of it, which "
    "takes the spans instead of an `up` of the demo's own. Needs --api.",
)
@click.option("--api", metavar="URL", help="Its API, such as http://localhost:4319.")
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
    endpoint: str | None,
    api: str | None,
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
      memtrace-otel demo --endpoint http://localhost:4318 --api http://localhost:4319
    """
    store = store or Path(tempfile.mkdtemp(prefix="memtrace-demo-"))
    settings = Settings(
        store=store,
        forward=forward or "",
        model=model or "",
        endpoint=(endpoint or "").rstrip("/"),
        api=(api or "").rstrip("/"),
    )
    outcomes = run(settings, _progress)
    if output:
        cases = {"cases": [outcome.to_json() for outcome in outcomes]}
        output.write_text(json.dumps(cases, indent=1, ensure_ascii=False) + "\n", "utf-8")
    judged = not settings.model
    print_line(table(outcomes, judged=judged))
    print_line("\n".join([summary(settings, outcomes), "", *next_steps(settings, outcomes)]))
    if judged and not all(outcome.is_as_planted() for outcome in outcomes):
        ctx.exit(EXIT_FINDING)


def _progress(line: str) -> None:
    if on_terminal():
        click.echo(f"  {line}", err=True)
