"""A person's judgement becomes the verdict, and stays it whatever is found afterwards."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memtrace_collector.attribution import superseding
from memtrace_collector.attribution.attribute import attribute
from memtrace_collector.attribution.judging import judged
from memtrace_collector.attribution.judging.said import Said, read
from memtrace_collector.attribution.verdict import Verdict
from memtrace_collector.attribution.work import settling
from memtrace_collector.attribution.work.intake import case_id, queued
from memtrace_collector.attribution.work.judging import Judging
from memtrace_collector.attribution.work.worker import Worker
from memtrace_collector.attribution.writeback.target import WriteBack
from memtrace_collector.errors import ConflictError, NotFoundError, WrongUseError
from memtrace_collector.graph import flags
from memtrace_collector.graph.case import Case
from memtrace_collector.graph.facts import Operation, SpanFacts
from memtrace_collector.graph.loader import load_case
from memtrace_collector.log.position import LogPosition
from memtrace_collector.store.in_memory import InMemoryFactStore
from memtrace_collector.store.sqlite_cases import SqliteCaseStore
from tests.memtrace_collector.attribution.scripts import Script
from tests.memtrace_collector.attribution.work.test_worker_queue import Clock, Counting

SECOND = 1_000_000_000


class Setting:
    """A flagged answer whose record was deleted, judged by the rules once."""

    def __init__(self, cases: SqliteCaseStore) -> None:
        self.script = script = Script()
        message, version = script.remember("My barber is Enzo.")
        script.day(2)
        self.deleting = script.delete(version)
        script.ask("Who is my barber?")
        self.asked = script.operations[-1]
        script.reply("I do not know.")
        script.flag("Enzo", message)
        self.answer = script.operations[-1]
        self.operations = tuple(script.operations)
        self.graphs: InMemoryFactStore = script.store()
        self.cases = cases
        self.clock = Clock(self.answer.end_ns + 60 * SECOND)
        self.metrics = Counting()
        self.judging = Judging(cases, self.clock, self.metrics)
        self.found: Callable[[Case], Verdict] = attribute
        self.worker = Worker(
            self.graphs,
            cases,
            judge=self._judge,
            target=WriteBack(quotes=True),
            clock_ns=self.clock,
            metrics=self.metrics,
        )
        (self.first,) = self.worker.look()
        self.case_id = case_id(self.answer)

    def _judge(self, case: Case) -> Verdict:
        return self.found(case)

    @property
    def case(self) -> Case:
        flag = flags.flag_of(self.graphs, self.answer)
        assert flag is not None
        return load_case(self.graphs, self.answer, flag)

    def say(self, action: str, **said: Any) -> dict[str, Any]:
        return self.judging.judge(self.case, read({"action": action, **said}))

    def correct(self, **said: Any) -> dict[str, Any]:
        step = next(op for op in self.operations if op.step in ("extract", "create"))
        defaults = {"type": "distortion", "decisive": [str(step.key)], "by": "anna"}
        return self.say("correct", **{**defaults, **said})

    def current(self) -> dict[str, Any]:
        verdict = self.cases.verdict(self.case_id)
        assert verdict is not None
        return dict(verdict)

    def rows(self) -> set[str]:
        return {row.id for row in self.cases.outbox_due(self.clock(), 1_000)}

    def changes(self, error_type: str) -> None:
        """From now on the rules find another type."""

        def found(case: Case) -> Verdict:
            return dataclasses.replace(attribute(case), error_type=error_type)

        self.found = found
        self.look_again()

    def look_again(self) -> list[dict[str, Any]]:
        self.clock.move(3_600)
        self.cases.announce([], [self.answer.graph_id], None, self.clock())
        return self.worker.look()


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    with closing(SqliteCaseStore(tmp_path / "cases.db")) as cases:
        yield Setting(cases)


def _key(operation: Operation) -> dict[str, str]:
    return {"traceId": operation.trace_id, "spanId": operation.span_id}


def test_a_confirmation_keeps_what_the_machine_found(setting: Setting) -> None:
    verdict = setting.say("confirm", by="anna", note="asked her")
    kept = ("error_type", "decisive", "evidence", "path", "score", "basis", "lineage", "missing")
    assert {name: verdict[name] for name in kept} == {name: setting.first[name] for name in kept}
    assert (verdict["revision"], verdict["method"]) == (2, "human")
    said = verdict["judgement"]
    assert (said["action"], said["agreement"], said["by"]) == ("confirmed", "confirmed", "anna")
    assert (said["revision"], said["machine"]["method"]) == (1, "rules")
    assert setting.current() == verdict
    assert setting.metrics.counted["memtrace.judgements"] == 1


def test_a_correction_names_other_operations_and_leads_the_path_there(setting: Setting) -> None:
    verdict = setting.correct(note="it said Enzo")
    first = next(op for op in setting.operations if op.step in ("extract", "create"))
    assert verdict["decisive"][0] | _key(first) == verdict["decisive"][0]
    assert (verdict["stage"], verdict["error_type"]) == ("extraction", "distortion")
    assert [hop["span"] for hop in verdict["path"] if hop["decisive"]] == [_key(first)]
    outcomes = {hop["span"]["spanId"]: hop["outcome"] for hop in verdict["path"]}
    seen = {hop["span"]["spanId"]: hop["outcome"] for hop in setting.first["path"]}
    assert outcomes == seen | {first.span_id: "changed"}, "what was seen elsewhere stays seen"
    assert verdict["judgement"]["agreement"] == "stage"
    assert verdict["judgement"]["machine"]["error_type"] == "wrongly_deleted"
    assert '"it said Enzo"' in verdict["explanation"]
    assert verdict["supersedes"]["revision"] == 1


@pytest.mark.parametrize(
    ("said", "agreement"),
    [
        ({"type": "not_deleted", "decisive": "deleting"}, "type"),
        ({"type": "wrongly_deleted", "decisive": "asked"}, "operation"),
        ({"type": "wrongly_deleted", "decisive": "deleting"}, "confirmed"),
        ({"type": "bad_reference"}, "stage"),
    ],
)
def test_what_was_corrected_is_the_coarsest_part_that_differs(
    setting: Setting, said: dict[str, Any], agreement: str
) -> None:
    named = said.pop("decisive", None)
    decisive = [str(getattr(setting, named).key)] if named else []
    verdict = setting.correct(**said, decisive=decisive)
    assert verdict["judgement"]["agreement"] == agreement
    assert setting.cases.judgement_counts() == {("deletion", agreement): 1}


def test_several_decisive_operations_stand_in_the_order_in_which_they_ran(setting: Setting) -> None:
    late, early = setting.asked, setting.deleting
    verdict = setting.correct(type="not_retrieved", decisive=[str(late.key), str(early.key)])
    assert [each["spanId"] for each in verdict["decisive"]] == [early.span_id, late.span_id]


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ({"type": "misremembered"}, "no type of error"),
        ({"stage": "update"}, "distortion is a type of the stage extraction"),
        ({"decisive": []}, "name the decisive one"),
        ({"type": "never_told"}, "never_told has no decisive operation"),
        ({"decisive": [f"{'0' * 32}:{'e' * 16}"]}, "no operation of this case"),
        ({"decisive": ["somewhere"]}, "not TRACE:SPAN"),
        ({"last_right": "Enzo"}, "reference"),
        ({"note": "x" * 2_001}, "not a judgement"),
        ({"by": "x" * 101}, "not a judgement"),
        ({"action": "applaud"}, "not a judgement"),
        ({"unknown": 1}, "not a judgement"),
    ],
)
def test_what_cannot_be_said_of_the_case_is_refused(
    setting: Setting, said: dict[str, Any], says: str
) -> None:
    action = said.pop("action", "correct")
    with pytest.raises(WrongUseError, match=says):
        setting.correct(**said) if action == "correct" else setting.say(action)
    assert setting.current() == setting.first


def test_the_same_judgement_again_changes_nothing(setting: Setting) -> None:
    first = setting.correct(revision=1)
    setting.clock.move(5)
    assert setting.correct(revision=1) == first
    assert setting.correct() == first
    assert len(setting.cases.revisions(setting.case_id)) == 2
    assert setting.metrics.counted["memtrace.judgements"] == 1


def test_what_no_store_takes_of_a_note_is_replaced(setting: Setting) -> None:
    said = {"note": "half \ud83d of a pair, \0", "by": "\udcff", "last_right": "mem:m:\ud800@1"}
    verdict = setting.correct(**said)
    assert setting.current() == verdict == setting.correct(**said)
    judgement = verdict["judgement"]
    assert (judgement["note"], judgement["by"]) == ("half ? of a pair, \0", "?")
    assert verdict["last_right"] == "mem:m:?@1"


def test_a_verdict_of_a_release_that_told_no_systems_is_no_other_finding(setting: Setting) -> None:
    older = setting.first | {
        "path": [
            {name: hop[name] for name in hop if name != "system"} for hop in setting.first["path"]
        ]
    }
    assert older["path"] != setting.first["path"]
    assert setting.cases.erase(None).verdicts == 1
    assert setting.cases.save_verdict(older, ())
    setting.cases.announce([queued(setting.answer)], (), None, setting.clock())
    assert setting.look_again() == []
    setting.say("confirm")
    setting.look_again()
    assert "memtrace.judgements.outdated" not in setting.metrics.counted
    assert setting.current()["machine_now"] is None


def test_who_looked_at_an_older_revision_is_told_what_stands_now(setting: Setting) -> None:
    setting.correct(by="anna")
    with pytest.raises(ConflictError, match=r"extraction/distortion \(human, corrected by anna\)"):
        setting.say("confirm", revision=1, by="bob")
    assert setting.current()["judgement"]["by"] == "anna"


def test_of_two_who_judge_at_once_one_is_refused(setting: Setting) -> None:
    case, barrier = setting.case, threading.Barrier(2)
    told: list[object] = []

    def judge(by: str) -> None:
        barrier.wait(10)
        try:
            told.append(setting.judging.judge(case, Said(action="confirm", revision=1, by=by)))
        except ConflictError as error:
            told.append(error)

    threads = [threading.Thread(target=judge, args=(name,)) for name in ("anna", "bob")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(type(each).__name__ for each in told) == ["ConflictError", "dict"]
    assert setting.current()["revision"] == 2


def test_who_named_no_revision_is_refused_all_the_same_when_overtaken(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = judged.confirmed

    def meanwhile(*given: Any) -> Any:
        monkeypatch.setattr(judged, "confirmed", made)
        setting.say("confirm", by="anna")
        return made(*given)

    monkeypatch.setattr(judged, "confirmed", meanwhile)
    with pytest.raises(ConflictError, match=r"not revision 1 .* but revision 2.* by anna"):
        setting.say("confirm", by="bob")


def test_a_withdrawn_judgement_gives_the_machines_verdict_back(setting: Setting) -> None:
    setting.correct()
    verdict = setting.say("withdraw", revision=2, by="anna")
    assert verdict["revision"] == 3 and verdict["method"] == "rules"
    assert verdict["judgement"] is None and verdict["withdrawn"]["by"] == "anna"
    kept = ("stage", "error_type", "decisive", "path", "score", "basis")
    assert {name: verdict[name] for name in kept} == {name: setting.first[name] for name in kept}
    assert setting.say("withdraw", revision=2) == verdict
    with pytest.raises(NotFoundError, match="nothing to withdraw"):
        setting.say("withdraw")
    assert setting.look_again() == [], "the rules find what stands again"
    assert setting.current() == verdict and setting.cases.judgement_counts() == {}
    assert setting.metrics.counted["memtrace.judgements.withdrawn"] == 1


def test_the_rules_never_supersede_a_person(setting: Setting) -> None:
    said = setting.correct()
    assert setting.look_again() == []
    setting.changes("overwritten")
    current = setting.current()
    now = current.pop("machine_now")
    assert current == {name: part for name, part in said.items() if name != "machine_now"}
    assert (now["error_type"], now["agreement"]) == ("overwritten", "stage")
    assert setting.metrics.counted["memtrace.judgements.outdated"] == 1
    setting.look_again()
    assert setting.metrics.counted["memtrace.judgements.outdated"] == 1, "said once"
    assert setting.cases.judgement_counts() == {("update", "stage"): 1}
    assert setting.worker.run_once()[0]["revision"] == 2


def test_who_judges_while_a_worker_stores_what_it_found_is_not_overruled(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored_form = superseding.stored_form

    def meanwhile(*found: Any) -> Any:
        setting.say("confirm", by="anna")
        return stored_form(*found)

    monkeypatch.setattr(superseding, "stored_form", meanwhile)
    setting.changes("not_deleted")
    current = setting.current()
    assert (current["revision"], current["judgement"]["by"]) == (2, "anna")
    assert setting.metrics.counted["memtrace.attribution.leases_lost"] == 1
    assert current["machine_now"]["error_type"] == "not_deleted", "it is looked at again at once"
    assert f"{setting.case_id}/2/case" in setting.rows()
    assert setting.cases.queue_counts()["judged"] == 1


def test_a_finding_that_comes_round_to_what_was_judged_is_counted_as_agreement(
    setting: Setting,
) -> None:
    setting.correct(type="not_deleted", decisive=[str(setting.deleting.key)])
    assert setting.cases.judgement_counts() == {("deletion", "type"): 1}
    setting.changes("not_deleted")
    assert setting.current()["machine_now"]["agreement"] == "confirmed"
    assert setting.cases.judgement_counts() == {("deletion", "confirmed"): 1}
    setting.found = attribute
    setting.look_again()
    assert setting.current()["machine_now"] is None, "the rules say again what they said"
    assert setting.cases.judgement_counts() == {("deletion", "type"): 1}


def test_a_withdrawal_gives_back_what_the_machine_finds_by_now(setting: Setting) -> None:
    setting.correct()
    setting.changes("overwritten")
    verdict = setting.say("withdraw")
    assert (verdict["error_type"], verdict["method"]) == ("overwritten", "rules")
    assert setting.look_again() == [] and setting.current() == verdict


def test_another_person_may_judge_the_judgement(setting: Setting) -> None:
    setting.correct(by="anna")
    verdict = setting.say("confirm", by="bob")
    said = verdict["judgement"]
    assert (said["action"], said["by"], said["revision"]) == ("confirmed", "bob", 2)
    assert said["agreement"] == "stage" and said["machine"]["revision"] == 1
    assert setting.say("withdraw")["error_type"] == "wrongly_deleted"


def test_what_a_person_says_is_delivered_once_by_the_worker(setting: Setting) -> None:
    before = setting.rows()
    setting.correct()
    assert setting.rows() == before, "whoever serves the page need not know the destination"
    setting.worker.look()
    made = setting.rows() - before
    own = {f"{setting.case_id}/2/{name}" for name in ("case", "attribution", "evaluation")}
    assert own < made and len(made) == 4, "and the sign at the operation that the person named"
    setting.look_again()
    assert setting.rows() == before | made
    setting.say("withdraw")
    setting.worker.look()
    assert f"{setting.case_id}/3/case" in setting.rows()


def test_a_judgement_is_delivered_though_the_case_is_still_waited_for(setting: Setting) -> None:
    setting.say("confirm")
    setting.script.lose()
    setting.script.day(21)
    setting.script.say("Thanks!")
    facts = [(LogPosition(0, 9), SpanFacts(operation=setting.script.operations[-1]))]
    setting.graphs.apply(facts, LogPosition(0, 9))
    assert settling.open_ends(setting.case)
    setting.worker.look()
    assert f"{setting.case_id}/2/case" in setting.rows()


def test_who_gives_no_name_is_known_by_the_tenant(setting: Setting) -> None:
    cases = setting.cases.for_tenant("acme")
    cases.save_verdict(setting.first, [])
    judging = Judging(cases, setting.clock)
    assert judging.judge(setting.case, Said(action="confirm"))["judgement"]["by"] == "acme"
    assert setting.say("confirm")["judgement"]["by"] == ""


def test_an_answer_without_a_verdict_cannot_be_judged(tmp_path: Path, setting: Setting) -> None:
    with closing(SqliteCaseStore(tmp_path / "empty.db")) as empty:
        judging = Judging(empty, setting.clock)
        with pytest.raises(NotFoundError, match="no verdict"):
            judging.judge(setting.case, Said(action="confirm"))
