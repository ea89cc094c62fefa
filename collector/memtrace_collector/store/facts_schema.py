"""Tables of the fact store, one script per version."""

from __future__ import annotations

from collections.abc import Sequence

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

FACTS: Sequence[str] = (FACTS_1, FACTS_2)
"""Oldest first: a file of version n lacks the scripts from n on."""
