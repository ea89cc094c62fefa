"""How mem0 is put under observation and released, in the environment's generation of it."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import wrapt
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

import memtrace_otel
from memtrace_otel import runtime, testing
from memtrace_otel.config import Config
from memtrace_otel.instrumentors.mem0 import CLASSES, INNER, POOLED, PUBLIC, Mem0Instrumentor
from memtrace_otel.runtime import Runtime
from tests.instrumentors import mem0_kit
from tests.instrumentors.mem0_kit import (
    KINDS,
    World,
    lineage,
    mem,
    world,
)


@pytest.fixture(params=KINDS)
def w(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    with world(tmp_path, request.param) as made:
        yield made


def test_threads_do_not_mix_their_operations(tmp_path: Path) -> None:
    with world(tmp_path) as w, memories(w, tmp_path, "Memory") as by_user:
        started = threading.Barrier(len(by_user))

        def work(user: str, memory: Any) -> None:
            started.wait(timeout=30)
            memory.add(f"I am {user}", user_id=user, infer=False)

        with ThreadPoolExecutor(len(by_user)) as pool:
            list(pool.map(work, by_user, by_user.values()))
        assert_separate(w, by_user)


def test_concurrent_tasks_do_not_mix_their_operations(tmp_path: Path) -> None:
    with world(tmp_path) as w, memories(w, tmp_path, "AsyncMemory") as by_user:

        async def together() -> None:
            await asyncio.gather(
                *(
                    memory.add(f"I am {user}", user_id=user, infer=False)
                    for user, memory in by_user.items()
                )
            )

        asyncio.run(together())
        assert_separate(w, by_user)


@contextmanager
def memories(w: World, folder: Path, kind: str) -> Iterator[dict[str, Any]]:
    """Memories of four users, each over a store of its own: a local Qdrant is not thread-safe."""
    made = {
        user: mem0_kit.make(kind, mem0_kit.config(w.stub.base_url, folder / user))
        for user in ("bea", "cem", "dai", "eva")
    }
    try:
        yield made
    finally:
        for memory in made.values():
            mem0_kit.close(memory)


def assert_separate(w: World, by_user: dict[str, Any]) -> None:
    """Each create stands below the add of its own user and stored that user's text."""
    adds = {span["span_id"]: span["attributes"]["memtrace.graph.id"] for span in w.spans.of("add")}
    assert sorted(adds.values()) == [f"user:{user}" for user in sorted(by_user)]
    for create in w.spans.of("create"):
        graph = create["attributes"]["memtrace.graph.id"]
        assert adds[create["parent_span_id"]] == graph
        [output] = lineage(create)["outputs"]
        text = f"I am {graph.removeprefix('user:')}"
        assert output == mem(create["attributes"]["gen_ai.memory.record.id"], text)
    assert len(w.spans.of("create")) == len(by_user)


def test_uninstrumenting_restores_every_method_of_the_library(tmp_path: Path) -> None:
    main = importlib.import_module("mem0.memory.main")
    qdrant = importlib.import_module("mem0.vector_stores.qdrant").Qdrant
    openai = importlib.import_module("mem0.llms.openai").OpenAILLM
    storage = importlib.import_module("mem0.memory.storage").SQLiteManager
    owners = [
        *(getattr(main, name) for name in CLASSES),
        qdrant,
        qdrant.__mro__[1],
        openai,
        storage,
    ]
    before = [dict(vars(owner)) for owner in owners]
    with world(tmp_path) as w:
        w.add("My cat is grey", infer=False)
        names = {*PUBLIC, *INNER, *POOLED} & before[0].keys()
        assert all(vars(main.Memory)[name] is not before[0][name] for name in names)
        assert vars(qdrant)["insert"] is not before[2]["insert"]
    for owner, was in zip(owners, before):
        now = dict(vars(owner))
        assert {name for name in was if now[name] is not was[name]} == set()
        assert now.keys() == was.keys()


def test_instrumenting_twice_gives_each_operation_once(w: World) -> None:
    Mem0Instrumentor().instrument(skip_dep_check=True)
    w.store("Lives in Lisbon")
    w.search("Lisbon")
    assert w.spans.steps() == ["retrieve"]


def test_a_memory_made_before_instrumentation_is_seen_and_not_after_it(w: World) -> None:
    Mem0Instrumentor().uninstrument()
    w.search("Lisbon")
    assert w.spans.all() == []
    Mem0Instrumentor().instrument(skip_dep_check=True)
    w.search("Lisbon")
    assert w.spans.steps() == ["retrieve"]


def test_a_wrapper_that_somebody_else_put_around_ours_cannot_double_an_operation(
    w: World,
) -> None:
    kind = type(w.memory)
    ours = vars(kind)["search"]
    theirs = wrapt.FunctionWrapper(ours, lambda wrapped, _, args, kwargs: wrapped(*args, **kwargs))
    kind.search = theirs
    try:
        Mem0Instrumentor().uninstrument()
        w.search("cat")
        assert w.spans.all() == []
        Mem0Instrumentor().instrument(skip_dep_check=True)
        w.search("cat")
        assert w.spans.steps() == ["retrieve"]
    finally:
        Mem0Instrumentor().uninstrument()
        kind.search = ours.__wrapped__


def test_methods_keep_their_kind_and_signature(w: World) -> None:
    method = type(w.memory).search
    Mem0Instrumentor().uninstrument()
    original = type(w.memory).search
    Mem0Instrumentor().instrument(skip_dep_check=True)
    assert inspect.signature(method) == inspect.signature(original)
    assert inspect.iscoroutinefunction(method) == inspect.iscoroutinefunction(original)
    assert method.__doc__ == original.__doc__


@pytest.mark.parametrize("broken", ["messages_of", "graph_ids", "record"])
def test_a_fault_of_ours_never_reaches_the_program(
    w: World, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def fault(*_: Any, **__: Any) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setenv("MEMTRACE_RAISE_INTERNAL", "0")
    with monkeypatch.context() as patch:
        patch.setattr(f"memtrace_otel.instrumentors.mem0_identity.{broken}", fault)
        [result] = w.add("My cat is grey", infer=False)
        assert [item["id"] for item in w.search("cat")] == [result["id"]]
        w.call("update", result["id"], "My cat is black")
    assert memtrace_otel.current_operation() is None
    w.spans.clear()
    w.search("cat")
    assert w.spans.one("retrieve")["parent_span_id"] == ""


def test_without_an_sdk_mem0_works_and_nothing_is_made(w: World) -> None:
    before = runtime.install(Runtime(Config(digest_key="plain")))
    try:
        [result] = w.add("My cat is grey", infer=False)
        assert w.stored() == {result["id"]: "My cat is grey"}
    finally:
        runtime.install(before)
    assert w.spans.all() == []


def test_unsampled_operations_leave_mem0_as_it_is(tmp_path: Path) -> None:
    with world(tmp_path) as w, testing.capture(sampler=ALWAYS_OFF) as unsampled:
        [result] = w.add("My cat is grey", infer=False)
        assert w.stored() == {result["id"]: "My cat is grey"}
        assert unsampled.all() == []
