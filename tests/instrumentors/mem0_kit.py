"""A real mem0 over a scripted model, a local vector store and spans kept in memory.

Runs under mem0ai 1.x and 2.x alike. Importing this module turns mem0's own telemetry off and
gives it a folder of its own, which mem0 reads when it is imported: hence the late import.
"""

from __future__ import annotations

import asyncio
import atexit
import importlib
import inspect
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from memtrace_otel import testing, variables
from memtrace_otel.instrumentors.mem0 import Mem0Instrumentor
from memtrace_otel.recording import qualified_name
from memtrace_otel.testing import SpanDict, Spans
from tests.instrumentors.openai_stub import DIMENSIONS, OpenAIStub

MAJOR = int(version("mem0ai").partition(".")[0])
"""What a minor version does is looked up in the library where tests depend on it."""
COLLECTION = "notes"
USER = "ana"
GRAPH = f"user:{USER}"
"""Graph of :data:`USER` under the ``plain`` key."""
KINDS = ("Memory", "AsyncMemory")

_folder = tempfile.mkdtemp(prefix="mem0-")
atexit.register(shutil.rmtree, _folder, ignore_errors=True)
os.environ.update(
    MEM0_TELEMETRY="False", MEM0_DIR=_folder, OPENAI_API_KEY="none", MEMTRACE_RAISE_INTERNAL="1"
)


def config(base_url: str, folder: Path) -> dict[str, Any]:
    """A mem0 configuration over the stub, with a local Qdrant below ``folder``."""
    openai = {"api_key": "none", "openai_base_url": base_url}
    return {
        "llm": {"provider": "openai", "config": {"model": "stub", **openai}},
        "embedder": {
            "provider": "openai",
            "config": {"model": "stub", "embedding_dims": DIMENSIONS, **openai},
        },
        "vector_store": {
            "provider": "qdrant",
            "config": {
                "path": str(folder / "qdrant"),
                "collection_name": COLLECTION,
                "embedding_model_dims": DIMENSIONS,
            },
        },
        "history_db_path": str(folder / "history.db"),
    }


@dataclass
class World:
    """One memory with everything around it."""

    memory: Any
    stub: OpenAIStub
    spans: Spans

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call a public method, synchronous or not."""
        result = getattr(self.memory, method)(*args, **kwargs)
        return asyncio.run(_awaited(result)) if inspect.isawaitable(result) else result

    def add(self, messages: Any, *replies: object, user: str = USER, **kwargs: Any) -> list[Any]:
        """``add`` for a user; each reply (JSON when it is no text) answers one model call."""
        texts = [reply if _is_reply(reply) else json.dumps(reply) for reply in replies]
        self.stub.reply(*texts)  # type: ignore[arg-type]  # what is no reply became text
        results: list[Any] = self.call("add", messages, user_id=user, **kwargs)["results"]
        return results

    def store(self, *texts: str, user: str = USER) -> list[str]:
        """Put records there, unseen by the model; the spans of it are forgotten."""
        messages = [{"role": "user", "content": text} for text in texts]
        ids = [item["id"] for item in self.add(messages, user=user, infer=False)]
        self.spans.clear()
        return ids

    def search(self, query: str, *, limit: int = 10, user: str = USER, **kwargs: Any) -> list[Any]:
        """``search`` for a user, with the arguments that this generation wants."""
        if MAJOR == 1:
            found = self.call("search", query, user_id=user, limit=limit, **kwargs)
        else:
            found = self.call("search", query, filters={"user_id": user}, top_k=limit, **kwargs)
        results: list[Any] = found["results"]
        return results

    def get_all(self, *, user: str = USER) -> list[Any]:
        """``get_all`` for a user, with the arguments that this generation wants."""
        scope = {"user_id": user} if MAJOR == 1 else {"filters": {"user_id": user}}
        results: list[Any] = self.call("get_all", **scope)["results"]
        return results

    def stored(self) -> dict[str, str]:
        """What the vector store itself holds: id -> text."""
        points, _ = self.memory.vector_store.client.scroll(COLLECTION, limit=1_000)
        return {str(point.id): point.payload["data"] for point in points}


@contextmanager
def world(
    folder: Path, kind: str = "Memory", *, content: bool = True, digest_key: str = "plain"
) -> Iterator[World]:
    """An instrumented memory of this kind; everything is closed and restored afterwards."""
    Mem0Instrumentor().instrument(skip_dep_check=True)
    try:
        with testing.capture(content=content, digest_key=digest_key) as spans, OpenAIStub() as stub:
            memory = make(kind, config(stub.base_url, folder))
            try:
                yield World(memory, stub, spans)
            finally:
                close(memory)
    finally:
        Mem0Instrumentor().uninstrument()


def make(kind: str, settings: dict[str, Any]) -> Any:
    """A memory of this kind; some 1.x make an ``AsyncMemory`` by a coroutine."""
    made = memory_class(kind).from_config(settings)
    return asyncio.run(_awaited(made)) if inspect.isawaitable(made) else made


def memory_class(kind: str = "Memory") -> Any:
    """mem0's own class, imported when it is first wanted."""
    return getattr(importlib.import_module("mem0"), kind)


def close(memory: Any) -> None:
    """Close what a memory leaves open."""
    memory.vector_store.client.close()
    memory.db.close()
    memory.llm.client.close()
    memory.embedding_model.client.close()


def error_seen(call: Callable[..., Any], *args: Any) -> str | None:
    """``error.type`` of what the caller of ``call`` sees; releases of mem0 differ in that."""
    try:
        call(*args)
    except Exception as error:
        return qualified_name(error)
    return None


def fact(text: str) -> str:
    """Reference of a fact with this text."""
    return str(variables.make("fact", text, key=variables.PLAIN))


def mem(record_id: str, text: str) -> str:
    """Reference of a stored record with this text."""
    return f"mem:mem0:{record_id}@{text_version(text)}"


def msg(text: str, declared: str | None = None) -> str:
    """Reference of a message, by its declared id where it has one."""
    return str(variables.make("msg", text, key=variables.PLAIN, id=declared))


def text_version(text: str) -> str:
    """Version of a text under the ``plain`` key."""
    return variables.PLAIN.digest(text)[:12]


def lineage(span: SpanDict) -> dict[str, Any]:
    """Lineage of a span without what belongs to the process."""
    return {k: v for k, v in testing.lineage(span).items() if k not in ("seq", "key")}


def children(spans: Spans, step: str) -> list[SpanDict]:
    """The spans below the only span of ``step``, in the order in which they started."""
    parent = spans.one(step)["span_id"]
    below = [span for span in spans.all() if span["parent_span_id"] == parent]
    return sorted(below, key=lambda span: span["start_ns"])


def _is_reply(reply: object) -> bool:
    return not isinstance(reply, (dict, list))


async def _awaited(awaitable: Any) -> Any:
    # One thread: AsyncMemory deletes from several at once, which the local qdrant cannot take.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(max_workers=1))
    return await awaitable
