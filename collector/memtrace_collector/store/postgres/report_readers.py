"""Who may read the views for dashboards (:mod:`.report_schema`)."""

from __future__ import annotations

import contextlib

from memtrace_collector.store.postgres.database import Database

_READERS = """
SELECT role::text FROM memtrace_report.reader WHERE role <> current_user ORDER BY role
"""


def report_readers(url: str) -> tuple[str, ...]:
    """Roles besides the one that asks. The tables of ``url`` exist.

    Raises:
        UnreachableError: nobody answers there.
    """
    with contextlib.closing(Database(url, most=1)) as database:
        return tuple(role for (role,) in database.query(_READERS))
