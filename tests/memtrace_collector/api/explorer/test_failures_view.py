"""The list of failures: filters, counts, pages, and what was not judged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memtrace_collector.api.explorer.failures import failures
from memtrace_collector.api.exploring import Stores
from memtrace_collector.errors import WrongUseError
from memtrace_collector.store.in_memory import InMemoryFactStore
from memtrace_collector.store.queue import JUDGED, QueuedCase, Schedule
from memtrace_collector.store.sqlite_cases import SqliteCaseStore

FOUND = {
    "a": ("update", "overwritten", "user:anna", "mem0", "writer", "rules"),
    "b": ("update", "merged_wrong", "user:bert", "mem0", "writer", "rules"),
    "c": ("retrieval", "ranked_out", "user:anna", "langgraph", "reader", "human"),
    "d": ("not_memory", "bad_reference", "user:anna", "", "", "rules"),
}


def verdict(number: int, case_id: str) -> dict[str, object]:
    stage, error_type, graph_id, system, service, method = FOUND[case_id]
    hop = {"decisive": True, "service": service, "system": system, "operation": f"op of {case_id}"}
    return {
        "id": case_id,
        "revision": 1,
        "created": f"2026-03-0{number}T00:00:00.000Z",
        "graph_id": graph_id,
        "stage": stage,
        "error_type": error_type,
        "method": method,
        "score": 0.5,
        "explanation": f"Lisbon was lost, case {case_id}",
        "answer": {"traceId": f"{number:032x}", "spanId": f"{number:016x}"},
        "decisive": [{"traceId": "cc" * 16, "spanId": "dd" * 8}] if system else [],
        "path": [hop] if system else [],
    }


@pytest.fixture
def cases(tmp_path: Path) -> Iterator[SqliteCaseStore]:
    store = SqliteCaseStore(tmp_path / "cases.db")
    for number, case_id in enumerate(FOUND, 1):
        store.save_verdict(verdict(number, case_id), [])
    yield store
    store.close()


@pytest.fixture
def stores(cases: SqliteCaseStore) -> Stores:
    return Stores(InMemoryFactStore(), cases)


def ids(stores: Stores, **parameters: str) -> str:
    return "".join(each["id"] for each in failures(stores, parameters)["failures"])


def test_the_newest_verdict_comes_first(stores: Stores) -> None:
    found = failures(stores, {})
    assert [each["id"] for each in found["failures"]] == ["d", "c", "b", "a"]
    assert (found["total"], found["known"], found["is_all"], found["next"]) == (4, 4, True, None)
    assert found["failures"][-1]["operation"] == "op of a"
    assert [each["is_memory_fault"] for each in found["failures"]] == [False, True, True, True]


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"stage": "update"}, "ba"),
        ({"type": "ranked_out"}, "c"),
        ({"graph": "user:anna"}, "dca"),
        ({"system": "mem0"}, "ba"),
        ({"service": "reader"}, "c"),
        ({"method": "human"}, "c"),
        ({"human": "yes"}, "c"),
        ({"human": "no"}, "dba"),
        ({"memory": "yes"}, "cba"),
        ({"stage": "update", "graph": "user:anna"}, "a"),
        ({"stage": "update", "method": "human"}, ""),
        ({"q": "LISBON"}, "dcba"),
        ({"q": " case b"}, "b"),
        ({"q": "user:bert"}, "b"),
        ({"q": "00000000000000000000000000000003"}, "c"),
        ({"q": "dddddddd"}, "cba"),
        ({"q": "op of a"}, "a"),
        ({"q": "Porto"}, ""),
        ({"stage": "", "q": ""}, "dcba"),
    ],
)
def test_filters_leave_what_passes_all_of_them(
    stores: Stores, parameters: dict[str, str], expected: str
) -> None:
    assert ids(stores, **parameters) == expected


def test_a_count_says_what_choosing_that_value_would_leave(stores: Stores) -> None:
    found = failures(stores, {"stage": "update"})
    assert found["facets"]["stage"] == [
        {"value": "update", "count": 2},
        {"value": "retrieval", "count": 1},
        {"value": "not_memory", "count": 1},
    ]
    assert found["facets"]["graph"] == [
        {"value": "user:bert", "count": 1},
        {"value": "user:anna", "count": 1},
    ]
    assert found["facets"]["system"] == [{"value": "mem0", "count": 2}]
    for value in found["facets"]["stage"]:
        assert len(ids(stores, stage=value["value"])) == value["count"]


def test_pages_follow_one_another_also_when_newer_verdicts_arrive(
    stores: Stores, cases: SqliteCaseStore
) -> None:
    first = failures(stores, {"limit": "3"})
    assert [each["id"] for each in first["failures"]] == ["d", "c", "b"]
    newer = verdict(5, "a") | {"id": "e"}
    cases.save_verdict(newer, [])
    second = failures(stores, {"limit": "3", "after": first["next"]})
    assert [each["id"] for each in second["failures"]] == ["a"] and second["next"] is None
    assert second["total"] == 5


@pytest.mark.parametrize(
    "wrong",
    [
        {"limit": "0"},
        {"limit": "201"},
        {"limit": "x"},
        {"limit": "9" * 5_000},
        {"after": "b"},
        {"human": "perhaps"},
        {"memory": "1"},
    ],
)
def test_a_malformed_parameter_is_wrong_use(stores: Stores, wrong: dict[str, str]) -> None:
    with pytest.raises(WrongUseError, match=f"the parameter {next(iter(wrong))}"):
        failures(stores, wrong)


def test_what_was_not_judged_is_told_with_the_reason(
    stores: Stores, cases: SqliteCaseStore
) -> None:
    cases.announce(
        [
            QueuedCase("failed", "aa", "bb", "user:anna", 1),
            QueuedCase("judged", "aa", "bc", "user:anna", 2),
            QueuedCase("waits", "ab", "bd", "user:anna", 3),
            QueuedCase("nobody", "", "", "", 0, "resp_1"),
        ],
        (),
        None,
        0,
    )
    failed, judged = (cases.claim(name, "w", 0, 10) for name in ("failed", "judged"))
    assert failed is not None and judged is not None
    cases.fail(failed, "it fails", None)
    cases.release(judged, Schedule(state=JUDGED), 1)
    found = failures(stores, {})
    assert found["cases"] == {"unresolved": 1, "waiting": 1, "judged": 1, "set_aside": 1}
    assert [(each["id"], each["state"], each["reason"]) for each in found["unjudged"]] == [
        ("failed", "set_aside", "it fails"),
        ("waits", "waiting", ""),
        ("nobody", "unresolved", ""),
    ]
    assert found["unjudged"][2]["named"] == "resp_1"
