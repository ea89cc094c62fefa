r"""Views for dashboards in PostgreSQL, in a schema of their own: what was found about answers.

A role sees the views and nothing else, of the tenants that it was given:

    CREATE ROLE memtrace_reader LOGIN PASSWORD '…';       -- before or after the tables are made
    SELECT memtrace_report.allow('memtrace_reader');                   -- every tenant
    SELECT memtrace_report.allow('memtrace_acme', '{acme}');           -- these alone

A role of the name ``memtrace_reader`` that is there when the views are made gets every tenant.
Which rows a role sees is decided by its name, so that no statement of a dashboard can widen it. An
explanation quotes content where content was captured; a role that must not read it gets no access.

Verdicts are JSON in ``bytea``. What dashboards filter, sort and count by stands beside them in
columns that the server generates: they come, change and are erased with the row. A body that
cannot be read gives nulls, never an error: nothing here may keep a verdict from being stored.

    SELECT create_reference_table('memtrace_report.reader');           -- with Citus
"""

from __future__ import annotations

from memtrace_collector.store.postgres.migrations import Part

# jsonb cannot hold U+0000; an escaped one is replaced unless its backslash is itself escaped.
_READING = r"""
CREATE SCHEMA IF NOT EXISTS memtrace_report;
CREATE FUNCTION memtrace_report.name(raw BYTEA) RETURNS TEXT LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN convert_from(raw, 'UTF8');
EXCEPTION WHEN OTHERS THEN
  RETURN encode(raw, 'escape');
END $$;
CREATE FUNCTION memtrace_report.moment(written TEXT) RETURNS TIMESTAMPTZ
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN CASE WHEN written ~ '^\d{4}-\d\d-\d\dT.*(Z|[+-]\d\d:\d\d)$' THEN written::timestamptz END;
EXCEPTION WHEN OTHERS THEN
  RETURN NULL;
END $$;
CREATE FUNCTION memtrace_report.moment_of(ns NUMERIC) RETURNS TIMESTAMPTZ
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN ns > 0 AND ns < 1e19 THEN to_timestamp((ns / 1e9)::float8) END
$$;
CREATE FUNCTION memtrace_report.number(value JSONB) RETURNS NUMERIC LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN jsonb_typeof(value) = 'number' AND abs(value::numeric) < 1e19
    THEN value::numeric END
$$;
CREATE FUNCTION memtrace_report.items(value JSONB) RETURNS JSONB LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE jsonb_typeof(value) WHEN 'array' THEN value ELSE '[]' END
$$;
CREATE FUNCTION memtrace_report.document(body BYTEA) RETURNS JSONB
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE written TEXT;
BEGIN
  written := convert_from(body, 'UTF8');
  IF strpos(written, '\u0000') > 0 THEN
    written := regexp_replace(written, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g');
  END IF;
  RETURN written::jsonb;
EXCEPTION WHEN OTHERS THEN
  RETURN NULL;
END $$;
CREATE FUNCTION memtrace_report.path(body BYTEA) RETURNS JSONB LANGUAGE sql IMMUTABLE AS $$
  SELECT memtrace_report.items(memtrace_report.document(body) -> 'path')
$$;
CREATE FUNCTION memtrace_report.summary(body BYTEA) RETURNS JSONB LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  verdict JSONB := memtrace_report.document(body);
  decisive JSONB := verdict #> '{decisive,0}';
  lost JSONB := jsonb_path_query_first(
    verdict, '$.path[*] ? (@.span.traceId == $trace && @.span.spanId == $span)',
    jsonb_build_object('trace', decisive -> 'traceId', 'span', decisive -> 'spanId'));
  answer JSONB := jsonb_path_query_first(verdict, '$.path[*] ? (@.kind == "answer")');
BEGIN
  RETURN jsonb_build_object(
    'graph_id', verdict ->> 'graph_id', 'score', memtrace_report.number(verdict -> 'score'),
    'lineage', verdict ->> 'lineage', 'absence', verdict ->> 'absence',
    'explanation', verdict ->> 'explanation', 'case_trace', verdict ->> 'case_trace',
    'answer_trace', verdict #>> '{answer,traceId}', 'answer_span', verdict #>> '{answer,spanId}',
    'answer_service', answer ->> 'service',
    'decisive_trace', decisive ->> 'traceId', 'decisive_span', decisive ->> 'spanId',
    'decisive_service', lost ->> 'service', 'decisive_system', lost ->> 'system',
    'decisive_operation', lost ->> 'operation',
    'decisive_ns', memtrace_report.number(lost -> 'time_ns'));
END $$;
CREATE FUNCTION memtrace_report.edges(path JSONB)
RETURNS TABLE(source INT, target INT, carries TEXT) LANGUAGE sql IMMUTABLE AS $$
  WITH hop AS (
    SELECT position::int AS position, memtrace_report.items(value -> 'versions') AS versions
      FROM jsonb_array_elements(path) WITH ORDINALITY AS each(value, position)),
  carried AS (
    SELECT max(earlier.position) AS source, later.position AS target, version.ref
      FROM hop later, jsonb_array_elements_text(later.versions) AS version(ref), hop earlier
     WHERE earlier.position < later.position AND earlier.versions ? version.ref
     GROUP BY later.position, version.ref),
  joined AS (
    SELECT source, target, string_agg(ref, ', ' ORDER BY ref) AS carries
      FROM carried GROUP BY source, target)
  SELECT coalesce(joined.source, hop.position - 1), hop.position, joined.carries
    FROM hop LEFT JOIN joined ON joined.target = hop.position WHERE hop.position > 1
$$;
"""

