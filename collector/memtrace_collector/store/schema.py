"""Tables of the two SQLite stores, their versions and how an older file is brought up to date."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from memtrace_collector.errors import WrongUseError

# An operation with all it read is one row, a produced version is one row, and a record is one row
# per operation that names it. Operations lie clustered by graph: the upper bits of their id are
# the graph's (`facts_writer.operation_id`). They are a rowid table because without rowid a row of
# more than a quarter of a page would take a page of its own. Names of records and versions are
# 64-bit digests; rows found by them are checked against the operation itself.
FACTS_1 = """
CREATE TABLE graph(
  id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, graph_id TEXT NOT NULL,
  operations INTEGER NOT NULL DEFAULT 0, first_ns INTEGER, last_ns INTEGER,
  UNIQUE(tenant, graph_id));
CREATE TABLE span(
  tenant TEXT NOT NULL, trace BLOB NOT NULL, span BLOB NOT NULL, graph INTEGER NOT NULL,
  operation INTEGER NOT NULL, segment INTEGER NOT NULL, position INTEGER NOT NULL,
  PRIMARY KEY(tenant, trace, span)) WITHOUT ROWID;
CREATE TABLE operation(
  id INTEGER PRIMARY KEY, trace BLOB NOT NULL, span BLOB NOT NULL,
  start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE produced(
  graph INTEGER NOT NULL, record INTEGER NOT NULL, version INTEGER NOT NULL,
  operation INTEGER NOT NULL, PRIMARY KEY(graph, record, version, operation)) WITHOUT ROWID;
CREATE TABLE used(
  graph INTEGER NOT NULL, record INTEGER NOT NULL, operation INTEGER NOT NULL,
  PRIMARY KEY(graph, record, operation)) WITHOUT ROWID;
CREATE TABLE named(
  tenant TEXT NOT NULL, kind INTEGER NOT NULL, name TEXT NOT NULL, graph INTEGER NOT NULL,
  operation INTEGER NOT NULL, PRIMARY KEY(tenant, kind, name, operation)) WITHOUT ROWID;
CREATE TABLE value(
  id INTEGER PRIMARY KEY, graph INTEGER NOT NULL, ref TEXT NOT NULL, cut INTEGER NOT NULL,
  verified INTEGER NOT NULL, content BLOB NOT NULL, UNIQUE(graph, ref));
CREATE VIRTUAL TABLE value_text USING fts5(scope, body, content='', tokenize='unicode61');
CREATE TABLE flag(
  tenant TEXT NOT NULL, origin TEXT NOT NULL, graph_id TEXT NOT NULL, at_ns INTEGER NOT NULL,
  body BLOB NOT NULL, PRIMARY KEY(tenant, origin)) WITHOUT ROWID;
CREATE TABLE sequence(
  tenant TEXT NOT NULL, process TEXT NOT NULL, number INTEGER NOT NULL, start_ns INTEGER NOT NULL,
  end_ns INTEGER NOT NULL, farewell INTEGER NOT NULL,
  PRIMARY KEY(tenant, process, number)) WITHOUT ROWID;
CREATE TABLE counter(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE cursor(name TEXT PRIMARY KEY, segment INTEGER NOT NULL, position INTEGER NOT NULL);
"""

# Flags are found by what they name, and flags and graphs in the order in which they changed. Flags
# are read from the log anew: the projection starts over, which changes nothing else.
FACTS_2 = """
ALTER TABLE graph ADD COLUMN changed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX graph_changed ON graph(tenant, changed);
DROP TABLE flag;
CREATE TABLE flag(
  tenant TEXT NOT NULL, origin TEXT NOT NULL, graph_id TEXT NOT NULL, at_ns INTEGER NOT NULL,
  target TEXT NOT NULL, changed INTEGER NOT NULL, body BLOB NOT NULL,
  PRIMARY KEY(tenant, origin)) WITHOUT ROWID;
CREATE INDEX flag_target ON flag(tenant, target);
CREATE INDEX flag_changed ON flag(tenant, changed);
INSERT INTO counter VALUES ('epoch', abs(random() % 9007199254740992));
DELETE FROM cursor WHERE name = 'projection';
"""

CASES_1 = """
CREATE TABLE lease(
  case_id TEXT PRIMARY KEY, worker TEXT NOT NULL, until_ns INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE verdict(
  case_id TEXT NOT NULL, revision INTEGER NOT NULL, graph_id TEXT NOT NULL, created TEXT NOT NULL,
  body TEXT NOT NULL, PRIMARY KEY(case_id, revision)) WITHOUT ROWID;
CREATE TABLE outbox(
  id TEXT PRIMARY KEY, case_id TEXT NOT NULL, revision INTEGER NOT NULL, signal TEXT NOT NULL,
  payload BLOB NOT NULL, state TEXT NOT NULL DEFAULT 'pending', attempts INTEGER NOT NULL DEFAULT 0,
  not_before_ns INTEGER NOT NULL DEFAULT 0, delivered_ns INTEGER,
  last_error TEXT NOT NULL DEFAULT '');
CREATE INDEX outbox_due ON outbox(state, not_before_ns);
"""

# Leases moved into the queue of cases. Verdicts found before there was one stay as they are.
CASES_2 = """
DROP TABLE lease;
CREATE TABLE task(
  case_id TEXT PRIMARY KEY, trace_id TEXT NOT NULL, span_id TEXT NOT NULL, graph_id TEXT NOT NULL,
  answered_ns INTEGER NOT NULL, response_id TEXT NOT NULL, conversation_id TEXT NOT NULL,
  state TEXT NOT NULL, since_ns INTEGER NOT NULL, due_ns INTEGER,
  not_before_ns INTEGER NOT NULL DEFAULT 0, step_ns INTEGER NOT NULL DEFAULT 0,
  touched INTEGER NOT NULL DEFAULT 0, worker TEXT NOT NULL DEFAULT '',
  leased_until_ns INTEGER NOT NULL DEFAULT 0, token INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0, last_error TEXT NOT NULL DEFAULT '') WITHOUT ROWID;
CREATE INDEX task_due ON task(due_ns);
CREATE INDEX task_state ON task(state);
CREATE INDEX task_answered ON task(answered_ns, case_id);
CREATE INDEX task_worker ON task(worker) WHERE worker <> '';
CREATE TABLE concern(
  graph_id TEXT NOT NULL, case_id TEXT NOT NULL, PRIMARY KEY(graph_id, case_id)) WITHOUT ROWID;
CREATE INDEX concern_case ON concern(case_id);
CREATE INDEX outbox_case ON outbox(case_id, revision);
CREATE TABLE read_until(
  id INTEGER PRIMARY KEY CHECK(id = 0), epoch INTEGER NOT NULL, number INTEGER NOT NULL);
"""

# Verdicts are counted without reading them.
CASES_3 = """
ALTER TABLE verdict ADD COLUMN label TEXT GENERATED ALWAYS AS (json_array(
  json_extract(body, '$.stage'), json_extract(body, '$.error_type'),
  json_extract(body, '$.method'))) VIRTUAL;
CREATE INDEX verdict_label ON verdict(case_id, revision, label);
"""

FACTS: Sequence[str] = (FACTS_1, FACTS_2)
CASES: Sequence[str] = (CASES_1, CASES_2, CASES_3)
"""One script per version, oldest first: a file of version n lacks the scripts from n on."""


def migrate(connection: sqlite3.Connection, scripts: Sequence[str], name: str) -> None:
    """Bring the file behind ``connection`` to the newest version.

    Raises:
        WrongUseError: a newer release wrote the file.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > len(scripts):
            raise WrongUseError(
                f"{name} has schema version {version} and this release knows {len(scripts)}: "
                "use the release that wrote it, or a newer one"
            )
        for script in scripts[version:]:
            for statement in script.split(";\n"):
                if statement.strip():
                    connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(scripts)}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
