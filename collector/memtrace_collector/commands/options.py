"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from memtrace_collector.config import DEFAULT_STORE

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def store_option(function: Decorated) -> Decorated:
    """``--store``: the folder or the database to work on."""
    return click.option(
        "--store",
        envvar="MEMTRACE_STORE",
        default=DEFAULT_STORE,
        show_default=True,
        show_envvar=True,
        metavar="STORE",
        help="Folder of the store (SQLite), or postgresql://… of a shared one.",
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


def model_options(function: Decorated) -> Decorated:
    """``--model``, ``--base-url`` and what may be spent; the key comes from the environment."""
    options = (
        click.option("--model", help="The model to ask (key: MEMTRACE_MODEL_API_KEY)."),
        click.option("--base-url", metavar="URL", help="Its OpenAI-compatible endpoint."),
        click.option("--run-calls", type=int, help="Most calls altogether.  [default: 5000]"),
        click.option("--run-tokens", type=int, help="Most tokens altogether.  [default: 5000000]"),
        click.option("--run-cost", type=float, help="Most money altogether; needs the prices."),
        click.option("--case-calls", type=int, help="Most calls for one answer.  [default: 12]"),
        click.option("--embeddings-model", help="Compare texts by this embedding model as well."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def model_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that :func:`model_options` gave."""
    renamed = {"model": "name", "embeddings_model": "embeddings"}
    return {f"model.{renamed.get(name, name)}": value for name, value in given.items()}
