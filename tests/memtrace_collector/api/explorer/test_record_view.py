"""A record's life as its page is told it."""

from __future__ import annotations

from typing import Any

import pytest

from memtrace_collector.api.explorer import record as view
from memtrace_collector.api.explorer.record import record
from memtrace_collector.api.exploring import Stores
from memtrace_collector.attribution.attribute import attribute
from memtrace_collector.attribution.work.intake import case_id
from memtrace_collector.errors import NotFoundError, WrongUseError
from memtrace_collector.graph import flags
from memtrace_collector.graph.facts import Dropped
from memtrace_collector.graph.loader import load_case
from memtrace_collector.store.in_memory import InMemoryFactStore
from memtrace_collector.store.sqlite_cases import SqliteCaseStore
from tests.contract import scenarios
from tests.memtrace_collector.attribution.scripts import Script

RECORD = "mem:stub:1"


def judged(store: InMemoryFactStore, cases: SqliteCaseStore) -> dict[str, Any]:
    """Judge the flagged answer; its verdict."""
    (flagged,) = flags.flagged_answers(store)
    verdict = attribute(load_case(store, flagged.answer, flagged.flag)).to_json()
    verdict |= {
        "id": case_id(flagged.answer), "revision": 1, "created": "2026-03-01T00:00:00.000Z",
        "graph_id": flagged.answer.graph_id,
    }  # fmt: skip
    cases.save_verdict(verdict, [])
    return verdict


def shown(script: Script, cases: SqliteCaseStore, name: str = RECORD, **more: str) -> Any:
    return record(Stores(script.store(), cases), {"graph": script.graph, "record": name, **more})


def test_a_version_says_what_changed_who_wrote_it_from_what_and_whom_it_broke(
    cases: SqliteCaseStore,
) -> None:
    store = InMemoryFactStore.of(scenarios.facts("overwritten"))
    verdict = judged(store, cases)
    found = record(
        Stores(store, cases), {"graph": verdict["graph_id"], "record": verdict["last_right"]}
    )
    versions = found["versions"]["items"]
    assert [each["ref"] for each in versions] == [verdict["last_right"], verdict["first_wrong"]]
    assert found["asked"] == 1
    first, second = versions[:2]
    assert (first["number"], first["change"], first["segments"]) == (1, "created", None)
    assert second["change"] == "changed"
    whole = {"same": "", "added": "", "removed": ""}
    for segment in second["segments"]:
        whole[segment["kind"]] += segment["text"]
    assert whole["removed"] and whole["added"]
    assert [each["action"] for each in second["decisions"]] == ["UPDATE"]
    assert second["messages"][0]["text"]["text"]
    assert {each["id"] for version in versions for each in version["broke"]} == {verdict["id"]}
    assert found["answers"]["failed"] == 1
    assert found["answers"]["items"][0]["verdict"]["error_type"] == "overwritten"
    assert found["answers"]["items"][0]["role"] == "wrong"


def test_a_reader_has_rank_and_score_and_a_cut_candidate_its_reason(
    cases: SqliteCaseStore,
) -> None:
    script = Script()
    _, other = script.remember("Likes tea.", record="2")
    _, version = script.remember("Lives in Rome.")
    script.ask("Where?")
    script.retrieve(other, version, scores=(0.9, 0.25))
    script.ask("Again?", 21)
    script.retrieve(other, dropped=[Dropped(version, 0.1, "threshold", 4)])
    reads = shown(script, cases)["reads"]
    assert reads["total"] == 2
    told = [(each["rank"], each["of"], each["score"], each["reason"]) for each in reads["items"]]
    assert told == [(4, 1, 0.1, "threshold"), (2, 2, 0.25, "")]
    assert {each["number"] for each in reads["items"]} == {1}


def test_changes_of_state_deletions_returns_and_ties_are_marked(cases: SqliteCaseStore) -> None:
    script = Script()
    _, first = script.remember("Lives in Rome.")
    state = f"{first}~abc123"
    script.add("update", outputs=(state,), supersedes=(first,))
    second = script.update(state, "Lives in Oslo.")
    script.delete(second)
    script.day(1)
    script.create("1", "Lives in Rome.")
    found = shown(script, cases)
    versions = found["versions"]["items"]
    changes = [each["change"] for each in versions]
    assert changes == ["created", "state", "changed", "deleted", "created"]
    assert versions[1]["state"] == {"before": "", "after": "abc123"}
    assert versions[3]["segments"] == [{"text": "Lives in Oslo.", "kind": "removed"}]
    assert [each["is_back"] for each in versions] == [False] * 4 + [True]
    assert [each["kind"] for each in found["invariants"]] == ["flapping"]
    assert found["current"]["is_deleted"] is False
    assert not any(each["is_tie"] for each in versions)
    assert [column[1] for column in found["timeline"]["lanes"]["deleted"]] == [1]


def test_a_value_that_came_back_is_told_apart_from_what_it_was_before(
    cases: SqliteCaseStore,
) -> None:
    script = Script()
    _, first = script.remember("Lives in Rome.")
    version = first
    for day, place in enumerate(("Oslo", "Rome"), 1):
        script.ask("Where?", day)
        script.reply("There.", version)
        version = script.update(version, f"Lives in {place}.")
    assert version == first
    found = shown(script, cases)
    versions = found["versions"]["items"]
    assert [[each["number"] for each in item["supersedes"]] for item in versions] == [[], [1], [2]]
    assert [(each["reads"], each["answers"]) for each in versions] == [(1, 1), (1, 1), (0, 0)]
    assert [each["had"] for each in found["answers"]["items"]] == [[2], [1]]


