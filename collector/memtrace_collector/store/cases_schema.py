"""Tables of the case store, one script per version."""

from __future__ import annotations

from collections.abc import Sequence

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

# Every row belongs to a tenant, a row of the outbox to a destination; the log's cursors are kept
# here. What there was belongs to the tenant and the destination that were the only ones.
CASES_4 = """
CREATE TABLE task_of(
  tenant TEXT NOT NULL, case_id TEXT NOT NULL, trace_id TEXT NOT NULL, span_id TEXT NOT NULL,
  graph_id TEXT NOT NULL, answered_ns INTEGER NOT NULL, response_id TEXT NOT NULL,
  conversation_id TEXT NOT NULL, state TEXT NOT NULL, since_ns INTEGER NOT NULL, due_ns INTEGER,
  not_before_ns INTEGER NOT NULL DEFAULT 0, step_ns INTEGER NOT NULL DEFAULT 0,
  touched INTEGER NOT NULL DEFAULT 0, worker TEXT NOT NULL DEFAULT '',
  leased_until_ns INTEGER NOT NULL DEFAULT 0, token INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0, last_error TEXT NOT NULL DEFAULT '',
  PRIMARY KEY(tenant, case_id)) WITHOUT ROWID;
INSERT INTO task_of SELECT 'default', case_id, trace_id, span_id, graph_id, answered_ns,
  response_id, conversation_id, state, since_ns, due_ns, not_before_ns, step_ns, touched, worker,
  leased_until_ns, token, attempts, last_error FROM task;
DROP TABLE task;
ALTER TABLE task_of RENAME TO task;
CREATE INDEX task_due ON task(tenant, due_ns);
CREATE INDEX task_state ON task(tenant, state);
CREATE INDEX task_answered ON task(tenant, answered_ns, case_id);
CREATE INDEX task_worker ON task(tenant, worker) WHERE worker <> '';
CREATE TABLE concern_of(
  tenant TEXT NOT NULL, graph_id TEXT NOT NULL, case_id TEXT NOT NULL,
  PRIMARY KEY(tenant, graph_id, case_id)) WITHOUT ROWID;
INSERT INTO concern_of SELECT 'default', graph_id, case_id FROM concern;
DROP TABLE concern;
ALTER TABLE concern_of RENAME TO concern;
CREATE INDEX concern_case ON concern(tenant, case_id);
CREATE TABLE verdict_of(
  tenant TEXT NOT NULL, case_id TEXT NOT NULL, revision INTEGER NOT NULL, graph_id TEXT NOT NULL,
  created TEXT NOT NULL, body TEXT NOT NULL,
  label TEXT GENERATED ALWAYS AS (json_array(json_extract(body, '$.stage'),
    json_extract(body, '$.error_type'), json_extract(body, '$.method'))) VIRTUAL,
  PRIMARY KEY(tenant, case_id, revision)) WITHOUT ROWID;
INSERT INTO verdict_of SELECT 'default', case_id, revision, graph_id, created, body FROM verdict;
DROP TABLE verdict;
ALTER TABLE verdict_of RENAME TO verdict;
CREATE INDEX verdict_label ON verdict(tenant, case_id, revision, label);
CREATE INDEX verdict_graph ON verdict(tenant, graph_id);
CREATE TABLE outbox_of(
  number INTEGER PRIMARY KEY, tenant TEXT NOT NULL, destination TEXT NOT NULL, id TEXT NOT NULL,
  case_id TEXT NOT NULL, revision INTEGER NOT NULL, signal TEXT NOT NULL, payload BLOB NOT NULL,
  state TEXT NOT NULL DEFAULT 'pending', attempts INTEGER NOT NULL DEFAULT 0,
  not_before_ns INTEGER NOT NULL DEFAULT 0, delivered_ns INTEGER,
  last_error TEXT NOT NULL DEFAULT '', UNIQUE(tenant, destination, id));
INSERT INTO outbox_of(tenant, destination, id, case_id, revision, signal, payload, state, attempts,
  not_before_ns, delivered_ns, last_error)
  SELECT 'default', 'default', id, case_id, revision, signal, payload, state, attempts,
  not_before_ns, delivered_ns, last_error FROM outbox ORDER BY rowid;
DROP TABLE outbox;
ALTER TABLE outbox_of RENAME TO outbox;
CREATE INDEX outbox_due ON outbox(tenant, state, destination, not_before_ns);
CREATE INDEX outbox_case ON outbox(tenant, case_id, revision);
CREATE TABLE read_until_of(
  tenant TEXT PRIMARY KEY, epoch INTEGER NOT NULL, number INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO read_until_of SELECT 'default', epoch, number FROM read_until;
DROP TABLE read_until;
ALTER TABLE read_until_of RENAME TO read_until;
CREATE TABLE cursor(
  name TEXT PRIMARY KEY, segment INTEGER NOT NULL, offset INTEGER NOT NULL) WITHOUT ROWID;
"""

# A row is in the hands of one sender at a time.
CASES_5 = """
ALTER TABLE outbox ADD COLUMN sender TEXT NOT NULL DEFAULT '';
ALTER TABLE outbox ADD COLUMN leased_until_ns INTEGER NOT NULL DEFAULT 0;
"""

# Rows that were delivered and still have their payload.
CASES_6 = """
CREATE INDEX outbox_kept ON outbox(tenant, delivered_ns)
  WHERE state = 'delivered' AND payload <> x'';
"""

# The newest verdicts are listed without sorting all.
CASES_7 = """
CREATE INDEX verdict_created ON verdict(tenant, created, case_id);
"""

# What persons said about verdicts.
CASES_8 = """
CREATE TABLE judgement(
  tenant TEXT NOT NULL, case_id TEXT NOT NULL, revision INTEGER NOT NULL, judged INTEGER NOT NULL,
  machine_stage TEXT NOT NULL, machine_type TEXT NOT NULL, stage TEXT NOT NULL,
  error_type TEXT NOT NULL, agreement TEXT NOT NULL,
  PRIMARY KEY(tenant, case_id, revision)) WITHOUT ROWID;
"""

CASES: Sequence[str] = (*(CASES_1, CASES_2, CASES_3, CASES_4, CASES_5, CASES_6, CASES_7, CASES_8),)
"""Oldest first: a file of version n lacks the scripts from n on."""
