"""New facts in the place of old ones: several files, exchanged as one.

The new files grow in a folder beside the old ones. When they are complete a note says so; from
then on the exchange is finished by whoever opens the folder next, however it was broken off.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from pathlib import Path

from memtrace_collector.log import files

NEW_FOLDER = "rebuild"
OLD_FOLDER = "before-rebuild"
_NOTE_FILE = "ready.json"
_BESIDE = ("-shm", "-wal", "")


def exchange(folder: Path, *, keep_old: bool) -> None:
    """Put the complete files of ``rebuild`` in the place of those of the same names.

    ``keep_old``: in ``before-rebuild``; else the old ones go. The caller writes the facts, and
    has none open.
    """
    new_folder = folder / NEW_FOLDER
    names = sorted(path.name for path in new_folder.iterdir())
    for name in names:  # on disk before the note says so
        with (new_folder / name).open("rb") as file:
            os.fsync(file.fileno())
    if keep_old:
        shutil.rmtree(folder / OLD_FOLDER, ignore_errors=True)
    note = {"names": names, "keep_old": keep_old}
    files.replace(new_folder / _NOTE_FILE, [json.dumps(note).encode()])
    files.sync_folder(folder)
    finish_exchange(folder)


def finish_exchange(folder: Path) -> None:
    """Finish an exchange that was broken off, if one was; for callers as of :func:`exchange`."""
    new_folder = folder / NEW_FOLDER
    note = new_folder / _NOTE_FILE
    if not note.exists():
        return
    plan = json.loads(note.read_bytes())
    kept = folder / OLD_FOLDER
    if plan["keep_old"]:
        kept.mkdir(mode=0o700, exist_ok=True)
    for name in plan["names"]:
        if not (new_folder / name).exists():
            continue  # it went over before
        for beside in (f"{name}{end}" for end in _BESIDE):
            with contextlib.suppress(FileNotFoundError):
                if plan["keep_old"]:
                    os.replace(folder / beside, kept / beside)
                else:
                    os.unlink(folder / beside)
        os.replace(new_folder / name, folder / name)
    files.sync_folder(folder)
    shutil.rmtree(new_folder)
