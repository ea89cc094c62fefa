"""Work that was put off: operations of long graphs move from rows that are scanned to an index."""

from __future__ import annotations

from collections.abc import Iterable

from memtrace_collector.store.postgres.database import Connection

LONG = 2_000
"""So many operations of a graph are scanned in a few milliseconds."""
_LONGEST = (
    "SELECT id FROM graph WHERE operations - indexed > %s"
    " AND (%s::bigint[] IS NULL OR id = ANY(%s))"
    " ORDER BY operations - indexed DESC LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED"
)
_MOVE = """
WITH moved AS (
  DELETE FROM used WHERE graph = %(graph)s AND operation IN
    (SELECT operation FROM used WHERE graph = %(graph)s ORDER BY operation LIMIT %(limit)s)
  RETURNING *),
named AS (
  INSERT INTO used_key
  SELECT graph, record, is_acted, operation, start_ns, trace, span FROM moved,
    LATERAL (SELECT unnest(acted) AS record, true AS is_acted
             UNION ALL SELECT unnest(met), false) AS each ORDER BY graph, record)
SELECT count(*) FROM moved
"""
_INDEXED = (
    "UPDATE graph SET indexed = CASE WHEN %(moved)s < %(limit)s THEN operations"
    " ELSE least(indexed + %(moved)s, operations) END WHERE id = %(graph)s"
)


def index_some(connection: Connection, graphs: Iterable[int] | None) -> bool:
    """Move some of the longest of these graphs (None: of all); False when none is long."""
    among = None if graphs is None else list(graphs)
    found = connection.execute(_LONGEST, (LONG, among, among)).fetchone()
    if found is None:
        return False
    parameters = {"graph": found[0], "limit": LONG}
    ((moved,),) = connection.execute(_MOVE, parameters).fetchall()
    connection.execute(_INDEXED, parameters | {"moved": moved})
    return True