def test_two_writes_at_one_moment_are_a_tie(cases: SqliteCaseStore) -> None:
    script = Script()
    script.create("1", "Lives in Rome.")
    script._trace += 1
    script._now = script._now.replace(second=script._now.second - 1)
    script.create("1", "Lives in Oslo.")
    assert [each["is_tie"] for each in shown(script, cases)["versions"]["items"]] == [True, True]


def test_an_answer_that_failed_without_the_record_is_in_its_blast_radius(
    cases: SqliteCaseStore,
) -> None:
    store = InMemoryFactStore.of(scenarios.facts("wrongly_deleted"))
    verdict = judged(store, cases)
    found = record(
        Stores(store, cases), {"graph": verdict["graph_id"], "record": verdict["last_right"]}
    )
    (answer,) = found["answers"]["items"]
    assert (answer["outcome"], answer["is_without"], answer["had"]) == ("failed", True, [])
    assert answer["role"] == "wrong"
    assert found["current"]["is_deleted"] is True


def test_a_long_life_is_told_in_pages_with_what_is_left_out(
    cases: SqliteCaseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "MAX_CHECKED", 10)
    script = Script()
    _, version = script.remember("Status 0.")
    for day in range(1, 60):
        script.ask("Status?", day)
        script.retrieve(version, scores=(0.5,))
        version = script.update(version, f"Status {day}.")
    found = shown(script, cases, versions="20", reads="45")
    assert [each["number"] for each in found["versions"]["items"]] == list(range(21, 41))
    assert (found["versions"]["total"], found["reads"]["total"]) == (60, 59)
    assert [each["number"] for each in found["reads"]["items"]] == list(range(14, 0, -1))
    assert (found["checked"], found["met"], found["is_all"]) == (10, 118, True)
    assert sum(count for _, count in found["timeline"]["lanes"]["delivered"]) == 59
    assert shown(script, cases, versions="9999")["versions"]["start"] == 40


def test_of_very_many_readers_the_first_and_the_last_are_told(
    cases: SqliteCaseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "MET_FIRST", 2)
    monkeypatch.setattr(view, "MET_LAST", 3)
    script = Script()
    _, version = script.remember("Status 0.")
    reads = []
    for day in range(1, 11):
        script.ask("Status?", day)
        reads.append(script.retrieve(version))
    found = shown(script, cases)
    assert found["is_all"] is False
    spans = [each["span"]["spanId"] for each in found["reads"]["items"]]
    assert spans == [each.span_id for each in (*reads[:2], *reads[-3:])][::-1]


def test_an_owners_failure_is_told_with_the_shared_record_it_came_from(
    cases: SqliteCaseStore,
) -> None:
    script = Script("corpus:handbook")
    _, version = script.remember("Ask at extension 4417.")
    script.graph = "user:ada"
    script.ask("Which extension?")
    script.retrieve(version, reads=("corpus:handbook",))
    answer = script.answer("4417.", script.assemble(version, reads=("corpus:handbook",)))
    key = {"traceId": answer.trace_id, "spanId": answer.span_id}
    verdict = {
        "id": case_id(answer), "revision": 1, "created": "2026-03-01T00:00:00.000Z",
        "graph_id": "user:ada", "answer": key, "stage": "extraction", "error_type": "distortion",
        "decisive": [], "last_right": None, "first_wrong": version, "method": "rules",
    }  # fmt: skip
    cases.save_verdict(verdict, [])
    script.graph = "corpus:handbook"
    (told,) = shown(script, cases)["answers"]["items"]
    assert (told["outcome"], told["role"], told["had"]) == ("failed", "wrong", [1])


def test_a_reference_opens_the_page_of_its_version(cases: SqliteCaseStore) -> None:
    script = Script()
    _, version = script.remember("Status 0.")
    for number in range(1, 30):
        version = script.update(version, f"Status {number}.")
    found = shown(script, cases, version)
    assert (found["asked"], found["versions"]["start"]) == (30, 20)
    assert shown(script, cases)["asked"] is None


def test_a_text_longer_than_a_page_is_shortened_and_counted(cases: SqliteCaseStore) -> None:
    script = Script()
    script.remember("word " * 10_000)
    (version,) = shown(script, cases)["versions"]["items"]
    assert version["text"]["chars"] == 50_000
    assert len(version["text"]["text"]) == 4_000


def test_without_texts_the_life_is_still_told(cases: SqliteCaseStore) -> None:
    script = Script(captured=False)
    _, version = script.remember("Lives in Rome.")
    script.update(version, "Lives in Oslo.")
    versions = shown(script, cases)["versions"]["items"]
    assert [(each["text"], each["segments"]) for each in versions] == [(None, None)] * 2
    assert [each["messages"][0]["text"] for each in versions[:1]] == [None]


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"graph": "user:test"}, WrongUseError),
        ({"record": RECORD}, WrongUseError),
        ({"graph": "user:test", "record": RECORD, "reads": "-1"}, WrongUseError),
        ({"graph": "user:nobody", "record": RECORD}, NotFoundError),
        ({"graph": "user:test", "record": "mem:stub:404"}, NotFoundError),
    ],
)
def test_what_cannot_be_shown_is_refused(
    cases: SqliteCaseStore, parameters: dict[str, str], error: type[Exception]
) -> None:
    script = Script()
    script.remember("Lives in Rome.")
    with pytest.raises(error):
        record(Stores(script.store(), cases), parameters)
