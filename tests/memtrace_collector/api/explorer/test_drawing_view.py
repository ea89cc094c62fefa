"""The views of the graph: drawings, operations, lists of graphs and answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memtrace_collector.api.explorer import drawing as view
from memtrace_collector.api.explorer.catalog import VIEWS
from memtrace_collector.api.service import Service
from memtrace_collector.app import open_service
from memtrace_collector.config import Config
from memtrace_collector.errors import NotFoundError, WrongUseError
from memtrace_collector.graph.questions.shapes import time_json
from memtrace_collector.receiver.decode import decode
from tests.memtrace_collector.running import VECTORS

GRAPH, ANSWER = "user:overwritten", "efb8a8ab508e6bd1b651fee1f0b833a8:7e6273752eb9794e"
LOST = "user:omission"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Two vectors with their verdicts."""
    folder: Path = tmp_path_factory.mktemp("drawing")
    with open_service(Config(store=str(folder / "store"))) as opened:
        for name in ("overwritten", "omission"):
            request = decode("traces", "json", (VECTORS / f"{name}.otlp.json").read_bytes())
            opened.append(request.SerializeToString(), "traces")
        opened.settle()
        opened.attribute("rules", "", True)
        yield opened


def verdict(service: Service, graph_id: str) -> dict[str, Any]:
    return service.verdicts(graph_id, "", "")[0]


def text(span: dict[str, str]) -> str:
    return f"{span['traceId']}:{span['spanId']}"


def by_mark(drawn: dict[str, Any], mark: str) -> list[dict[str, Any]]:
    return [node for node in drawn["nodes"] if mark in node["marks"]]


def test_every_view_is_asked_by_its_name(service: Service) -> None:
    with pytest.raises(NotFoundError, match=r"there are .*graph"):
        service.view("nothing", {})
    assert {"graph", "graphs", "graph-answers", "operation"} <= VIEWS.keys()


@pytest.mark.parametrize("of", ["ancestry", "case"])
def test_the_decisive_operation_and_both_values_stand_in_the_drawing(
    service: Service, of: str
) -> None:
    drawn = service.view("graph", {"answer": ANSWER, "of": of})
    found = verdict(service, GRAPH)
    assert [node["id"] for node in by_mark(drawn, "decisive")] == [text(found["decisive"][0])]
    assert [node["id"] for node in by_mark(drawn, "last right")] == [found["last_right"]]
    assert [node["id"] for node in by_mark(drawn, "first wrong")] == [found["first_wrong"]]
    assert [node["id"] for node in by_mark(drawn, "answer")] == [ANSWER]
    assert by_mark(drawn, "last right")[0]["text"]
    assert drawn["verdict"]["id"] == found["id"]
    assert all(0 <= end < len(drawn["nodes"]) for link in drawn["links"] for end in link[:2])


def test_an_operation_that_the_answer_does_not_rest_on_is_drawn_when_it_is_decisive(
    service: Service,
) -> None:
    found = verdict(service, LOST)
    drawn = service.view("graph", {"answer": text(found["answer"]), "of": "ancestry"})
    (decisive,) = by_mark(drawn, "decisive")
    assert decisive["id"] == text(found["decisive"][0])
    place = drawn["nodes"].index(decisive)
    assert any(link[1] == place for link in drawn["links"]), "what it read is drawn as well"


