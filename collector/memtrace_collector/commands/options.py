"""Options and arguments that several commands share, and how their texts are read."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

from memtrace_collector.config import DEFAULT_STORE
from memtrace_collector.errors import WrongUseError

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_TRACE_ID = re.compile(r"[0-9a-f]{32}")
_SPAN_ID = re.compile(r"[0-9a-f]{16}")


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


def parse_answer(text: str, *, span_needed: bool = False) -> tuple[str, str]:
    """``TRACE[:SPAN]`` in hex digits, as trace id and span id (may be empty).

    Raises:
        WrongUseError: that is not what it is.
    """
    trace_id, _, span_id = text.strip().lower().partition(":")
    if not _TRACE_ID.fullmatch(trace_id) or (span_id and not _SPAN_ID.fullmatch(span_id)):
        raise WrongUseError(
            f"{text!r} is not TRACE[:SPAN]: 32 hex digits, a colon and 16 hex digits"
        )
    if span_needed and not span_id:
        raise WrongUseError(f"{text!r} names a trace; give the span as well: {trace_id}:SPAN")
    return trace_id, span_id
