"""Two logs over one PostgreSQL, whose owners carry out an order at different times."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memtrace_collector.config import Config
from memtrace_collector.runtime import erase_proof, erasing
from memtrace_collector.runtime.data_folder import DataFolder
from memtrace_collector.runtime.erasing_together import (
    NOT_CONFIRMED,
    OrderedErasing,
    erase_everywhere,
)
from memtrace_collector.runtime.log_identity import log_identity
from memtrace_collector.store.erasures import ErasureOrders
from memtrace_collector.telemetry.metrics import NULL_METRICS
from tests.memtrace_collector.processor.spans import plain_span, request
from tests.memtrace_collector.runtime.test_erasing import (
    GONE,
    KEPT,
    OTHERS,
    SECRET,
    Killed,
    append,
    everything,
    turn,
)


class Log:
    """A log and its owner, which projects and erases when told to."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self._config = Config(store=url)
        self.open()

    def open(self) -> None:
        self.data = DataFolder(self.folder, self._config, NULL_METRICS)
        self.id = log_identity(self.data.log_folder)

    def take(self, number: int, graph: str = GONE, text: str = SECRET) -> None:
        append(self.data, turn(number, graph, text))

    def erase(self) -> int:
        assert isinstance(self.data.erasing, OrderedErasing)
        return self.data.erasing.run_once()


@pytest.fixture
def logs(tmp_path: Path, postgres_url: str) -> Iterator[tuple[Log, Log]]:
    one, two = Log(tmp_path / "one", postgres_url), Log(tmp_path / "two", postgres_url)
    yield one, two
    for each in (one, two):
        each.data.close()


def graphs(log: Log) -> list[str]:
    return [item.graph_id for item in log.data.facts.graphs()]


def reports(log: Log, order_id: str) -> dict[str, dict[str, Any]]:
    assert isinstance(log.data.facts, ErasureOrders)
    return dict(log.data.facts.erasure_reports(order_id))


def open_order(log: Log) -> str:
    assert isinstance(log.data.facts, ErasureOrders)
    (order,) = log.data.facts.open_erasures()
    return order.order_id


def test_rows_go_at_once_and_each_log_when_its_owner_comes_to_it(
    logs: tuple[Log, Log], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = logs
    one.take(1)
    two.take(101, KEPT, OTHERS)
    for each in logs:
        each.data.project()
    two.take(2)  # acknowledged, and not projected when the order is given
    result = erase_everywhere(one.data, GONE, seconds=0)
    assert result["left"] == {NOT_CONFIRMED: 2}
    assert result["unconfirmed"] == sorted([one.id, two.id])
    assert result["erased"]["operations"] == 2 and graphs(one) == [KEPT]
    order_id = open_order(one)
    search = erase_proof.search

    def meanwhile(*arguments: Any, **named: Any) -> Any:
        two.data.project()
        return search(*arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr(erasing, "search", meanwhile)
        assert one.erase() == 1
    assert GONE in graphs(one), "what the other log brought in before its order"
    assert reports(one, order_id)[one.id]["left"] == {}, "is not left by this one"
    assert two.erase() == 1 and graphs(one) == [KEPT]
    assert reports(one, order_id)[two.id]["left"] == {}
    assert one.erase() == two.erase() == 1, "for the trace that this log told of"
    assert one.erase() == two.erase() == 0
    for each in logs:
        left = everything(each.folder)
        assert GONE.encode() not in left and SECRET.encode() not in left


def test_a_trace_goes_whole_also_where_another_log_tells_what_is_in_it(
    logs: tuple[Log, Log],
) -> None:
    one, two = logs
    trace = turn(1, GONE, SECRET).resource_spans[0].scope_spans[0].spans[0].trace_id
    beside = request(plain_span(1, 9, prompt=f"another library: {OTHERS}"))
    assert beside.resource_spans[0].scope_spans[0].spans[0].trace_id == trace
    append(one.data, beside)
    two.take(1)  # not projected when the order is given
    erase_everywhere(one.data, GONE, seconds=0)
    assert one.erase() == 1 and OTHERS.encode() in everything(one.folder)
    assert two.erase() == 1
    assert one.erase() == 1 and OTHERS.encode() not in everything(one.folder)
    assert two.erase() == 1 and one.erase() == two.erase() == 0


@pytest.mark.fault("F1")
@pytest.mark.parametrize("name", ["rewrite_segment", "search"])
def test_an_owner_that_is_killed_goes_on_with_the_order(
    logs: tuple[Log, Log], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    one, two = logs
    one.take(1)
    one.data.project()
    erase_everywhere(two.data, GONE, seconds=0)
    order_id = open_order(one)

    def dying(*_: Any, **__: Any) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(erasing, name, dying)
        with pytest.raises(Killed):
            one.erase()
    with contextlib.closing(one.data):
        assert one.id not in reports(one, order_id)
    one.open()
    assert one.erase() == 1 and one.id in reports(one, order_id)
    assert SECRET.encode() not in everything(one.folder)


def test_a_whole_tenant_goes_from_both_logs_and_the_others_stay(logs: tuple[Log, Log]) -> None:
    for number, each in enumerate(logs, 1):
        append(each.data, turn(number, GONE, SECRET), tenant="other")
        each.take(number + 100, KEPT, OTHERS)
        each.data.project()
    result = erase_everywhere(logs[0].data.for_tenant("other"), "", seconds=0)
    assert result["erased"]["operations"] == 4
    assert [each.erase() for each in logs] == [1, 1]
    again = erase_everywhere(
        logs[0].data.for_tenant("other"), "", seconds=0, gone=[each.id for each in logs]
    )
    assert again["left"] == {} and not any(again["erased"].values())
    assert graphs(logs[0]) == [KEPT]
    for each in logs:
        assert SECRET.encode() not in everything(each.folder)
        assert OTHERS.encode() in everything(each.folder)
