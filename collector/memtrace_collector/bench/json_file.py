"""Reading a data set's file, whose shape is not ours to trust."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memtrace_collector.errors import DamagedError, NotFoundError


def read_json(path: Path) -> Any:
    """The document in ``path``.

    Raises:
        NotFoundError: there is no such file.
        DamagedError: it is no JSON.
    """
    try:
        return json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise NotFoundError(f"{path} does not exist") from error
    except ValueError as error:
        raise DamagedError(f"{path} is no JSON: {error}") from error


def mapping(value: object) -> dict[str, Any]:
    """``value`` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> Iterator[dict[str, Any]]:
    """The objects of a list; whatever else stands in it is left out."""
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict):
            yield item


def text(value: object) -> str:
    """A text, or a number as text; empty for anything else."""
    if isinstance(value, str):
        return value.strip()
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else ""
