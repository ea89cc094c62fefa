"""Rendering: every format holds the graph, and hostile content stays content."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import networkx as nx
import pytest

from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.network import as_networkx
from memtrace_collector.graph.render import FORMATS, render
from memtrace_collector.store.in_memory import InMemoryFactStore
from tests.memtrace_collector.graph.build import GRAPH, facts, operation

HOSTILE = '</data><script>"; digraph {\\" }\x1b[31m\x00\n\u202eevil'
SAID = operation("t/i", "ingest", 1, outputs=["msg:1@a"], name=HOSTILE, service=HOSTILE)
MADE = operation("t/x", "extract", 2, inputs=["msg:1@a"], outputs=["fact:<b>&\"'@a"])


def rendered(output_format: str) -> str:
    store = InMemoryFactStore.of(facts(SAID, MADE, values={"msg:1@a": HOSTILE}))
    return render(Lookups(store), GRAPH, [MADE, SAID], output_format)


def test_networkx_has_operations_and_versions_and_edges_along_the_flow() -> None:
    graph = as_networkx([SAID, MADE], {MADE.key: (SAID.key,)})
    assert nx.has_path(graph, str(SAID.key), "fact:<b>&\"'@a")
    assert graph.nodes["msg:1@a"]["node_kind"] == "variable"
    relations = {data["relation"] for _, _, data in graph.edges(data=True)}
    assert relations == {"produced", "used", "follows"}


@pytest.mark.fault("F33")
def test_json_holds_operations_in_order_with_values_and_parents() -> None:
    document = json.loads(rendered("json"))
    first, second = document["operations"]
    assert first["spanId"] == SAID.span_id and document["values"]["msg:1@a"] == HOSTILE
    assert second["parents"] == [{"traceId": SAID.trace_id, "spanId": SAID.span_id}]


@pytest.mark.fault("F33")
def test_graphml_of_hostile_content_is_read_back() -> None:
    text = rendered("graphml")
    ET.fromstring(text)
    assert "fact:<b>&\"'@a" in nx.parse_graphml(text, force_multigraph=True)


@pytest.mark.fault("F33")
def test_dot_quotes_everything_that_comes_from_outside() -> None:
    lines = rendered("dot").splitlines()
    assert lines[0] == "digraph memory {" and lines[-1] == "}"
    for line in lines[2:-1]:
        unescaped = line.replace("\\\\", "").replace('\\"', "")
        assert unescaped.count('"') % 2 == 0 and line.endswith("];")


@pytest.mark.fault("F33")
def test_text_for_a_terminal_has_no_control_characters() -> None:
    text = rendered("text")
    assert "\x1b" not in text and "\x00" not in text and "\u202e" not in text
    assert len(text.splitlines()) == 6


def test_an_empty_graph_renders_in_every_format() -> None:
    for output_format in FORMATS:
        assert render(Lookups(InMemoryFactStore()), GRAPH, [], output_format)


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ValueError, match="text, json, dot, graphml"):
        rendered("svg")