# Who may see a row is decided here, once, by the role that asks.
_ROWS = """
ALTER TABLE memtrace.verdict
  ADD COLUMN report_tenant TEXT COLLATE "C"
    GENERATED ALWAYS AS (memtrace_report.name(tenant)) STORED,
  ADD COLUMN report_created TIMESTAMPTZ
    GENERATED ALWAYS AS (memtrace_report.moment(created)) STORED,
  ADD COLUMN report JSONB GENERATED ALWAYS AS (memtrace_report.summary(body)) STORED;
CREATE INDEX verdict_report ON memtrace.verdict(report_tenant, report_created);
CREATE INDEX outbox_open ON memtrace.outbox(state) WHERE state <> 'delivered';
CREATE TABLE memtrace_report.reader(role NAME PRIMARY KEY, tenants BYTEA[]);
CREATE VIEW memtrace.reported_verdict WITH (security_barrier) AS
SELECT v.* FROM memtrace.verdict v
WHERE NOT EXISTS (SELECT FROM memtrace.verdict newer WHERE newer.tenant = v.tenant
    AND newer.case_id = v.case_id AND newer.revision > v.revision)
  AND EXISTS (SELECT FROM memtrace_report.reader r WHERE r.role = current_user
    AND (r.tenants IS NULL OR v.tenant = ANY(r.tenants)));
CREATE VIEW memtrace.reported_delivery WITH (security_barrier) AS
SELECT o.* FROM memtrace.outbox o
WHERE EXISTS (SELECT FROM memtrace_report.reader r WHERE r.role = current_user
    AND (r.tenants IS NULL OR o.tenant = ANY(r.tenants)));
"""

_VIEWS = """
CREATE VIEW memtrace_report.failure WITH (security_barrier) AS
SELECT report_tenant AS tenant, case_id, revision, report_created AS created, stage, error_type,
  stage NOT IN ('not_memory', 'unknown') AS is_memory_fault, method,
  (report ->> 'score')::float8 AS score, report ->> 'graph_id' AS graph_id,
  report ->> 'answer_trace' AS answer_trace, report ->> 'answer_span' AS answer_span,
  report ->> 'answer_service' AS answer_service,
  report ->> 'decisive_trace' AS decisive_trace, report ->> 'decisive_span' AS decisive_span,
  report ->> 'decisive_service' AS decisive_service,
  report ->> 'decisive_operation' AS decisive_operation,
  report ->> 'decisive_system' AS decisive_system,
  memtrace_report.moment_of((report ->> 'decisive_ns')::numeric) AS decisive_time,
  report ->> 'lineage' AS lineage, report ->> 'absence' AS absence,
  report ->> 'explanation' AS explanation, report ->> 'case_trace' AS case_trace
FROM memtrace.reported_verdict;
CREATE VIEW memtrace_report.hop WITH (security_barrier) AS
SELECT v.report_tenant AS tenant, v.case_id, v.revision, hop.position::int AS position,
  hop.value ->> 'kind' AS kind, hop.value ->> 'outcome' AS outcome,
  hop.value #>> '{span,traceId}' AS trace, hop.value #>> '{span,spanId}' AS span,
  hop.value ->> 'service' AS service, hop.value ->> 'system' AS system,
  hop.value ->> 'operation' AS operation,
  memtrace_report.moment_of(memtrace_report.number(hop.value -> 'time_ns')) AS at,
  hop.value ->> 'record' AS record, hop.value ->> 'says' AS says,
  coalesce(hop.value -> 'decisive' = 'true', false) AS is_decisive
FROM memtrace.reported_verdict v,
  jsonb_array_elements(memtrace_report.path(v.body)) WITH ORDINALITY AS hop(value, position);
CREATE VIEW memtrace_report.hop_edge WITH (security_barrier) AS
SELECT v.report_tenant AS tenant, v.case_id, v.revision, edge.source, edge.target, edge.carries
FROM memtrace.reported_verdict v, memtrace_report.edges(memtrace_report.path(v.body)) AS edge;
CREATE VIEW memtrace_report.delivery WITH (security_barrier) AS
SELECT memtrace_report.name(tenant) AS tenant, destination, state, signal, case_id, revision,
  attempts, memtrace_report.moment_of(not_before_ns) AS not_before,
  memtrace_report.moment_of(delivered_ns) AS delivered,
  memtrace_report.name(last_error) AS last_error
FROM memtrace.reported_delivery;
"""

_ACCESS = """
CREATE FUNCTION memtrace_report.allow(reader NAME, tenants TEXT[] DEFAULT NULL) RETURNS VOID
LANGUAGE plpgsql AS $$
DECLARE
  each NAME;
  keys BYTEA[] := (SELECT array_agg(convert_to(name, 'UTF8')) FROM unnest(allow.tenants) name);
BEGIN
  EXECUTE format('GRANT USAGE ON SCHEMA memtrace_report TO %I', reader);
  FOR each IN SELECT viewname FROM pg_views WHERE schemaname = 'memtrace_report' LOOP
    EXECUTE format('GRANT SELECT ON memtrace_report.%I TO %I', each, reader);
  END LOOP;
  IF allow.tenants IS NOT NULL THEN
    keys := coalesce(keys, '{}');
  END IF;
  INSERT INTO memtrace_report.reader VALUES (allow.reader, keys)
    ON CONFLICT ON CONSTRAINT reader_pkey DO UPDATE SET tenants = excluded.tenants;
END $$;
SELECT memtrace_report.allow(current_user);
SELECT memtrace_report.allow(rolname) FROM pg_roles
 WHERE rolname = 'memtrace_reader' AND rolname <> current_user;
"""

REPORT_1 = _READING + _ROWS + _VIEWS + _ACCESS

REPORT = Part("report", (REPORT_1,))
"""Made after the tables of ``cases``, which it reads."""
