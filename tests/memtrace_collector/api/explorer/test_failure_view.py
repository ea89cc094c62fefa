"""One failure as the page gets it, for every contract vector."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from memtrace_collector.api.explorer.failure import answer, failure
from memtrace_collector.api.explorer.record import record
from memtrace_collector.api.exploring import Stores
from memtrace_collector.attribution.attribute import attribute
from memtrace_collector.attribution.superseding import stored_form
from memtrace_collector.attribution.work.intake import case_id
from memtrace_collector.errors import NotFoundError, WrongUseError
from memtrace_collector.graph import flags
from memtrace_collector.graph.facts import Flag, SpanFacts
from memtrace_collector.graph.loader import load_case
from memtrace_collector.store.in_memory import InMemoryFactStore
from memtrace_collector.store.sqlite_cases import SqliteCaseStore
from tests.contract import scenarios
from tests.memtrace_collector.attribution.scripts import Script

NOW_NS = 1_800_000_000 * 10**9
Json = dict[str, Any]
Judged = Callable[..., tuple[Stores, str]]


@pytest.fixture
def judged(cases: SqliteCaseStore) -> Judged:
    """A vector with the verdict on its flagged answer: the stores, and the case's id."""

    def judge(name: str, *, texts: bool = True, revision: Json | None = None) -> tuple[Stores, str]:
        facts = scenarios.facts(name)
        stores = Stores(InMemoryFactStore.of(facts if texts else map(_bare, facts)), cases)
        (flag,) = stores.graphs.flags()
        return stores, _judge(stores, flag, revision or {})

    return judge


def _bare(facts: SpanFacts) -> SpanFacts:
    return structs.replace(facts, values=())


def _judge(stores: Stores, flag: Flag, changed: Json) -> str:
    answered = flags.resolve(stores.graphs, flag)
    assert answered is not None
    name = case_id(answered)
    found = attribute(load_case(stores.graphs, answered, flag)).to_json()
    for each in (found, found | changed) if changed else (found,):
        verdict = stored_form(each, name, NOW_NS, stores.cases.verdict(name))
        assert verdict is not None and stores.cases.save_verdict(verdict, [])
    return name


def shown(judged: Judged, name: str, **options: Any) -> Json:
    stores, case = judged(name, **options)
    return failure(stores, {"id": case})


def decisive_hop(found: Json) -> Json:
    hops: list[Json] = [hop for hop in found["path"] if hop["decisive"]]
    assert len(hops) == 1
    return hops[0]


@pytest.mark.parametrize("name", scenarios.NAMES)
@pytest.mark.parametrize("texts", [True, False], ids=["texts", "no texts"])
def test_every_vector_is_shown_with_its_path_and_its_decisive_operation(
    judged: Judged, name: str, texts: bool
) -> None:
    stores, case = judged(name, texts=texts)
    found = failure(stores, {"id": case})
    verdict = found["verdict"]
    assert len(json.dumps(found)) < 200_000
    assert found["headline"] and '"' not in found["headline"]
    assert found["path"][-1]["kind"] == "answer"
    assert all(hop["is_stored"] and hop["because"] for hop in found["path"])
    assert {hop["outcome"] for hop in found["path"]} <= {"kept", "changed", "lost", "unknown"}
    marked = [hop["span"] for hop in found["path"] if hop["decisive"]]
    assert sorted(map(str, marked)) == sorted(str(item["span"]) for item in found["decisive"])
    assert all(item["operation"] for item in found["decisive"])
    assert [item["revision"] for item in found["revisions"]] == [verdict["revision"]]
    assert bool(found["texts"]["known"]) is texts
    for hop in found["path"]:
        if hop["record"].startswith("mem:"):
            asked = {"graph": hop["record_graph_id"], "record": hop["record"]}
            assert record(stores, asked)["record"] == hop["record"]


@pytest.mark.parametrize("name", ["omission", "overwritten", "ranked_out", "wrongly_deleted"])
def test_a_vector_s_question_reply_and_expected_answer_stand_together(
    judged: Judged, name: str
) -> None:
    found = shown(judged, name)
    assert all(value["text"] for value in (*found["question"], *found["answer"]["given"]))
    assert found["flag"]["expected"] and found["flag"]["evidence_given"]
    (evidence,) = found["evidence"]
    assert evidence["role"] == "right" and evidence["span"] and evidence["graph_id"]


