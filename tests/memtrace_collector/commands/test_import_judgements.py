"""Judgements of imported cases are taken over at the cost of one look at each graph."""

from __future__ import annotations

from typing import Any

from memtrace_collector.attribution.judging.said import Said
from memtrace_collector.bench.labels import Label
from memtrace_collector.commands.import_judgements import take_over
from memtrace_collector.commands.import_reader import Problem
from memtrace_collector.errors import NotFoundError
from memtrace_collector.graph.facts import OperationKey


class Server:
    """Says ``omission`` of every answer but the third, which it does not know."""

    def __init__(self) -> None:
        self.looked: list[str] = []
        self.judged: list[tuple[str, str]] = []

    def attribute(self, method: str, graph_id: str, evidence: bool) -> Any:
        self.looked.append(graph_id)
        answers = [{"traceId": f"{n:032x}", "spanId": f"{n:016x}"} for n in range(4)]
        found = {"revision": 1, "stage": "extraction", "error_type": "omission", "decisive": []}
        found |= {"score": 0.9, "method": method}
        return {"verdicts": [{"answer": each, **found} for each in answers]}

    def judge(self, answer: str, said: Said) -> None:
        if answer.startswith(f"{2:032x}"):
            raise NotFoundError("no such answer")
        self.judged.append((said.action, said.type))


def test_each_graph_is_looked_at_once_however_many_of_its_answers_were_judged() -> None:
    types = ("omission", "distortion", "omission", "omission")
    labels = [
        Label("c", OperationKey(f"{n:032x}", f"{n:016x}"), kind, (), f"g{n // 3}")
        for n, kind in enumerate(types)
    ]
    server: Any = Server()
    problems: list[Problem] = []
    assert list(take_over(server, labels, problems)) == [labels[0], labels[1], labels[3]]
    assert server.judged == [("confirm", ""), ("correct", "distortion"), ("confirm", "")]
    assert server.looked == ["g0", "g1"]
    assert len(problems) == 1
