"""Tables of the case store in PostgreSQL, one script per version.

Ids of cases, spans and rows of the outbox are digests that this program makes; names that come
from elsewhere stand as UTF-8 in ``bytea`` and are found by a digest, as in ``facts_schema``.
Every statement is about one tenant:

    SELECT create_distributed_table(name, 'tenant', colocate_with => 'task')
      FROM unnest('{concern,verdict,judgement,outbox,read_until}'::text[]) name;
    SELECT create_distributed_table('task', 'tenant');
    SELECT create_reference_table('place');
"""

from __future__ import annotations

from memtrace_collector.store.postgres.migrations import Part

CASES_1 = """
CREATE TABLE task(
  tenant BYTEA NOT NULL, case_id TEXT COLLATE "C" NOT NULL, trace_id TEXT NOT NULL,
  span_id TEXT NOT NULL, graph_id BYTEA NOT NULL, answered_ns BIGINT NOT NULL,
  response_id BYTEA NOT NULL, conversation_id BYTEA NOT NULL,
  state TEXT NOT NULL, since_ns BIGINT NOT NULL, due_ns BIGINT,
  not_before_ns BIGINT NOT NULL DEFAULT 0, step_ns BIGINT NOT NULL DEFAULT 0,
  touched INT NOT NULL DEFAULT 0, worker TEXT NOT NULL DEFAULT '',
  leased_until_ns BIGINT NOT NULL DEFAULT 0, token BIGINT NOT NULL DEFAULT 0,
  attempts INT NOT NULL DEFAULT 0, last_error BYTEA NOT NULL DEFAULT '',
  PRIMARY KEY(tenant, case_id));
CREATE INDEX task_due ON task(tenant, due_ns);
CREATE INDEX task_state ON task(tenant, state);
CREATE INDEX task_answered ON task(tenant, answered_ns, case_id);
CREATE INDEX task_worker ON task(tenant, worker) WHERE worker <> '';
CREATE TABLE concern(
  tenant BYTEA NOT NULL, graph_key BYTEA NOT NULL, case_id TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY(tenant, graph_key, case_id));
CREATE INDEX concern_case ON concern(tenant, case_id);
CREATE TABLE verdict(
  tenant BYTEA NOT NULL, case_id TEXT COLLATE "C" NOT NULL, revision BIGINT NOT NULL,
  graph_key BYTEA NOT NULL, created TEXT COLLATE "C" NOT NULL,
  stage TEXT NOT NULL, error_type TEXT NOT NULL, method TEXT NOT NULL,
  body BYTEA NOT NULL, PRIMARY KEY(tenant, case_id, revision));
CREATE INDEX verdict_graph ON verdict(tenant, graph_key);
CREATE TABLE outbox(
  tenant BYTEA NOT NULL, number BIGINT GENERATED ALWAYS AS IDENTITY,
  destination TEXT NOT NULL, id TEXT NOT NULL, case_id TEXT NOT NULL, revision BIGINT NOT NULL,
  signal TEXT NOT NULL, payload BYTEA NOT NULL, state TEXT NOT NULL DEFAULT 'pending',
  attempts INT NOT NULL DEFAULT 0, not_before_ns BIGINT NOT NULL DEFAULT 0,
  delivered_ns BIGINT, last_error BYTEA NOT NULL DEFAULT '', PRIMARY KEY(tenant, destination, id));
CREATE INDEX outbox_due ON outbox(tenant, state, destination, not_before_ns);
CREATE INDEX outbox_case ON outbox(tenant, case_id, revision);
CREATE TABLE read_until(
  tenant BYTEA PRIMARY KEY, epoch BIGINT NOT NULL, number BIGINT NOT NULL);
CREATE TABLE place(
  name TEXT PRIMARY KEY, segment BIGINT NOT NULL, position BIGINT NOT NULL);
"""

# A row is in the hands of one sender at a time, who finds the next one without sorting all.
CASES_2 = """
DROP INDEX outbox_due;
CREATE INDEX outbox_due ON outbox(tenant, state, destination, not_before_ns, number);
ALTER TABLE outbox ADD COLUMN sender TEXT NOT NULL DEFAULT '',
  ADD COLUMN leased_until_ns BIGINT NOT NULL DEFAULT 0;
"""

# Rows that were delivered and still have their payload.
CASES_3 = """
CREATE INDEX outbox_kept ON outbox(tenant, delivered_ns)
  WHERE state = 'delivered' AND payload <> '';
"""

# The newest verdicts are listed without sorting all.
CASES_4 = """
CREATE INDEX verdict_created ON verdict(tenant, created, case_id);
"""

# What persons said about verdicts.
CASES_5 = """
CREATE TABLE judgement(
  tenant BYTEA NOT NULL, case_id TEXT COLLATE "C" NOT NULL, revision BIGINT NOT NULL,
  judged BIGINT NOT NULL, machine_stage TEXT NOT NULL, machine_type TEXT NOT NULL,
  stage TEXT NOT NULL, error_type TEXT NOT NULL, agreement TEXT NOT NULL,
  PRIMARY KEY(tenant, case_id, revision));
"""

CASES = Part("cases", (CASES_1, CASES_2, CASES_3, CASES_4, CASES_5))
