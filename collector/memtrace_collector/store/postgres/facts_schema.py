"""Tables of the fact store in PostgreSQL, one script per version.

Names may be of any length and hold any character, so they stand as UTF-8 in ``bytea`` (in byte
order, whatever the collation of the database) and are found by digests (see ``keys``), which fit
into an index. A graph's id is the digest of tenant and name, so that no process has to ask another
for it.

Distributed by Citus. No statement that reads or changes facts joins two of these groups: what a
trace, response, conversation or process leads to is read as keys, then graph by graph.

    SELECT create_distributed_table(name, 'graph', colocate_with => 'operation')
      FROM unnest('{operation,used,used_key,produced,value,unindexed,value_text}'::text[]) name;
    SELECT create_distributed_table('graph', 'id', colocate_with => 'operation');
    SELECT create_distributed_table('span', 'trace');
    SELECT create_distributed_table('named', 'name');
    SELECT create_distributed_table('sequence', 'process');
    SELECT create_distributed_table('flag', 'tenant', colocate_with => 'none');
    SELECT create_reference_table(name)
      FROM unnest('{log,cursor,counter,erasure,erasure_log}'::text[]) name;

What lists the graphs of a tenant (``graphs``, ``changes``) asks every node for its part.
"""

from __future__ import annotations

from memtrace_collector.store.postgres.migrations import Part

# An operation is a row that is read when it is found (operation), a narrow one that is scanned
# (used: the keys of the records it acted on and merely met; in long graphs it is later moved to a
# row per key, in used_key), one for what it is deduplicated by
# (span), and one for each version it produced. Nothing but span is checked for conflicts: an
# operation whose span is new has no other rows. Bodies are compact already: the server need not
# try to compress them.
FACTS_1 = """
CREATE TABLE graph(
  id BIGINT PRIMARY KEY, tenant BYTEA NOT NULL, name BYTEA NOT NULL,
  operations BIGINT NOT NULL DEFAULT 0, first_ns BIGINT, last_ns BIGINT,
  changed BIGINT NOT NULL DEFAULT 0, indexed BIGINT NOT NULL DEFAULT 0) WITH (fillfactor = 50);
CREATE INDEX graph_changed ON graph(tenant, changed);
CREATE TABLE operation(
  graph BIGINT NOT NULL, id BIGINT NOT NULL, start_ns BIGINT NOT NULL, end_ns BIGINT NOT NULL,
  trace BYTEA NOT NULL, span BYTEA NOT NULL, body BYTEA NOT NULL, PRIMARY KEY(graph, id));
ALTER TABLE operation ALTER body SET STORAGE EXTERNAL;
CREATE TABLE used(
  graph BIGINT NOT NULL, operation BIGINT NOT NULL, start_ns BIGINT NOT NULL,
  trace BYTEA NOT NULL, span BYTEA NOT NULL, acted INT[] NOT NULL, met INT[] NOT NULL,
  PRIMARY KEY(graph, operation));
CREATE TABLE used_key(
  graph BIGINT NOT NULL, record INT NOT NULL, is_acted BOOLEAN NOT NULL,
  operation BIGINT NOT NULL, start_ns BIGINT NOT NULL, trace BYTEA NOT NULL, span BYTEA NOT NULL);
CREATE INDEX used_key_record ON used_key(graph, record);
CREATE TABLE produced(
  graph BIGINT NOT NULL, ref BIGINT NOT NULL, operation BIGINT NOT NULL);
CREATE INDEX produced_ref ON produced(graph, ref) INCLUDE (operation);
CREATE TABLE log(id INT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE span(
  tenant BYTEA NOT NULL, trace BYTEA NOT NULL, span BYTEA NOT NULL, graph BIGINT NOT NULL,
  operation BIGINT NOT NULL, log INT NOT NULL, segment BIGINT NOT NULL, position BIGINT NOT NULL,
  PRIMARY KEY(tenant, trace, span));
CREATE TABLE named(
  tenant BYTEA NOT NULL, name BYTEA NOT NULL, graph BIGINT NOT NULL, operation BIGINT NOT NULL);
CREATE INDEX named_name ON named(tenant, name) INCLUDE (graph, operation);
CREATE TABLE value(
  graph BIGINT NOT NULL, key BYTEA NOT NULL, number BIGINT NOT NULL, ref BYTEA NOT NULL,
  at_ns BIGINT NOT NULL, cut BOOLEAN NOT NULL, verified BOOLEAN NOT NULL, content BYTEA NOT NULL,
  PRIMARY KEY(graph, key));
CREATE TABLE unindexed(graph BIGINT NOT NULL, key BYTEA NOT NULL, PRIMARY KEY(graph, key));
CREATE TABLE value_text(
  graph BIGINT NOT NULL, key BYTEA NOT NULL, kind TEXT NOT NULL, length INT NOT NULL,
  terms TSVECTOR NOT NULL, PRIMARY KEY(graph, key) INCLUDE (length));
CREATE INDEX value_text_terms ON value_text USING gin(terms);
CREATE TABLE flag(
  tenant BYTEA NOT NULL, key BYTEA NOT NULL, graph_key BYTEA NOT NULL, target BYTEA NOT NULL,
  at_ns BIGINT NOT NULL, origin BYTEA NOT NULL, changed BIGINT NOT NULL, body BYTEA NOT NULL,
  PRIMARY KEY(tenant, key));
CREATE INDEX flag_target ON flag(tenant, target);
CREATE INDEX flag_changed ON flag(tenant, changed);
CREATE TABLE sequence(
  tenant BYTEA NOT NULL, process BYTEA NOT NULL, number BIGINT NOT NULL,
  start_ns BIGINT NOT NULL, end_ns BIGINT NOT NULL, farewell BOOLEAN NOT NULL,
  PRIMARY KEY(tenant, process, number));
CREATE TABLE cursor(
  log INT NOT NULL, name TEXT NOT NULL, segment BIGINT NOT NULL, position BIGINT NOT NULL,
  PRIMARY KEY(log, name));
CREATE TABLE counter(name TEXT PRIMARY KEY, value BIGINT NOT NULL);
INSERT INTO counter VALUES ('epoch', (random() * 9007199254740991)::bigint), ('change', 0);
CREATE SEQUENCE batch;
"""

# Orders to erase, and the logs that they are about.
FACTS_2 = """
CREATE TABLE erasure(
  id TEXT PRIMARY KEY, tenant BYTEA NOT NULL, is_whole BOOLEAN NOT NULL, graph_id BYTEA NOT NULL,
  given_ns BIGINT NOT NULL);
CREATE TABLE erasure_log(
  erasure TEXT NOT NULL, log INT NOT NULL, is_done BOOLEAN NOT NULL DEFAULT false,
  PRIMARY KEY(erasure, log));
CREATE INDEX erasure_log_open ON erasure_log(log) WHERE NOT is_done;
"""

# What goes whole with an order, and what each owner of a log found, as JSON.
FACTS_3 = """
ALTER TABLE erasure ADD COLUMN targets TEXT NOT NULL DEFAULT '[]';
ALTER TABLE erasure_log ADD COLUMN report TEXT NOT NULL DEFAULT '{}';
"""

FACTS = Part("facts", (FACTS_1, FACTS_2, FACTS_3))