def test_too_many_nodes_are_those_closest_to_what_is_marked(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = service.view("graph", {"answer": ANSWER, "of": "case"})
    monkeypatch.setattr(view, "MAX_NODES", 5)
    drawn = service.view("graph", {"answer": ANSWER, "of": "case"})
    assert len(drawn["nodes"]) == 5
    left = drawn["left_out"]
    assert left["operations"] + left["variables"] == len(whole["nodes"]) - 5
    assert by_mark(drawn, "decisive") and by_mark(drawn, "answer")
    monkeypatch.setattr(view, "MAX_AROUND", 3)
    around = service.view("graph", {"answer": ANSWER, "around": ANSWER})
    assert len(around["nodes"]) == 3 and by_mark(around, "answer")


def test_a_drawing_is_narrowed_by_time(service: Service) -> None:
    whole = service.view("graph", {"answer": ANSWER, "of": "case"})
    times = sorted(n["time_ns"] for n in whole["nodes"] if n["kind"] == "operation")
    middle = time_json(times[len(times) // 2])
    late = service.view("graph", {"answer": ANSWER, "of": "case", "since": middle})
    early = service.view("graph", {"answer": ANSWER, "of": "case", "until": middle})
    for drawn in (late, early):
        assert 0 < len(drawn["nodes"]) < len(whole["nodes"])
        assert drawn["left_out"]["outside_the_time"] > 0
        assert by_mark(drawn, "decisive"), "what is marked stays"


@pytest.mark.parametrize(
    ("parameters", "error", "says"),
    [
        ({}, WrongUseError, "answer is missing"),
        ({"answer": "12"}, WrongUseError, "32 hex digits"),
        ({"answer": "0" * 32}, NotFoundError, "no answer is known"),
        ({"answer": ANSWER, "of": "everything"}, WrongUseError, "ancestry or case"),
        ({"answer": ANSWER, "since": "yesterday"}, WrongUseError, "not a time"),
        ({"answer": ANSWER, "around": "mem:no:1@a"}, NotFoundError, "not in this drawing"),
    ],
)
def test_what_cannot_be_drawn_is_said(
    service: Service, parameters: dict[str, str], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        service.view("graph", parameters)


def test_an_operation_is_shown_with_what_it_read_wrote_and_led_to(service: Service) -> None:
    found = verdict(service, GRAPH)
    decisive = text(found["decisive"][0])
    shown = service.view("operation", {"span": decisive})
    assert [each["id"] for each in shown["decisive_for"]["items"]] == [found["id"]]
    assert shown["parts"]["input"]["items"][0]["text"]["text"]
    assert shown["led_to"]["total"] > 0 and shown["came_from"]["total"] > 0
    assert any(text(each) == decisive and each["depth"] > 0 for each in shown["trace"]["items"])
    answer = service.view("operation", {"span": ANSWER})
    assert answer["is_answer"] and answer["verdict"]["id"] == found["id"]
    read = next(each for each in answer["came_from"]["items"] if each["step"] == "assemble")
    searched = service.view("operation", {"span": text(read)})["came_from"]["items"]
    retrieve = next(each for each in searched if each["step"] == "retrieve")
    led_to = service.view("operation", {"span": text(retrieve)})["led_to"]["items"]
    assert [text(each) for each in led_to] == [text(read)]
    with pytest.raises(NotFoundError, match="operations of that trace"):
        service.view("operation", {"span": ANSWER[:-1] + "0"})


def test_graphs_are_listed_with_their_failures_and_found_by_a_part_of_their_id(
    service: Service,
) -> None:
    found = service.view("graphs", {})
    assert {each["graph_id"]: each["faults"] for each in found["items"]} == {GRAPH: 1, LOST: 1}
    assert service.view("graphs", {"q": "OVERW"})["total"] == 1
    answers = service.view("graph-answers", {"graph": GRAPH})
    assert answers["items"][0]["outcome"] == "failed" and answers["is_whole"]
    assert service.view("graph-answers", {"graph": GRAPH, "only": "faults"})["total"] == 1
    assert service.view("graph-answers", {"graph": GRAPH, "only": "others"})["items"] == [
        item for item in answers["items"] if item["outcome"] == "unflagged"
    ]
    with pytest.raises(WrongUseError, match="faults, flagged, others"):
        service.view("graph-answers", {"graph": GRAPH, "only": "some"})
    with pytest.raises(NotFoundError):
        service.view("graph-answers", {"graph": "user:nobody"})
