"""Tables of the fact store, one script per version."""

from __future__ import annotations

from collections.abc import Sequence

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

# Few and narrow rows (see `keys`), values in a file of their own: everything is projected anew.
#
# Operations lie clustered by graph: the upper bits of their id are the graph's. They are a rowid
# table because without rowid a row of more than a quarter of a page would take pages of its own.
# What an operation uses is one row beside it, `uses`, and stands under each record in `user` only
# up to the graph's `indexed` (the number of an operation): `unindexed` more are read one by one.
# Ids of graphs are never given again, for other files and readers name graphs by them.
FACTS_3 = """
DROP TABLE value_text;
DROP TABLE value;
DROP TABLE named;
DROP TABLE used;
DROP TABLE produced;
DROP TABLE operation;
DROP TABLE span;
DROP TABLE graph;
DELETE FROM flag;
DELETE FROM sequence;
DELETE FROM counter;
DELETE FROM cursor WHERE name = 'projection';
INSERT INTO counter VALUES ('epoch', abs(random() % 9007199254740992));
CREATE TABLE graph(
  id INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, graph_id TEXT NOT NULL,
  operations INTEGER NOT NULL DEFAULT 0, first_ns INTEGER, last_ns INTEGER,
  changed INTEGER NOT NULL DEFAULT 0, indexed INTEGER NOT NULL DEFAULT 0,
  unindexed INTEGER NOT NULL DEFAULT 0, removals INTEGER NOT NULL DEFAULT 0,
  UNIQUE(tenant, graph_id));
CREATE INDEX graph_changed ON graph(tenant, changed);
CREATE TABLE span(
  key INTEGER NOT NULL, operation INTEGER NOT NULL, segment INTEGER NOT NULL,
  position INTEGER NOT NULL, PRIMARY KEY(key, operation)) WITHOUT ROWID;
CREATE TABLE operation(
  id INTEGER PRIMARY KEY, trace BLOB NOT NULL, span BLOB NOT NULL,
  start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE produced(
  graph INTEGER NOT NULL, ref INTEGER NOT NULL, number INTEGER NOT NULL,
  PRIMARY KEY(graph, ref, number)) WITHOUT ROWID;
CREATE TABLE uses(id INTEGER PRIMARY KEY, start_ns INTEGER NOT NULL, keys BLOB NOT NULL);
CREATE TABLE user(
  graph INTEGER NOT NULL, record INTEGER NOT NULL, number INTEGER NOT NULL,
  PRIMARY KEY(graph, record, number)) WITHOUT ROWID;
CREATE TABLE named(
  name INTEGER NOT NULL, operation INTEGER NOT NULL,
  PRIMARY KEY(name, operation)) WITHOUT ROWID;
"""

FACTS: Sequence[str] = (FACTS_1, FACTS_2, FACTS_3)
"""Oldest first: a file of version n lacks the scripts from n on."""

VALUES: Sequence[str] = (
    """
CREATE TABLE graph(
  id INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, graph_id TEXT NOT NULL,
  last INTEGER NOT NULL DEFAULT 0, UNIQUE(tenant, graph_id));
CREATE INDEX graph_last ON graph(last);
CREATE TABLE value(
  id INTEGER PRIMARY KEY, ref TEXT NOT NULL, cut INTEGER NOT NULL, verified INTEGER NOT NULL,
  at_ns INTEGER NOT NULL, content BLOB NOT NULL);
CREATE INDEX value_age ON value(at_ns);
CREATE TABLE value_of(
  graph INTEGER NOT NULL, ref INTEGER NOT NULL, number INTEGER NOT NULL,
  PRIMARY KEY(graph, ref, number)) WITHOUT ROWID;
CREATE TABLE removed(
  number INTEGER PRIMARY KEY AUTOINCREMENT, first INTEGER NOT NULL, last INTEGER NOT NULL);
CREATE TABLE counter(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO counter VALUES ('epoch', abs(random() % 9007199254740992));
""",
)
"""Values, clustered by graph as operations are. `graph.last`: the number of its last value.
`removed`: ranges of ids that are no more, for an index that follows."""

TEXT: Sequence[str] = (
    """
CREATE VIRTUAL TABLE value_text USING fts5(scope, body, ref UNINDEXED, tokenize='unicode61');
CREATE TABLE indexed(graph INTEGER PRIMARY KEY, last INTEGER NOT NULL);
CREATE TABLE progress(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
""",
)
"""Full text of the values, by their ids. The text stands in the table a second time, for without
it an entry could not be taken out again."""
