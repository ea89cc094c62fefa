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

CASES: Sequence[str] = (CASES_1, CASES_2, CASES_3)
"""Oldest first: a file of version n lacks the scripts from n on."""
