"""``add`` of mem0 2.x against the real library: search, extract, store what is new."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from tests.instrumentors import mem0_kit
from tests.instrumentors.mem0_kit import (
    KINDS,
    World,
    children,
    error_seen,
    fact,
    lineage,
    mem,
    msg,
    world,
)
from tests.instrumentors.openai_stub import Reply

pytestmark = pytest.mark.mem0_2

TOLD = "I moved to Lisbon in March."


@pytest.fixture(params=KINDS)
def w(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    with world(tmp_path, request.param) as made:
        yield made


def extraction(*texts: str, linked: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "memory": [
            {"id": str(number), "text": text, "linked_memory_ids": list(linked)}
            for number, text in enumerate(texts)
        ]
    }


def refuse(*_: Any, **__: Any) -> None:
    raise OSError("disk full")


def test_facts_become_records_with_the_librarys_ids(w: World) -> None:
    message = {"role": "user", "content": TOLD, "id": "conv/7"}
    results = w.add([message], extraction("Lives in Lisbon", "Moved in March"))

    told = msg(TOLD, "conv/7")
    texts = ["Lives in Lisbon", "Moved in March"]
    stages = children(w.spans, "add")
    assert [span["attributes"]["memtrace.step"] for span in stages] == [
        "ingest",
        "retrieve",
        "extract",
        "create",
        "create",
    ]
    assert lineage(w.spans.one("retrieve"))["inputs"] == [told]
    assert lineage(w.spans.one("extract")) == {
        "inputs": [told],
        "outputs": [fact(text) for text in texts],
        "edges": [[told, fact(text), "extracted_from"] for text in texts],
    }
    assert [lineage(span) for span in stages[3:]] == [
        {"inputs": [fact(text)], "outputs": [mem(result["id"], text)]}
        for result, text in zip(results, texts)
    ]
    assert w.stored() == {result["id"]: text for result, text in zip(results, texts)}


def test_what_the_model_was_shown_is_no_input(w: World) -> None:
    [old] = w.add("I like tea.", extraction("Likes tea"))
    w.spans.clear()
    w.add(TOLD, extraction("Lives in Lisbon"))
    extract = lineage(w.spans.one("extract"))
    assert extract["shown"] == [msg("I like tea."), mem(old["id"], "Likes tea")]
    assert extract["inputs"] == [msg(TOLD)]
    assert lineage(w.spans.one("retrieve"))["delivered"] == [mem(old["id"], "Likes tea")]


def test_linked_memories_become_related_to_edges_with_real_ids(w: World) -> None:
    [old] = w.add("I like tea.", extraction("Likes tea"))
    w.spans.clear()
    [new] = w.add(TOLD, extraction("Drinks tea in Lisbon", linked=("0", "9", "x")))
    create = lineage(w.spans.one("create"))
    source, record = fact("Drinks tea in Lisbon"), mem(new["id"], "Drinks tea in Lisbon")
    assert create["edges"] == [
        [source, record, "derived_from"],
        [record, mem(old["id"], "Likes tea"), "related_to"],
    ]
    assert create["inputs"] == [source]


def test_a_duplicate_of_a_stored_memory_is_dropped_and_not_created(w: World) -> None:
    w.add("I like tea.", extraction("Likes tea"))
    w.spans.clear()
    w.add(TOLD, extraction("Likes tea", "Lives in Lisbon", "Lives in Lisbon"))
    assert lineage(w.spans.one("add"))["dropped"] == [[fact("Likes tea"), None, "dedup"]]
    assert lineage(w.spans.one("create"))["inputs"] == [fact("Lives in Lisbon")]


def test_a_record_that_the_store_refuses_fails_beside_one_that_it_takes(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = w.memory.vector_store.client
    upsert = client.upsert

    def picky(collection_name: str, points: list[Any], **kwargs: Any) -> Any:
        if any("Lisbon" in point.payload["data"] for point in points):
            raise OSError("disk full")
        return upsert(collection_name, points, **kwargs)

    monkeypatch.setattr(client, "upsert", picky)
    results = w.add(TOLD, extraction("Lives in Lisbon", "Likes tea"))
    [kept] = [item for item in results if item["memory"] == "Likes tea"]
    by_status = {span["status"]: span for span in w.spans.of("create")}
    assert by_status.keys() == {"ERROR", "UNSET"}
    assert by_status["ERROR"]["attributes"]["error.type"] == "OSError"
    assert lineage(by_status["ERROR"]) == {"inputs": [fact("Lives in Lisbon")]}
    assert lineage(by_status["UNSET"])["outputs"] == [mem(kept["id"], "Likes tea")]
    assert "dropped" not in lineage(w.spans.one("add"))


def test_when_the_store_takes_nothing_every_create_fails_whatever_add_says(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(w.memory.vector_store.client, "upsert", refuse)
    seen = error_seen(w.add, TOLD, extraction("Lives in Lisbon"))
    assert seen in (None, "mem0.exceptions.VectorStoreError")
    assert w.spans.one("create")["attributes"]["error.type"] == "OSError"
    assert w.spans.one("add")["attributes"].get("error.type") == seen


def test_a_fact_that_cannot_be_embedded_is_dropped_for_another_reason(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    embed = w.memory.embedding_model.embed

    def picky(text: str, *args: Any, **kwargs: Any) -> Any:
        if text == "Lives in Lisbon":
            raise OSError("no embedding")
        return embed(text, *args, **kwargs)

    monkeypatch.setattr(w.memory.embedding_model, "embed", picky)
    monkeypatch.setattr(w.memory.embedding_model, "embed_batch", refuse)
    w.add(TOLD, extraction("Lives in Lisbon", "Likes tea"))
    assert lineage(w.spans.one("add"))["dropped"] == [[fact("Lives in Lisbon"), None, "other"]]


def test_a_failing_model_fails_the_extraction_and_what_the_caller_sees(w: World) -> None:
    seen = error_seen(w.add, TOLD, Reply(texts=("busy",), status=400))
    assert seen in (None, "mem0.exceptions.LLMError")
    assert w.spans.one("extract")["attributes"]["error.type"] == "openai.BadRequestError"
    assert w.spans.one("add")["attributes"].get("error.type") == seen


def test_an_unreadable_extraction_fails_although_mem0_swallows_it(w: World) -> None:
    assert w.add(TOLD, "I would rather not say.") == []
    assert w.spans.one("extract")["status"] == "ERROR"
    assert w.spans.one("add")["status"] == "UNSET"


expiring = pytest.mark.skipif(
    "expiration_date" not in inspect.signature(mem0_kit.memory_class().add).parameters,
    reason="this mem0 knows no expiry",
)


@expiring
def test_an_expired_record_is_dropped_from_a_search_as_expired(w: World) -> None:
    [record] = w.add("I like tea.", infer=False, expiration_date="2001-01-01")
    w.spans.clear()
    assert w.search("tea") == []
    [[ref, _, reason, *_]] = lineage(w.spans.one("retrieve"))["dropped"]
    assert reason == "expired"
    assert ref.startswith(f"mem:mem0:{record['id']}@")


@expiring
def test_setting_an_expiry_makes_a_new_version_of_equal_text(w: World) -> None:
    [record_id] = w.store("Likes tea")
    w.call("update", record_id, expiration_date="2001-01-01")
    update = lineage(w.spans.one("update"))
    plain = mem(record_id, "Likes tea")
    assert update["supersedes"] == [plain]
    assert update["outputs"][0].startswith(f"{plain}~")


def test_search_names_candidates_beyond_the_limit_with_their_rank(w: World) -> None:
    w.store("Owns a grey cat", "Owns a cat")
    [found] = w.search("Owns a grey cat", limit=1)
    read = lineage(w.spans.one("retrieve"))
    assert read["delivered"] == [mem(found["id"], "Owns a grey cat")]
    [[ref, score, reason, rank]] = read["dropped"]
    assert ref.endswith(mem("", "Owns a cat").rpartition("@")[2])
    assert (score, reason, rank) == (None, "limit", 2)