def test_an_omission_ends_at_the_extraction_that_made_nothing_of_it(judged: Judged) -> None:
    hop = decisive_hop(shown(judged, "omission"))
    assert (hop["kind"], hop["outcome"]) == ("extraction", "lost")
    (change,) = hop["changes"]
    assert change["before"]["kind"] == "msg" and change["before"]["text"]
    assert change["after"] is None and "nothing that says it came out" in hop["because"]


def test_an_overwritten_record_is_shown_before_and_after_word_by_word(judged: Judged) -> None:
    found = shown(judged, "overwritten")
    (change,) = decisive_hop(found)["changes"]
    assert change == found["decisive"][0]["change"]
    assert change["before"]["record"] == change["after"]["record"]
    assert (change["before"]["role"], change["after"]["role"]) == ("right", "wrong")
    kinds = {part["kind"] for part in change["segments"]}
    assert {"removed", "added"} <= kinds
    for side, left_out in (("before", "added"), ("after", "removed")):
        parts = (part["text"] for part in change["segments"] if part["kind"] != left_out)
        assert "".join(parts) == change[side]["text"]


def test_a_wrong_merge_shows_what_was_decided_about_the_record(judged: Judged) -> None:
    hop = decisive_hop(shown(judged, "merged_wrong"))
    (change,) = hop["changes"]
    assert change["before"]["text"] == "User lives in Lisbon since March"
    assert "Porto" in change["after"]["text"]
    removed = [part["text"] for part in change["segments"] if part["kind"] == "removed"]
    assert "".join(removed).split() == ["Lisbon", "since", "March"]
    if hop["kind"] == "decision":
        assert hop["decisions"]


def test_a_deletion_leaves_a_version_that_says_deleted(judged: Judged) -> None:
    found = shown(judged, "wrongly_deleted")
    assert decisive_hop(found)["because"] == "The right value went in, and was deleted."
    after = found["decisive"][0]["change"]["after"]
    assert (after["state"], after["text"], after["role"]) == ("deleted", None, "wrong")


def test_what_was_ranked_out_is_shown_with_rank_and_score_and_what_beat_it(judged: Judged) -> None:
    hop = decisive_hop(shown(judged, "ranked_out"))
    right = [item for item in hop["read"]["candidates"] if item["role"] == "right"]
    assert [(item["rank"], item["outcome"], item["reason"]) for item in right] == [
        (2, "cut", "limit")
    ]
    assert right[0]["score"] is not None and right[0]["text"]
    beat = [item for item in hop["read"]["candidates"] if item["beat"]]
    assert [item["rank"] for item in beat] == [1]
    assert hop["read"]["limits"] and hop["read"]["queries"][0]["text"]


def test_what_was_cut_from_the_prompt_is_named_at_the_assembly(judged: Judged) -> None:
    hop = decisive_hop(shown(judged, "cut_from_context"))
    assert hop["kind"] == "assembly"
    shown_right = [item for item in hop["context"]["cut"] if item["role"] == "right"]
    assert shown_right and shown_right[0]["reason"]
    assert not any(item["role"] == "right" for item in hop["context"]["holds"])
    (change,) = hop["changes"]
    assert change["before"]["role"] == "right" and change["after"] is None


def test_an_ignored_prompt_is_shown_with_the_right_value_marked_in_it(judged: Judged) -> None:
    found = shown(judged, "ignored_context")
    hop = decisive_hop(found)
    assert hop["kind"] == "answer"
    marked = [
        part["text"] for prompt in hop["context"]["prompts"] for part in prompt["parts"]
        if part["role"] == "right"
    ]  # fmt: skip
    assert marked == ["User lives in Lisbon since March"]
    assert all("".join(p["text"] for p in each["parts"]) for each in hop["context"]["prompts"])


