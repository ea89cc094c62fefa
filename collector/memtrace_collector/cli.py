"""The command line: one group, loaded command by command; the only place that exits.

A command raises an error of :mod:`memtrace_collector.errors` or returns; this module turns
errors into a line on standard error and an exit code.
"""

from __future__ import annotations

import importlib
from typing import Any

import click

from memtrace_collector.errors import MemtraceError

COMMANDS = {
    "up": "memtrace_collector.commands.up:up",
    "process": "memtrace_collector.commands.apart:process",
    "work": "memtrace_collector.commands.apart:work",
    "serve": "memtrace_collector.commands.apart:serve",
    "import": "memtrace_collector.commands.import_files:import_files",
    "graphs": "memtrace_collector.commands.graphs:graphs",
    "graph": "memtrace_collector.commands.graphs:graph",
    "history": "memtrace_collector.commands.history:history",
    "flag": "memtrace_collector.commands.flag:flag",
    "attribute": "memtrace_collector.commands.attribute:attribute",
    "verdicts": "memtrace_collector.commands.attribute:verdicts",
    "judge": "memtrace_collector.commands.judge:judge",
    "why": "memtrace_collector.commands.why:why",
    "impact": "memtrace_collector.commands.impact:impact",
    "case": "memtrace_collector.commands.case:case",
    "invariants": "memtrace_collector.commands.invariants:invariants",
    "mcp": "memtrace_collector.commands.mcp:mcp",
    "demo": "memtrace_collector.demo.command:demo",
    "bench": "memtrace_collector.commands.bench:bench",
    "erase": "memtrace_collector.commands.erase:erase",
    "rebuild": "memtrace_collector.commands.rebuild:rebuild",
    "canary": "memtrace_collector.commands.canary:canary",
    "doctor": "memtrace_collector.commands.doctor:doctor",
}
"""Where each command lives; in the order in which they are listed."""


class CommandGroup(click.Group):
    """Loads a command when it is asked for, so that each pays only for its own imports."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{COMMANDS[cmd_name]} is not a command")
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except MemtraceError as error:
            click.echo(f"Error: {error}", err=True)
            ctx.exit(error.exit_code)


@click.group(
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="memtrace-otel", prog_name="memtrace-otel")
def cli() -> None:
    """Which memory operation broke this answer?

    Receives the spans of agents with memory, keeps them as graphs of memory operations, and
    names the operation that lost what a wrong answer needed.

    Exit codes: 0 done, 1 a finding, 2 wrong use, 3 a component is unreachable, 4 data is
    damaged.

    \b
    Example:
      memtrace-otel up --forward http://localhost:14318
    """


def main() -> None:
    """Run the command line with the arguments of the process."""
    cli(prog_name="memtrace-otel")
