"""What is said of a name that is not there."""

from __future__ import annotations

from memtrace_collector.graph.questions.suggest import no_such_record
from memtrace_collector.store.in_memory import InMemoryFactStore
from tests.memtrace_collector.graph.build import facts, operation

RECORD = "mem:stub:1"


def store() -> InMemoryFactStore:
    written = operation("1/w", "create", 1, outputs=[f"{RECORD}@a"])
    met = operation("2/r", "retrieve", 2, delivered=[f"{RECORD}@a"], graph_id="session:1")
    return InMemoryFactStore.of(facts(written, met))


def test_a_record_of_another_graph_is_not_its_own_correction_but_names_that_graph() -> None:
    said = str(no_such_record(store(), "session:1", RECORD))
    assert "did you mean" not in said and said.endswith("; it was written in user:ada")


def test_a_mistyped_record_is_corrected_from_what_the_graph_met() -> None:
    said = str(no_such_record(store(), "session:1", "mem:stub:2"))
    assert f"did you mean '{RECORD}'?" in said
