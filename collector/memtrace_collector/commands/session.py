"""How a command comes to its answers: from the folder, or from the process that owns it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Any

from memtrace_collector.access import owner_token
from memtrace_collector.access.authentication import DEFAULT_TENANT
from memtrace_collector.api.client import Client
from memtrace_collector.api.questions import Questions
from memtrace_collector.app import open_service
from memtrace_collector.config import is_database, load, store_folder
from memtrace_collector.errors import WrongUseError
from memtrace_collector.runtime.owner import Owner, own_or_ask
from memtrace_collector.runtime.told import told

TOKEN_VARIABLE = "MEMTRACE_TOKEN"  # noqa: S105 - the name of a variable
TENANT_VARIABLE = "MEMTRACE_TENANT"


@contextlib.contextmanager
def open_questions(
    store: str, command: str, settings: Mapping[str, Any] | None = None, tenant: str = ""
) -> Iterator[Questions]:
    """The questions over ``store``: a folder through the API of a running `up`, else opened here.

    Asked for the tenant that ``MEMTRACE_TENANT`` names, which whoever can read the folder may
    choose; with ``MEMTRACE_TOKEN`` and a running `up` for the tenant of that token.

    Args:
        store: as given on the command line.
        command: who asks.
        settings: further settings as typed (``None``: not given). A running `up` has its own.
        tenant: another than those say; only for whoever can read the folder.

    Raises:
        WrongUseError: settings were given, and a running `up` answers.
        NotInThisVersionError: the store is neither a folder nor a database that is known.
        StoreInUseError: another process has it and offers no way in.
        DamagedError: a database of the folder cannot be read.
    """
    typed = {path: value for path, value in (settings or {}).items() if value is not None}
    config = load({"store": store, **typed}, os.environ)
    if is_database(config.store):
        with open_service(config, tenant or tenant_asked_for()) as service:
            yield service
        return
    owner = own_or_ask(store_folder(config.store), command)
    if isinstance(owner, Owner):
        if typed:
            raise WrongUseError(
                f"a running `up` (process {owner.pid}) answers, and it has settings of its own: "
                f"give it {', '.join(sorted(typed))}, or end it first"
            )
        given = "" if tenant else os.environ.get(TOKEN_VARIABLE)
        token = given or owner_token.make(owner.key, tenant or tenant_asked_for())
        with contextlib.closing(Client(owner.api, token, owner.certificate)) as client:
            yield client
        return
    try:
        with (
            told(store_folder(config.store)),
            open_service(config, tenant or tenant_asked_for()) as service,
        ):
            yield service
    finally:
        owner.release()


def tenant_asked_for() -> str:
    """Whose questions the owner of the files asks: ``MEMTRACE_TENANT``."""
    return os.environ.get(TENANT_VARIABLE) or DEFAULT_TENANT
