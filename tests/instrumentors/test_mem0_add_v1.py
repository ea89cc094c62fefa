"""``add`` of mem0 1.x against the real library: extract, search, decide, write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import memtrace_otel
from memtrace_otel import testing
from tests.instrumentors import mem0_kit
from tests.instrumentors.mem0_kit import KINDS, World, children, fact, lineage, mem, msg, world
from tests.instrumentors.openai_stub import Reply

pytestmark = [
    pytest.mark.mem0_1,
    pytest.mark.skipif(mem0_kit.MAJOR != 1, reason="this environment has mem0ai 2.x"),
]

TOLD = "I moved to Lisbon in March."


@pytest.fixture(params=KINDS)
def w(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    with world(tmp_path, request.param) as made:
        yield made


def facts(*texts: str) -> dict[str, Any]:
    return {"facts": list(texts)}


def decision(*entries: tuple[str, str, str]) -> dict[str, Any]:
    return {"memory": [{"id": i, "event": event, "text": text} for i, event, text in entries]}


def steps(w: World) -> list[str]:
    return [span["attributes"]["memtrace.step"] for span in children(w.spans, "add")]


def test_a_new_fact_goes_through_every_stage_to_a_record_with_the_librarys_id(w: World) -> None:
    message = {
        "role": "user",
        "content": TOLD,
        "id": "conv/7",
        "timestamp": "2026-03-02T09:00:00+01:00",
    }
    [result] = w.add([message], facts("Lives in Lisbon"), decision(("0", "ADD", "Lives in Lisbon")))

    told, record = msg(TOLD, "conv/7"), mem(result["id"], "Lives in Lisbon")
    assert steps(w) == ["ingest", "extract", "retrieve", "decide", "create"]
    assert lineage(w.spans.one("add")) == {"inputs": [told], "composite": True}
    assert lineage(w.spans.one("ingest")) == {
        "outputs": [told],
        "times": {told: "2026-03-02T09:00:00+01:00"},
        "roles": {told: "user"},
    }
    assert lineage(w.spans.one("extract")) == {
        "inputs": [told],
        "outputs": [fact("Lives in Lisbon")],
        "edges": [[told, fact("Lives in Lisbon"), "extracted_from"]],
    }
    assert lineage(w.spans.one("decide")) == {
        "inputs": [fact("Lives in Lisbon")],
        "decisions": [[None, "ADD", None]],
    }
    assert lineage(w.spans.one("create")) == {
        "inputs": [fact("Lives in Lisbon")],
        "outputs": [record],
    }
    assert w.stored() == {result["id"]: "Lives in Lisbon"}


def test_every_operation_names_graph_system_version_and_store(w: World) -> None:
    w.add(TOLD, facts("Lives in Lisbon"), decision(("0", "ADD", "Lives in Lisbon")))
    for span in w.spans.all():
        attributes = span["attributes"]
        assert attributes["memtrace.graph.id"] == mem0_kit.GRAPH
        assert attributes["memtrace.system"] == "mem0"
        assert attributes["memtrace.system.version"].startswith("1.")
        assert attributes["memtrace.capture"] == "observed"
        assert attributes["gen_ai.memory.store.id"] == mem0_kit.COLLECTION


def test_several_messages_leave_open_which_of_them_made_which_fact(w: World) -> None:
    messages = [
        {"role": "user", "content": "I moved to Lisbon."},
        {"role": "assistant", "content": "How is the light?"},
    ]
    w.add(messages, facts("Lives in Lisbon"), decision(("0", "ADD", "Lives in Lisbon")))
    extract = lineage(w.spans.one("extract"))
    assert extract["inputs"] == [msg("I moved to Lisbon."), msg("How is the light?")]
    assert "edges" not in extract
    roles = [lineage(span)["roles"] for span in w.spans.of("ingest")]
    assert [list(role.values()) for role in roles] == [["user"], ["assistant"]]


def test_an_update_with_merged_text_is_authored_by_the_decision(w: World) -> None:
    [old] = w.store("Lives in Lisbon")
    w.add(TOLD, facts("Moved to Porto"), decision(("0", "UPDATE", "Lives in Porto")))

    before, after = mem(old, "Lives in Lisbon"), mem(old, "Lives in Porto")
    new, authored = fact("Moved to Porto"), fact("Lives in Porto")
    assert lineage(w.spans.one("decide")) == {
        "inputs": [new, before],
        "shown": [before],
        "outputs": [authored],
        "decisions": [[None, "UPDATE", before]],
        "edges": [[new, authored, "derived_from"], [before, authored, "derived_from"]],
    }
    assert lineage(w.spans.one("update")) == {
        "inputs": [authored],
        "outputs": [after],
        "supersedes": [before],
    }
    assert w.stored() == {old: "Lives in Porto"}


def test_an_update_with_the_facts_own_text_is_executed_and_not_authored(w: World) -> None:
    w.store("Lives in Lisbon")
    w.add(TOLD, facts("Lives in Porto"), decision(("0", "UPDATE", "Lives in Porto")))
    decide = lineage(w.spans.one("decide"))
    assert decide["inputs"] == [fact("Lives in Porto")]
    assert "outputs" not in decide
    assert lineage(w.spans.one("update"))["inputs"] == [fact("Lives in Porto")]


def test_candidates_that_were_merely_shown_are_never_inputs(w: World) -> None:
    first, second = w.store("Lives in Lisbon", "Plays chess in Lisbon")
    w.add(TOLD, facts("Has a cat in Lisbon"), decision(("7", "ADD", "Has a cat in Lisbon")))
    candidates = {mem(first, "Lives in Lisbon"), mem(second, "Plays chess in Lisbon")}
    retrieved = lineage(w.spans.one("retrieve"))
    assert set(retrieved["delivered"]) == candidates
    assert retrieved["inputs"] == [fact("Has a cat in Lisbon")]
    assert retrieved["limits"] == {"k": 5}
    assert set(lineage(w.spans.one("decide"))["shown"]) == candidates
    for span in w.spans.all():
        assert not candidates & set(lineage(span).get("inputs", []))


def test_small_integers_of_the_model_become_real_ids_in_the_order_of_the_facts(w: World) -> None:
    cat, chess = w.store("Owns a grey cat", "Plays chess on Sundays")
    w.add(
        TOLD,
        facts("Plays chess on Mondays", "Owns a black cat"),
        decision(("0", "UPDATE", "Plays chess on Mondays"), ("1", "DELETE", "Owns a grey cat")),
    )
    assert lineage(w.spans.one("decide"))["decisions"] == [
        [None, "UPDATE", mem(chess, "Plays chess on Sundays")],
        [None, "DELETE", mem(cat, "Owns a grey cat")],
    ]
    assert lineage(w.spans.one("delete")) == {
        "outputs": [f"mem:mem0:{cat}@deleted"],
        "supersedes": [mem(cat, "Owns a grey cat")],
    }
    assert w.stored() == {chess: "Plays chess on Mondays"}


def test_a_noop_is_a_decision_and_writes_nothing(w: World) -> None:
    [old] = w.store("Lives in Lisbon")
    w.add(TOLD, facts("Lives in Lisbon"), decision(("0", "NONE", "Lives in Lisbon")))
    assert lineage(w.spans.one("decide"))["decisions"] == [
        [None, "NOOP", mem(old, "Lives in Lisbon"), "done"]
    ]
    assert not w.spans.of("create") + w.spans.of("update") + w.spans.of("delete")


def test_a_decision_about_a_memory_that_was_never_shown_is_marked_failed(w: World) -> None:
    w.store("Lives in Lisbon")
    w.add(TOLD, facts("Lives in Porto"), decision(("9", "DELETE", "x"), ("0", "UPDATE", "")))
    [[_, action, target, status], [_, _, _, skipped]] = lineage(w.spans.one("decide"))["decisions"]
    assert (action, target, status) == ("DELETE", None, "failed")
    assert skipped == "skipped"
    assert not w.spans.of("delete")


def test_a_write_that_the_store_refuses_is_visible_although_mem0_swallows_it(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(w.memory.vector_store.client, "upsert", refuse)
    assert w.add(TOLD, facts("Lives in Lisbon"), decision(("0", "ADD", "Lives in Lisbon"))) == []
    create = w.spans.one("create")
    assert create["status"] == "ERROR"
    assert create["attributes"]["error.type"] == "OSError"
    assert "outputs" not in lineage(create)
    assert w.spans.one("add")["status"] == "UNSET"


def test_a_write_that_happened_is_produced_although_its_history_failed(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(w.memory.db, "add_history", refuse)
    w.add(TOLD, facts("Lives in Lisbon"), decision(("0", "ADD", "Lives in Lisbon")))
    create = w.spans.one("create")
    [(record_id, text)] = w.stored().items()
    assert create["status"] == "ERROR"
    assert lineage(create)["outputs"] == [mem(record_id, text)]


def test_a_decided_write_that_mem0_cannot_embed_fails_visibly(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    embed = w.memory.embedding_model.embed

    def refuse_authored(text: str, *args: Any, **kwargs: Any) -> Any:
        if text == "Lives in Lisbon, Portugal":
            raise OSError("no embedding")
        return embed(text, *args, **kwargs)

    monkeypatch.setattr(w.memory.embedding_model, "embed", refuse_authored)
    w.add(TOLD, facts("Lives in Lisbon"), decision(("0", "ADD", "Lives in Lisbon, Portugal")))
    create = w.spans.one("create")
    begun = create["attributes"]["error.type"] == "OSError"  # 1.0.0 embeds inside the write
    assert begun or create["attributes"]["error.type"].endswith("NeverAttemptedError")
    assert lineage(create) == {"inputs": [fact("Lives in Lisbon, Portugal")]}


def test_an_unreadable_extraction_fails_and_stores_nothing(w: World) -> None:
    assert w.add(TOLD, "I would rather not say.") == []
    extract = w.spans.one("extract")
    assert extract["status"] == "ERROR"
    assert lineage(extract) == {"inputs": [msg(TOLD)]}
    assert steps(w) == ["ingest", "extract"]


def test_a_failing_decision_call_fails_the_decision_and_not_the_add(w: World) -> None:
    error = Reply(texts=("busy",), status=400)
    assert w.add(TOLD, facts("Lives in Lisbon"), error) == []
    assert w.spans.one("decide")["attributes"]["error.type"].endswith("BadRequestError")
    assert w.spans.one("add")["status"] == "UNSET"


def test_a_failing_extraction_call_reaches_the_caller_unchanged(w: World) -> None:
    with pytest.raises(Exception, match="busy") as raised:
        w.add(TOLD, Reply(texts=("busy",), status=400))
    for step in ("extract", "add"):
        assert w.spans.one(step)["attributes"]["error.type"] == (
            f"{type(raised.value).__module__}.{type(raised.value).__qualname__}"
        )


def test_each_call_of_the_model_is_made_inside_the_operation_that_it_belongs_to(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    completions = w.memory.llm.client.chat.completions
    create, seen = completions.create, []

    def record(**kwargs: Any) -> Any:
        operation = memtrace_otel.current_operation()
        seen.append(operation and operation.step)
        return create(**kwargs)

    monkeypatch.setattr(completions, "create", record)
    w.add(TOLD, facts("Lives in Lisbon"), decision(("0", "ADD", "Lives in Lisbon")))
    assert seen == ["extract", "decide"]


def test_the_graph_store_works_inside_the_operation_although_mem0_uses_threads(w: World) -> None:
    seen: list[str | None] = []

    class GraphStore:
        def note(self, *_: Any) -> list[Any]:
            operation = memtrace_otel.current_operation()
            seen.append(operation and operation.step)
            return []

        def add(self, *given: Any) -> list[Any]:
            return self.note(*given)

        def search(self, *given: Any) -> list[Any]:
            return self.note(*given)

        def get_all(self, *given: Any) -> list[Any]:
            return self.note(*given)

    w.memory.graph, w.memory.enable_graph = GraphStore(), True
    w.add("My cat is grey", infer=False)
    w.search("cat")
    w.get_all()
    assert seen == ["add", "retrieve", "retrieve"]


def test_content_is_captured_with_the_variable_where_it_is_first_seen(w: World) -> None:
    w.add(TOLD, facts("Lives in Lisbon"), decision(("0", "ADD", "Lives in Lisbon")))
    captured = {ref: text for span in w.spans.all() for ref, text in testing.values(span).items()}
    assert captured[msg(TOLD)] == TOLD
    assert captured[fact("Lives in Lisbon")] == "Lives in Lisbon"


def test_procedural_memory_is_a_summary_of_its_messages(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        [result] = w.add(
            TOLD, "The agent booked a flight.", agent_id="a1", memory_type="procedural_memory"
        )
        summary = fact("The agent booked a flight.")
        assert lineage(w.spans.one("consolidate")) == {
            "inputs": [msg(TOLD)],
            "outputs": [summary],
        }
        assert lineage(w.spans.one("create")) == {
            "inputs": [summary],
            "outputs": [mem(result["id"], "The agent booked a flight.")],
        }
