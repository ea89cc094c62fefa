"""Looking for what was erased, in every file of a data folder, as bytes.

What is searched for are the graph's name and a sample of its references and texts. A find in a
record that is not the graph's, or in a database that holds the same words for another graph, is
not something left: it is counted apart.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec

from memtrace_collector.graph.facts import DEFAULT_TENANT
from memtrace_collector.log.position import START, LogPosition
from memtrace_collector.log.reader import read_segment
from memtrace_collector.store.base import CaseStore, FactStore

MAX_NEEDLES = 2_000
MIN_NEEDLES = 16
SEARCHED_BYTES = 8 << 30
"""Of needles times bytes of files: about ten seconds."""
_CHUNK_BYTES = 8 << 20
_MIN_BYTES = 6
_PLAIN = re.compile(r"[\w ,.:;@/#~+=-]{6,64}")
"""The same bytes however a text is encoded or quoted around them."""


class Searched(Protocol):
    """The stores of a folder, asked about one tenant."""

    @property
    def tenant(self) -> str: ...
    @property
    def facts(self) -> FactStore: ...
    @property
    def cases(self) -> CaseStore: ...


@dataclass(slots=True)
class Found:
    """Finds by place: ``left`` must be empty; ``elsewhere`` others have the same words."""

    left: Counter[str] = field(default_factory=Counter)
    elsewhere: Counter[str] = field(default_factory=Counter)
    files: int = 0
    bytes: int = 0


def needles(graph_id: str, texts: Iterable[str], folder: Path) -> list[str]:
    """What to search for: fewer where there is much to search."""
    total = sum(path.stat().st_size for path in _files(folder, ()))
    bound = max(MIN_NEEDLES, min(MAX_NEEDLES, SEARCHED_BYTES // max(1, total)))
    longest = sorted(set(texts), key=len, reverse=True)
    candidates = [graph_id, *map(_needle, longest)]
    usable = dict.fromkeys(item for item in candidates if len(item.encode()) >= _MIN_BYTES)
    return list(usable)[:bound]


def search(
    folder: Path,
    log_folder: Path,
    wanted: Collection[bytes],
    *,
    is_others: Callable[[bytes], bool],
    leave_out: Collection[Path] = (),
) -> Found:
    """Search every file.

    Args:
        wanted: see :func:`needles`.
        is_others: whether something that is not erased holds these words too; asked only for
            what was found in a database.
        leave_out: files that are not looked into.
    """
    found = Found()
    in_records: set[bytes] = set()
    logs: list[Path] = []
    others: list[Path] = []
    for path in _files(folder, leave_out):
        (logs if path.parent == log_folder and path.suffix == ".log" else others).append(path)
    for path in logs:
        in_records |= _search_segment(path, wanted, found)
    for path in others:
        name = str(path.relative_to(folder))
        for needle, count in _counted(path, wanted, found).items():
            known = needle in in_records or is_others(needle)
            (found.elsewhere if known else found.left)[name] += count
    return found


def known_operations(data: Searched, graph_id: str) -> int:
    """Of a graph of the tenant or, with an empty name, of all."""
    return sum(item.operations for item in data.facts.graphs() if graph_id in ("", item.graph_id))


def operations_before(data: Searched, graph_id: str, until: LogPosition) -> int:
    """Of :func:`known_operations`, those that came before a place in this log."""
    graphs = [item.graph_id for item in data.facts.graphs() if graph_id in ("", item.graph_id)]
    count = 0
    for graph in graphs:
        keys = [operation.key for operation in data.facts.all_operations(graph)]
        places = data.facts.first_position(keys).values()
        count += sum(START < place < until for place in places)
    return count


def is_held(data: Searched, text: str) -> bool:
    """Whether another graph, of whichever tenant, says the same words, or this one does anew."""
    wanted = text.encode()
    for tenant in {data.tenant, DEFAULT_TENANT, *data.cases.tenants()}:
        facts = data.facts.for_tenant(tenant)
        for graph in facts.graphs():
            for operation in facts.all_operations(graph.graph_id):
                refs = (*operation.inputs, *operation.outputs)
                held = (operation, *facts.values(graph.graph_id, refs).values())
                if any(wanted in msgspec.json.encode(item) for item in held):
                    return True
    return False


def _search_segment(path: Path, wanted: Collection[bytes], found: Found) -> set[bytes]:
    """Finds inside intact records are others': what was the graph's is out of them."""
    counts = _counted(path, wanted, found)
    inside: Counter[bytes] = Counter()
    if counts:
        with path.open("rb") as file:
            start = LogPosition(int(path.stem), 0)
            for entry in read_segment(file, start, None, True, lambda _: None):
                record = entry.record.tenant.encode() + entry.record.body
                inside.update({needle: record.count(needle) for needle in counts})
    for needle, count in counts.items():
        if count > inside[needle]:
            found.left["log, outside of records"] += count - inside[needle]
        if inside[needle]:
            found.elsewhere["log"] += inside[needle]
    return {needle for needle, count in inside.items() if count}


def _counted(path: Path, wanted: Collection[bytes], found: Found) -> Counter[bytes]:
    counts: Counter[bytes] = Counter()
    overlap = max(map(len, wanted), default=1) - 1
    tail = b""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return counts  # a write-ahead log comes and goes
    with file:
        while chunk := file.read(_CHUNK_BYTES):
            found.bytes += len(chunk)
            data = tail + chunk
            for needle in wanted:
                # a find that lies in the tail alone was counted with the last chunk
                again = tail.count(needle) if len(tail) >= len(needle) else 0
                counts[needle] += data.count(needle) - again
            tail = data[-overlap:] if overlap else b""
    found.files += 1
    return +counts


def _files(folder: Path, leave_out: Collection[Path]) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path not in leave_out:
            yield path


def _needle(text: str) -> str:
    return max(_PLAIN.findall(text), key=len, default="")
