"""Printing results: JSON for programs, plain text for people.

What is printed was captured from agents and their users: control characters are made visible,
so that no captured text can drive the terminal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from typing import Any

import click


def print_json(value: Any) -> None:
    """One JSON document, indented, on standard output."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_line(text: str = "") -> None:
    """One line or several of text for people, with control characters made visible."""
    click.echo("\n".join(plain(line) for line in text.split("\n")))


def plain(text: str) -> str:
    """``text`` without anything a terminal would act on (also no bidirectional overrides)."""
    return "".join(c if c.isprintable() or c == "\t" else repr(c)[1:-1] for c in text)


def shorten(text: str, length: int) -> str:
    """The first line's start of ``text``, at most ``length`` characters."""
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 1] + "…"


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Columns as wide as their widest cell, two spaces apart."""
    cells = [tuple(header), *(tuple(plain(str(cell)) for cell in row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells
    )


def time_text(time_ns: int) -> str:
    """UTC, to the second; ``-`` for no time."""
    if time_ns <= 0:
        return "-"
    moment = datetime.fromtimestamp(time_ns / 1e9, tz=timezone.utc)
    return moment.strftime("%Y-%m-%d %H:%M:%SZ")


def span_text(span: dict[str, str] | None) -> str:
    """``trace:span`` of a JSON span reference; ``-`` for none."""
    return f"{span['traceId']}:{span['spanId']}" if span else "-"


def on_terminal() -> bool:
    """Progress is for a person who watches: standard error is a terminal."""
    return sys.stderr.isatty()