def test_a_stale_version_is_shown_beside_the_one_that_was_current(judged: Judged) -> None:
    found = shown(judged, "stale_retrieved")
    change = found["decisive"][0]["change"]
    assert change["before"]["record"] == change["after"]["record"] and change["segments"]
    delivered = decisive_hop(found)["read"]["candidates"]
    assert [item["role"] for item in delivered if item["ref"] == change["after"]["ref"]] == [
        "wrong"
    ]


def test_a_search_of_a_session_that_delivers_an_owner_s_record_leads_to_the_owner_s(
    cases: SqliteCaseStore,
) -> None:
    script = Script("user:anna")
    message, version = script.remember("I live in Rome since May.")
    script.ask("Where do I live?")
    script.retrieve(version, graph="session:1", reads=("user:anna",))
    script.answer("You live in Oslo.", script.assemble(version))
    script.flag("Rome", message)
    stores = Stores(script.store(), cases)
    found = failure(stores, {"id": _judge(stores, script.flags[0], {})})
    (hop,) = [each for each in found["path"] if each["kind"] == "retrieval"]
    assert (hop["record"], hop["record_graph_id"]) == ("mem:stub:1", "user:anna")


def test_a_verdict_that_names_nothing_says_what_is_missing(judged: Judged) -> None:
    found = shown(judged, "lost_span")
    assert found["decisive"] == [] and not any(hop["decisive"] for hop in found["path"])
    assert found["verdict"]["missing"] == ["gap"] and not found["is_memory_fault"]
    assert "cannot be shown" in found["headline"]


def test_without_texts_digests_ids_and_outcomes_tell_the_path(judged: Judged) -> None:
    found = shown(judged, "overwritten", texts=False)
    assert found["texts"]["known"] == 0 and found["texts"]["unknown"] > 0
    change = found["decisive"][0]["change"]
    assert change["before"]["state"] == "not captured" and change["before"]["ref"]
    assert change["segments"] is None
    assert [hop["outcome"] for hop in found["path"]]


def test_a_failure_outlives_its_spans(judged: Judged, cases: SqliteCaseStore) -> None:
    _, name = judged("overwritten")
    found = failure(Stores(InMemoryFactStore(), cases), {"id": name})
    assert not found["answer"]["is_stored"] and found["question"] == []
    assert all(not hop["is_stored"] for hop in found["path"])
    hop = decisive_hop(found)
    assert hop["operation"] and hop["service"] and hop["time"]
    assert hop["changes"][0]["before"]["state"] == "not captured"
    (lost,) = found["decisive"]
    assert (lost["operation"], lost["service"]) == (hop["operation"], hop["service"])
    assert not lost["is_stored"] and lost["operation"] in found["headline"]


def test_earlier_revisions_say_what_changed(judged: Judged) -> None:
    stores, name = judged("overwritten", revision={"score": 0.4, "method": "human"})
    newest, first = failure(stores, {"id": name})["revisions"]
    assert (newest["revision"], newest["method"], newest["score"]) == (2, "human", 0.4)
    assert "Supersedes revision 1" in newest["says"] and first["says"] == ""
    assert first["case_trace"] != newest["case_trace"]


def test_an_answer_leads_to_its_failure_or_to_itself(judged: Judged) -> None:
    stores, name = judged("overwritten")
    (flag,) = stores.graphs.flags()
    answered = flags.resolve(stores.graphs, flag)
    assert answered is not None
    found = answer(stores, {"answer": str(answered.key)})
    assert found == {"answer": str(answered.key), "failure": name}
    assert answer(stores, {"answer": answered.trace_id}) == found
    stores.cases.erase(None)
    assert answer(stores, {"answer": str(answered.key)})["failure"] is None


def test_what_is_not_known_is_an_error(judged: Judged) -> None:
    stores, _ = judged("overwritten")
    with pytest.raises(WrongUseError, match="id is missing"):
        failure(stores, {})
    with pytest.raises(NotFoundError, match="no verdict of a case 'nobody'"):
        failure(stores, {"id": "nobody"})
    with pytest.raises(NotFoundError, match="no answer is known"):
        answer(stores, {"answer": "ab" * 16})
    with pytest.raises(WrongUseError, match="32 hex digits"):
        answer(stores, {"answer": "x"})
