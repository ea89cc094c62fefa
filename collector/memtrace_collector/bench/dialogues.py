"""The data of a run: every file below a folder that is of a known data set, by its content."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from memtrace_collector.bench import locomo, realmem
from memtrace_collector.bench.dialogue import Dialogue
from memtrace_collector.errors import DamagedError, NotFoundError

Loader = Callable[[Path], list[Dialogue]]

_LOADERS: tuple[Loader, ...] = (realmem.load, locomo.load)


class Data(NamedTuple):
    """``problems``: one line per file that was left out or had something wrong in it."""

    dialogues: tuple[Dialogue, ...]
    problems: tuple[str, ...]


def load(folder: Path) -> Data:
    """The dialogues of every JSON file below ``folder``, each of them once.

    Raises:
        NotFoundError: no file there is of a known data set.
    """
    found: dict[str, Dialogue] = {}
    problems: list[str] = []
    for path in sorted(folder.rglob("*.json")):
        loaded = _load(path)
        if loaded is None:
            problems.append(f"{path}: neither RealMem nor LoCoMo")
            continue
        problems += _dirt(path, loaded)
        found.update((dialogue.id, dialogue) for dialogue in loaded)
    if not found:
        raise NotFoundError(f"{folder} holds no file of RealMem or LoCoMo")
    return Data(tuple(found.values()), tuple(problems))


def _load(path: Path) -> list[Dialogue] | None:
    return next((found for loader in _LOADERS if (found := _with(loader, path))), None)


def _with(loader: Loader, path: Path) -> list[Dialogue]:
    try:
        return loader(path)
    except DamagedError:
        return []


def _dirt(path: Path, loaded: list[Dialogue]) -> Iterator[str]:
    for dialogue in loaded:
        if dialogue.dirt:
            yield f"{path}: {dialogue.id}: {len(dialogue.dirt)} parts that could not be kept"
