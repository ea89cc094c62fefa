#!/bin/sh
# The image of PostgreSQL runs this once, over an empty data folder: a database that belongs to
# memtrace-otel, and a role for dashboards, which sees the views of the schema memtrace_report.
set -eu

MEMTRACE_OWNER=$(cat "$MEMTRACE_SECRETS/postgres.owner")
MEMTRACE_READER=$(cat "$MEMTRACE_SECRETS/postgres.reader")
export MEMTRACE_OWNER MEMTRACE_READER

psql --no-psqlrc --no-password --quiet --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres <<'SQL'
\getenv owner MEMTRACE_OWNER
\getenv reader MEMTRACE_READER
CREATE ROLE memtrace LOGIN PASSWORD :'owner';
CREATE ROLE memtrace_reader LOGIN PASSWORD :'reader' CONNECTION LIMIT 20;
ALTER ROLE memtrace_reader SET default_transaction_read_only = on;
ALTER ROLE memtrace_reader SET statement_timeout = '30s';
CREATE DATABASE memtrace OWNER memtrace;
REVOKE ALL ON DATABASE memtrace, postgres FROM PUBLIC;
GRANT CONNECT ON DATABASE memtrace TO memtrace_reader;
SQL
