"""The stand-in behind an OpenAI-compatible endpoint, served by a thread of this process.

Chat completions only (with tools, without streaming): everything else the pipelines call
directly. What is not the question, the instructions included, is the context of an answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from memtrace_collector.bench.stand_in import tools
from memtrace_collector.bench.stand_in.model import MODEL_NAME, StandIn
from memtrace_collector.demo.language import words

_CREATED = 1_767_225_600
_FAILED = 500


@contextmanager
def served(model: StandIn) -> Iterator[str]:
    """Serve ``model`` on a free loopback port as long as the context lasts; gives the base URL."""

    class Handler(_Handler):
        stand_in = model

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def completion(model: StandIn, body: Mapping[str, Any]) -> dict[str, Any]:
    """One chat completion as OpenAI's JSON."""
    messages = body["messages"]
    prompt = "\n".join(tools.text_of(message) for message in messages)
    identifier = model.response_id(prompt)
    called = tools.calls(model, body, identifier)
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if called:
        message["tool_calls"] = called
    else:
        message["content"] = _spoken(model, prompt, identifier)
    counted = len(words(prompt))
    return {
        "id": identifier,
        "object": "chat.completion",
        "created": _CREATED,
        "model": body.get("model", MODEL_NAME),
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": "tool_calls" if called else "stop",
            }
        ],
        "usage": {"prompt_tokens": counted, "completion_tokens": 8, "total_tokens": counted + 8},
    }


def _spoken(model: StandIn, prompt: str, identifier: str) -> str:
    question = model.case.question.text
    if question not in prompt:
        return tools.DONE
    before, _, after = prompt.rpartition(question)
    return model.answer(f"{before}\n{after}", identifier)


class _Handler(BaseHTTPRequestHandler):
    stand_in: StandIn
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length))
        if self.stand_in.fails_next_call():
            self._send(_FAILED, {"error": {"message": "the model is overloaded", "type": "server"}})
        else:
            self._send(200, completion(self.stand_in, body))

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: standard error is for progress."""

    def _send(self, status: int, document: Mapping[str, Any]) -> None:
        content = json.dumps(document, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
