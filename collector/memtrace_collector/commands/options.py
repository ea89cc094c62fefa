"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from memtrace_collector.config import DEFAULT_STORE

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def store_option(function: Decorated) -> Decorated:
    """``--store``: the folder (or, in a later version, the database) to work on."""
    return click.option(
        "--store",
        envvar="MEMTRACE_STORE",
        default=DEFAULT_STORE,
        show_default=True,
        show_envvar=True,
        metavar="FOLDER",
        help="Folder of the store (SQLite). postgresql:// comes with a later version.",
    )(function)


def config_option(function: Decorated) -> Decorated:
    """``--config``: a file of settings."""
    return click.option(
        "--config",
        "config_file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="A memtrace.yaml.",
    )(function)


def format_option(*formats: str) -> Callable[[Decorated], Decorated]:
    """``--format``, the first of ``formats`` (text and json unless given) by default."""
    choices = formats or ("text", "json")
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(choices),
        default=choices[0],
        show_default=True,
        help="How to print the result.",
    )
