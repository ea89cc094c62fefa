"""Full-text search over the values of one graph.

Texts are split by :mod:`memtrace_collector.graph.terms`, as in every store, and ranked by BM25
over the graph's own texts (k1 1.2, b 0.75, a term's weight as SQLite's FTS5 computes it); equals
by reference. SQLite weighs terms over all graphs: with several, the order may differ in that.
Each term is led by its graph, so that the index of one graph's terms is a stretch of the whole.
A text is taken in when nothing comes in, or by whoever searches its graph before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from memtrace_collector.graph import content
from memtrace_collector.graph.facts import Value
from memtrace_collector.graph.terms import Wanted, terms
from memtrace_collector.store import encoding
from memtrace_collector.store.postgres.database import Connection, Database

_PART = 1_000
"""Values that are made searchable in one transaction."""
_MOST_SEEN = 256
"""How often PostgreSQL counts a term in one text."""
_LONGEST_TERM = 500
"""In characters; what goes on longer is found by its beginning."""
_MOST_TEXT_BYTES = 500_000
"""Of a text's terms, about half of what a tsvector may hold."""
_SCOPE_TERMS = 2
"""By which SQLite's index takes every text for longer."""
_PENDING = (
    "DELETE FROM unindexed WHERE (graph, key) IN (SELECT graph, key FROM unindexed"
    " WHERE graph = %s LIMIT %s FOR UPDATE SKIP LOCKED) RETURNING key"
)
_TEXTS = "SELECT key, ref, content FROM value WHERE graph = %s AND key = ANY(%s)"
_PUT = (
    "INSERT INTO value_text(graph, key, kind, length, terms) VALUES (%s, %s, %s, %s, %s::tsvector)"
    " ON CONFLICT (graph, key) DO UPDATE SET length = excluded.length, terms = excluded.terms"
)
_FOUND = """
WITH wanted AS (
  SELECT * FROM unnest(%(leads)s::text[], %(open)s::bool[], %(weights)s::int[])
    WITH ORDINALITY AS w(lead, open, weight, place)),
texts AS (
  SELECT count(*)::float8 AS number, avg(length)::float8 AS average
    FROM value_text WHERE graph = %(graph)s),
hit AS (
  SELECT v.key, v.kind, v.length, w.place, w.weight, sum(cardinality(u.positions)) AS seen
    FROM value_text v CROSS JOIN LATERAL unnest(v.terms) u
    JOIN wanted w ON u.lexeme = w.lead OR (w.open AND u.lexeme ^@ w.lead)
   WHERE v.graph = %(graph)s AND v.terms @@ %(query)s::tsquery
   GROUP BY v.key, v.kind, v.length, w.place, w.weight),
rarity AS (
  SELECT place, greatest(1e-6, ln((number - count(*) + 0.5) / (count(*) + 0.5))) AS rare
    FROM hit, texts GROUP BY place, number),
best AS (
  SELECT key, sum(weight * rare * seen * 2.2 / (seen + 1.2 * (0.25 + 0.75 * length / average))
                  ORDER BY place) AS score
    FROM hit JOIN rarity USING (place), texts
   WHERE cardinality(%(kinds)s::text[]) = 0 OR kind = ANY(%(kinds)s)
   GROUP BY key)
SELECT v.ref, v.cut, v.verified, v.content
  FROM best JOIN value v ON v.graph = %(graph)s AND v.key = best.key
 ORDER BY best.score DESC, v.ref LIMIT %(limit)s
"""


class Found(NamedTuple):
    ref: bytes
    cut: bool
    verified: bool
    content: bytes


def search(
    database: Database, graph: int, sought: Sequence[Wanted], kinds: Collection[str], limit: int
) -> list[Found]:
    """The values of the graph with any of the terms, best first; ``kinds``: none means all."""
    while database.transaction(lambda connection: _make_searchable(connection, graph)):
        pass
    leads = [_led(graph, term.lead) for term in sought]
    query = " | ".join(
        f"'{lead}':*" if term.open or len(term.lead) > _LONGEST_TERM else f"'{lead}'"
        for lead, term in zip(leads, sought)
    )
    parameters = {
        "graph": graph,
        "leads": leads,
        "open": [term.open for term in sought],
        "weights": [term.weight for term in sought],
        "kinds": list(kinds),
        "query": query,
        "limit": limit,
    }
    rows = database.run(
        lambda connection: connection.execute(_FOUND, parameters, binary=True).fetchall()
    )
    return [Found(*row) for row in rows]


def make_some_searchable(connection: Connection) -> bool:
    """Take in some values of whatever graph that are not; False when there are none."""
    row = connection.execute("SELECT graph FROM unindexed LIMIT 1").fetchone()
    return row is not None and _make_searchable(connection, row[0])


def _make_searchable(connection: Connection, graph: int) -> bool:
    """Take in some of the graph's values that are not; were there any?"""
    pending = connection.execute(_PENDING, (graph, _PART), binary=True).fetchall()
    if pending:
        texts = connection.execute(_TEXTS, (graph, [row[0] for row in pending]), binary=True)
        rows = [_text_row(graph, *row) for row in sorted(texts.fetchall())]
        with connection.cursor() as cursor:
            cursor.executemany(_PUT, rows)
    return bool(pending)


def _text_row(graph: int, key: bytes, ref: bytes, body: bytes) -> tuple[int, bytes, str, int, str]:
    value = Value(graph_id="", ref=ref.decode(), content=encoding.content(body))
    found = terms(content.plain_text(value))
    length = _SCOPE_TERMS + len(found)
    return graph, key, value.ref.partition(":")[0], length, _vector(graph, found)


def _vector(graph: int, found: Sequence[str]) -> str:
    """A tsvector whose positions only say how often a term occurs. A term is made of word
    characters: there is nothing in it to quote."""
    entries: list[str] = []
    size = 0
    for term, count in Counter(found).items():
        entry = f"'{_led(graph, term)}':{_positions(min(count, _MOST_SEEN))}"
        size += len(entry.encode())
        if size > _MOST_TEXT_BYTES:
            break
        entries.append(entry)
    return " ".join(entries)


def _positions(count: int) -> str:
    return ",".join(map(str, range(1, count + 1)))


def _led(graph: int, term: str) -> str:
    return f"{graph & (1 << 64) - 1:x}/{term[:_LONGEST_TERM]}"
