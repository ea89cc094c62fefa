"""Who met a record: as which candidate of which read, and in which answers it ended."""

from __future__ import annotations

from memtrace_collector.graph.facts import Dropped, SpanFacts
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.reached import answers_with
from memtrace_collector.graph.readings import by_write, met_by, readings
from memtrace_collector.store.in_memory import InMemoryFactStore
from tests.memtrace_collector.attribution.scripts import Script
from tests.memtrace_collector.graph.build import GRAPH, facts, operation

RECORD = "mem:stub:1"


def test_each_candidate_has_its_rank_and_score_and_why_it_was_cut() -> None:
    script = Script()
    refs = [script.remember(text, record=record)[1] for text, record in (("A", "1"), ("B", "2"))]
    script.ask("Which?")
    script.retrieve(refs[1], refs[0], scores=(0.9, 0.5))
    script.retrieve(refs[1], dropped=[Dropped(refs[0], 0.1, "threshold", 7)])
    met = met_by(Lookups(script.store()), script.graph, RECORD)
    found = [(each.rank, each.score, each.reason) for each in readings(RECORD, met)]
    assert found == [(2, 0.5, ""), (7, 0.1, "threshold")]


def test_a_composite_is_no_second_reading_of_what_its_stage_delivered() -> None:
    whole = operation("t/a", "retrieve", 1, delivered=["mem:s:1@a", "mem:s:2@a"], composite=True)
    stage = operation("t/b", "retrieve", 2, delivered=["mem:s:1@a"], parent="a")
    assert [each.operation for each in readings("mem:s:1", [whole, stage])] == [stage]
    assert [each.operation for each in readings("mem:s:2", [whole, stage])] == [whole]


def test_readers_of_other_owners_are_found_unless_the_record_is_their_own() -> None:
    made = operation("w/w", "create", 1, outputs=["mem:s:1@a"])
    named = operation(
        "x/r", "retrieve", 5, delivered=["mem:s:1@a"], graph_id="user:x", reads=(GRAPH,)
    )
    silent = operation("y/r", "retrieve", 6, delivered=["mem:s:1@a"], graph_id="user:y")
    own = operation("z/w", "create", 7, outputs=["mem:s:1@a"], graph_id="user:z")
    of_own = operation("z/r", "retrieve", 8, delivered=["mem:s:1@a"], graph_id="user:z")
    store = InMemoryFactStore.of(facts(made, named, silent, own, of_own))
    assert met_by(Lookups(store), GRAPH, "mem:s:1") == [named, silent]


def test_a_text_that_comes_and_goes_has_each_reading_once() -> None:
    script = Script()
    _, first = script.remember("Lives in Rome.")
    version, reads = first, []
    for day, text in enumerate(("Lives in Oslo.", "Lives in Rome.") * 3, 1):
        script.ask("Where?", day)
        reads.append(script.retrieve(version))
        version = script.update(version, text)
    lookups = Lookups(script.store())
    writes = lookups.history(script.graph, RECORD)
    grouped = by_write(writes, readings(RECORD, met_by(lookups, script.graph, RECORD)))
    assert [[each.operation for each in group] for group in grouped] == [*([r] for r in reads), []]


def test_an_answer_had_what_its_prompt_was_put_together_from() -> None:
    script = Script()
    _, version = script.remember("My barber is Enzo.")
    script.ask("Who is my barber?")
    script.retrieve(version)
    inner = script.assemble(version)
    through_prompts = script.answer("Enzo.", script.assemble(inner, text="again"))
    script.ask("And now?", 21)
    straight = script.answer("Still Enzo.", version)
    script.ask("What else?", 22)
    script.retrieve(version)
    script.answer("Nothing.", script.assemble(text="empty"))
    lookups = Lookups(script.store())
    found = answers_with(lookups, RECORD, met_by(lookups, script.graph, RECORD))
    assert found == [(through_prompts, {version}), (straight, {version})]


def test_another_record_whose_id_begins_alike_is_another_record() -> None:
    one = operation("t/a", "answer", 1, inputs=["mem:s:10@a"], outputs=["ans:x@a"])
    assert (
        answers_with(Lookups(InMemoryFactStore.of([SpanFacts(operation=one)])), "mem:s:1", [one])
        == []
    )
