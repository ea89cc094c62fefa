"""How a command comes to its answers: from the folder, or from the process that owns it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from memtrace_collector.api.client import Client
from memtrace_collector.api.questions import Questions
from memtrace_collector.app import open_service
from memtrace_collector.config import load, store_folder
from memtrace_collector.runtime.data_folder import told
from memtrace_collector.runtime.owner import Owner, own_or_ask


@contextlib.contextmanager
def open_questions(store: str, command: str) -> Iterator[Questions]:
    """The questions over ``store``: through the API of a running `up`, else opened here.

    Raises:
        NotInThisVersionError: the store is not a folder.
        StoreInUseError: another process has it and offers no way in.
        DamagedError: a database of the folder cannot be read.
    """
    config = load({"store": store}, os.environ)
    owner = own_or_ask(store_folder(config.store), command)
    if isinstance(owner, Owner):
        with contextlib.closing(Client(owner.api)) as client:
            yield client
        return
    try:
        with told(store_folder(config.store)), open_service(config) as service:
            yield service
    finally:
        owner.release()
