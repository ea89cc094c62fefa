"""`rebuild`: facts anew from the log, compared with the live ones."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from memtrace_collector.commands.options import config_option, format_option, store_option
from memtrace_collector.commands.output import on_terminal, print_json, print_line
from memtrace_collector.config import load, store_folder
from memtrace_collector.errors import EXIT_FINDING, NotFoundError, WrongUseError
from memtrace_collector.log.position import LogPosition
from memtrace_collector.runtime import rebuilding
from memtrace_collector.runtime.exchange import OLD_FOLDER
from memtrace_collector.runtime.owner import owned
from memtrace_collector.runtime.rebuilding import Rebuilt, position_bytes
from memtrace_collector.runtime.stores import LOG_FOLDER
from memtrace_collector.runtime.told import told

MAX_NAMED = 20


@click.command()
@click.option("--check", is_flag=True, help="Only compare; exit code 1 when a graph differs.")
@click.option(
    "--cases",
    "drop_cases",
    is_flag=True,
    help="Afterwards let all flagged answers be judged by the rules again; their ids stay.",
)
@store_option
@config_option
@format_option()
@click.pass_context
def rebuild(
    ctx: click.Context,
    check: bool,
    drop_cases: bool,
    store: str,
    config_file: Path | None,
    output_format: str,
) -> None:
    """Make the graphs anew from the log, compare them with the live ones, and exchange them.

    What the log no longer holds is carried over from the live store, so that the result is the
    same; where it is not, the old files are kept beside the new ones. A running `up` has to be
    ended first. Flagged answers are looked at again afterwards; verdicts stay.

    \b
    Example:
      memtrace-otel rebuild --check
    """
    if check and drop_cases:
        raise WrongUseError("--check changes nothing, so --cases cannot go with it")
    config = load({"store": store}, os.environ, config_file)
    folder = store_folder(config.store)
    if not (folder / LOG_FOLDER).is_dir():
        raise NotFoundError(f"there is no log in {folder}")
    with owned(folder, "rebuild"), told(folder):
        result = rebuilding.rebuild(folder, config, _Progress(folder), swap=not check)
        dropped = rebuilding.judge_again(folder) if drop_cases else 0
    if output_format == "json":
        print_json(_document(result, check) | {"dropped_verdicts": dropped})
    else:
        _print(result, check)
        if drop_cases:
            print_line(f"{dropped} verdicts dropped; the next pass judges them again")
    if not result.is_equal:
        ctx.exit(EXIT_FINDING)


class _Progress:
    """A line on standard error for a person who watches."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / LOG_FOLDER

    def __call__(self, what: str, position: LogPosition) -> None:
        if on_terminal():
            done = position_bytes(self._log, position) >> 20
            click.echo(f"\r{what}: {done:,} MiB of the log", nl=False, err=True)


def _document(result: Rebuilt, check: bool) -> dict[str, Any]:
    return {
        "equal": result.is_equal,
        "exchanged": not check,
        "records": result.records,
        "graphs": result.graphs,
        "operations": result.operations,
        "carried_over": result.carried_over,
        "differing": result.differing,
        "old_damage": result.old_damage,
        "lost_graphs": result.lost_graphs,
        "lost_segments": result.lost_segments,
    }


def _print(result: Rebuilt, check: bool) -> None:
    print_line(
        f"{result.graphs} graphs with {result.operations:,} operations "
        f"from {result.records:,} records"
    )
    if result.carried_over:
        print_line(f"{result.carried_over:,} operations that the log no longer holds, carried over")
    if result.old_damage:
        print_line(f"the live store is damaged: {result.old_damage}")
    if result.lost_segments:
        print_line(f"lost: what was in the first {result.lost_segments} segments of the log")
    for graph_id in result.lost_graphs[:MAX_NAMED]:
        print_line(f"not carried over in whole: {graph_id}")
    for graph_id in result.differing[:MAX_NAMED]:
        print_line(f"differs: {graph_id}")
    if result.is_equal:
        print_line("the same as the live store")
    elif not check:
        print_line(f"the old files are in {OLD_FOLDER}")
