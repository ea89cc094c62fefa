"""A deterministic stand-in for a language model, served as an OpenAI-compatible HTTP API.

It recognises what mem0 1.x asks of a model (extract facts; decide what to do with them) and
otherwise answers the question at the end of a prompt from the items listed in it. It goes wrong
only where its fault table says so. Run as a program it serves on loopback and prints its URL::

    python -m memtrace_collector.demo.model [--plant]
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from memtrace_collector.demo import decision
from memtrace_collector.demo.answering import answer, question_of
from memtrace_collector.demo.cases import questions
from memtrace_collector.demo.embeddings import DIMENSIONS, embed
from memtrace_collector.demo.extraction import extract_facts
from memtrace_collector.demo.faults import FaultTable
from memtrace_collector.demo.language import words

MODEL_NAME = "memtrace-stand-in"
_CREATED = 1_767_225_600
_EXTRACTION_PROMPT = "Personal Information Organizer"


@dataclass(slots=True)
class StandIn:
    """The model: ``chat`` and ``embeddings`` take and return OpenAI's JSON."""

    faults: FaultTable = field(default_factory=FaultTable)
    _count: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def chat(self, body: dict[str, Any]) -> dict[str, Any]:
        """One chat completion; its id is unique within the run."""
        messages = body["messages"]
        text = self.complete("\n".join(str(message["content"]) for message in messages))
        return {
            "id": self._completion_id(text),
            "object": "chat.completion",
            "created": _CREATED,
            "model": body.get("model", MODEL_NAME),
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": text},
                    "finish_reason": "stop",
                }
            ],
            "usage": _usage(messages, text),
        }

    def complete(self, prompt: str) -> str:
        """The text that the model writes after ``prompt``."""
        if _EXTRACTION_PROMPT in prompt:
            conversation = prompt.rpartition("Input:\n")[2]
            facts = self.faults.facts(conversation, extract_facts(conversation))
            return json.dumps({"facts": facts}, ensure_ascii=False)
        if decision.PROMPT in prompt:
            return self._decide(prompt)
        return self.faults.reply(question_of(prompt), answer(prompt))

    def embeddings(self, body: dict[str, Any]) -> dict[str, Any]:
        """Vectors of ``body["input"]``, a text or a list of texts."""
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        size = body.get("dimensions") or DIMENSIONS
        vectors = [embed(self.faults.embedded_text(text), size) for text in texts]
        tokens = sum(len(words(text)) for text in texts)
        return {
            "object": "list",
            "model": body.get("model", MODEL_NAME),
            "data": [
                {"object": "embedding", "index": index, "embedding": vector}
                for index, vector in enumerate(vectors)
            ],
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }

    def _decide(self, prompt: str) -> str:
        memories, facts = decision.requested(prompt)
        actions = self.faults.actions(memories, facts, decision.decide(memories, facts))
        return json.dumps({"memory": [action.to_json() for action in actions]}, ensure_ascii=False)

    def _completion_id(self, text: str) -> str:
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        return f"chatcmpl-{digest}-{next(self._count)}"


def _usage(messages: list[dict[str, Any]], text: str) -> dict[str, int]:
    prompt = sum(len(words(str(message["content"]))) for message in messages)
    completion = len(words(text))
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def application(model: StandIn) -> Starlette:
    """The ASGI application: ``/v1/chat/completions``, ``/v1/embeddings``, ``/v1/models``."""

    async def chat(request: Request) -> Response:
        body = await request.json()
        completion = model.chat(body)
        if body.get("stream"):
            return StreamingResponse(_stream(completion), media_type="text/event-stream")
        return JSONResponse(completion)

    async def embeddings(request: Request) -> Response:
        return JSONResponse(model.embeddings(await request.json()))

    async def models(_: Request) -> Response:
        listed = [{"id": MODEL_NAME, "object": "model", "created": _CREATED, "owned_by": "demo"}]
        return JSONResponse({"object": "list", "data": listed})

    return Starlette(
        routes=[
            Route("/v1/chat/completions", chat, methods=["POST"]),
            Route("/v1/embeddings", embeddings, methods=["POST"]),
            Route("/v1/models", models),
        ]
    )


def _stream(completion: dict[str, Any]) -> Iterator[str]:
    """Server-sent events of a completion, a few words at a time."""
    shared = {key: completion[key] for key in ("id", "created", "model")}
    shared["object"] = "chat.completion.chunk"
    text = completion["choices"][0]["message"]["content"]
    pieces = re.findall(r"\S+\s*", text) or [""]
    deltas: list[dict[str, str]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in pieces]
    for delta in deltas:
        yield _event({**shared, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    yield _event({**shared, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    yield "data: [DONE]\n\n"


def _event(chunk: dict[str, Any]) -> str:
    return f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n"


def planted_faults() -> FaultTable:
    """The faults of the demo's questions."""
    return FaultTable(q.planted.fault for q in questions() if q.planted)


def main() -> None:
    """Serve on a free loopback port and print the base URL as the first line."""
    faults = planted_faults() if "--plant" in sys.argv[1:] else FaultTable()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(f"http://127.0.0.1:{listener.getsockname()[1]}/v1", flush=True)
        config = uvicorn.Config(application(StandIn(faults)), log_level="warning", lifespan="off")
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
