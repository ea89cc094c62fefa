"""What came of a message, as its page is told it."""

from __future__ import annotations

from typing import Any

import pytest

from memtrace_collector.api.explorer import impact as view
from memtrace_collector.api.explorer.impact import impact
from memtrace_collector.api.exploring import Stores
from memtrace_collector.errors import NotFoundError
from memtrace_collector.graph.questions import references
from memtrace_collector.graph.questions.answered import AS_THEY_ARE
from memtrace_collector.store.sqlite_cases import SqliteCaseStore
from tests.memtrace_collector.attribution.scripts import Script


def answered() -> tuple[Script, str, str]:
    script = Script()
    message, version = script.remember("My barber is Enzo.")
    script.ask("Who is my barber?")
    script.reply("Enzo.", version)
    return script, message, version


def shown(script: Script, cases: SqliteCaseStore, **parameters: str) -> Any:
    return impact(Stores(script.store(), cases), parameters)


def test_everything_derived_stands_under_its_kind_with_the_chain_that_leads_to_it(
    cases: SqliteCaseStore,
) -> None:
    script, message, version = answered()
    found = shown(script, cases, target=message)
    (record,) = found["stored"]["items"]
    assert (record["record"], record["ref"], record["is_deleted"]) == ("mem:stub:1", version, False)
    steps = [(step["ref"].partition(":")[0], step["step"]) for step in record["chain"]]
    assert steps == [("msg", "ingest"), ("fact", "extract"), ("mem", "create")]
    (answer,) = found["answers"]["items"]
    assert answer["text"]["text"] == "Enzo."
    assert [step["ref"].partition(":")[0] for step in answer["chain"]][-2:] == ["ctx", "ans"]
    assert found["totals"] == {"fact": 1, "mem": 1, "ctx": 1, "ans": 1}
    assert [group["kind"] for group in found["kinds"]] == ["fact", "ctx"]
    assert found["starts"][0]["text"]["text"] == "My barber is Enzo."
    assert found["warnings"] == []


def test_the_ids_to_delete_are_those_of_the_question_also_when_few_are_shown(
    cases: SqliteCaseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "MAX_SHOWN", 2)
    script = Script()
    message = script.say("I have five cats.")
    (fact,) = script.extract(message, "Five cats.")
    for number in range(5):
        script.create(str(number), f"Cat {number}.", fact)
    found = shown(script, cases, target=message)
    asked = references.impact(script.store(), message, AS_THEY_ARE).whole()
    assert found["records"] == asked["records"]
    assert (len(found["records"]), found["stored"]["total"]) == (5, 5)
    assert len(found["stored"]["items"]) == 2


def test_a_deleted_record_is_marked_and_still_listed(cases: SqliteCaseStore) -> None:
    script, message, version = answered()
    script.delete(version)
    found = shown(script, cases, target=message)
    assert found["stored"]["items"][0]["is_deleted"] is True
    assert found["records"] == ["mem:stub:1"]


def test_what_makes_the_list_uncertain_is_said(
    cases: SqliteCaseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script()
    message, version = script.remember("My barber is Enzo.")
    script.ask("Who is my barber?")
    script.answer("Enzo.", script.assemble(f"{version.partition('@')[0]}@0123456789ab"))
    script.lose(3)
    script.say("After.")
    monkeypatch.setattr(view.walk, "MAX_OPERATIONS", 5)
    bounded, inexact, lost = shown(script, cases, target=message)["warnings"]
    assert "stopped at 5 operations" in bounded
    assert "inexact" in inexact
    assert lost.startswith("3 operations")


def test_without_target_there_are_messages_to_choose_from(cases: SqliteCaseStore) -> None:
    script, message, _ = answered()
    script.say("Something else.")
    latest = shown(script, cases)
    assert [each["text"]["text"] for each in latest["messages"]] == [
        "Something else.", "My barber is Enzo.",
    ]  # fmt: skip
    assert latest["graph_id"] == script.graph
    (hit,) = shown(script, cases, text="barber")["messages"]
    assert (hit["ref"], hit["role"]) == (message, "user")
    assert shown(Script(), cases)["messages"] == []


def test_a_target_that_nothing_comes_from_or_an_unknown_graph_is_refused(
    cases: SqliteCaseStore,
) -> None:
    script, _, _ = answered()
    with pytest.raises(NotFoundError, match="nothing that was recorded"):
        shown(script, cases, target="msg:none@0123456789ab")
    with pytest.raises(NotFoundError, match="no graph"):
        shown(script, cases, graph="user:nobody")
