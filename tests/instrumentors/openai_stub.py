"""A scripted OpenAI-compatible server on loopback: real HTTP, no model.

``POST /v1/chat/completions`` (JSON and server-sent events) and ``POST /v1/embeddings`` (a
deterministic bag-of-words embedder: texts that share words are near each other). Replies are
queued with :meth:`OpenAIStub.reply`, or computed by a function of the request.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

DIMENSIONS = 64
MODEL = "stub-model"


@dataclass(frozen=True)
class ToolCall:
    """One function call of an assistant message; ``arguments`` is JSON text."""

    name: str
    arguments: str
    id: str = "call_1"


@dataclass(frozen=True)
class Reply:
    """One completion: a text per choice, tool calls (first choice only), or an HTTP error."""

    texts: tuple[str, ...] = ("",)
    tool_calls: tuple[ToolCall, ...] = ()
    status: int = 200
    break_after_chunks: int | None = None
    """Close the connection after this many streamed chunks."""
    prompt_tokens: int = 1
    completion_tokens: int = 1


Respond = Callable[[dict[str, Any]], "Reply | str"]


def embed(text: str) -> list[float]:
    """A unit vector made from the words of ``text``: equal texts are equal, shared words near."""
    vector = [0.0] * DIMENSIONS
    for word in re.findall(r"\w+", text.lower()) or [text]:
        digest = hashlib.sha256(word.encode()).digest()
        vector[digest[0] % DIMENSIONS] += 1.0
        vector[digest[1] % DIMENSIONS] += 0.5
    norm = sum(value * value for value in vector) ** 0.5
    return [value / norm for value in vector]


class OpenAIStub:
    """The server, as a context manager. ``base_url`` ends in ``/v1``."""

    def __init__(self, respond: Respond | None = None) -> None:
        self._replies: deque[Reply | str | Respond] = deque()
        self._respond = respond
        self._lock = threading.Lock()
        self.chat_requests: list[dict[str, Any]] = []
        self.embedding_requests: list[dict[str, Any]] = []
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def reply(self, *replies: Reply | str | Respond) -> None:
        """Queue replies: each answers one chat request, in order."""
        with self._lock:
            self._replies.extend(replies)

    def respond_with(self, respond: Respond) -> None:
        """Answer from now on by another function."""
        with self._lock:
            self._respond = respond

    def __enter__(self) -> OpenAIStub:
        self._thread.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, request: dict[str, Any]) -> Reply:
        """The reply to one chat request: the next queued one, else the function's."""
        with self._lock:
            self.chat_requests.append(request)
            queued = self._replies.popleft() if self._replies else self._respond
        if queued is None:
            return Reply(texts=("no reply was scripted for this request",), status=500)
        reply = queued(request) if callable(queued) else queued
        return Reply(texts=(reply,)) if isinstance(reply, str) else reply


def completion(reply: Reply) -> dict[str, Any]:
    """The JSON body of a completion that is not streamed."""
    choices = []
    for index, text in enumerate(reply.texts):
        message: dict[str, Any] = {"role": "assistant", "content": text or None}
        calls = reply.tool_calls if index == 0 else ()
        if calls:
            message["tool_calls"] = [_tool_call(call) for call in calls]
        finish = "tool_calls" if calls else "stop"
        choices.append({"index": index, "message": message, "finish_reason": finish})
    return {
        "id": response_id(reply),
        "object": "chat.completion",
        "created": 1_767_225_600,
        "model": MODEL,
        "choices": choices,
        "usage": {
            "prompt_tokens": reply.prompt_tokens,
            "completion_tokens": reply.completion_tokens,
            "total_tokens": reply.prompt_tokens + reply.completion_tokens,
        },
    }


def chunks(reply: Reply) -> Iterator[dict[str, Any]]:
    """The streamed form: about four characters at a time, then the finish reason."""
    for index, text in enumerate(reply.texts):
        yield _chunk(reply, index, {"role": "assistant", "content": ""})
        for start in range(0, len(text), 4):
            yield _chunk(reply, index, {"content": text[start : start + 4]})
        calls = reply.tool_calls if index == 0 else ()
        for position, call in enumerate(calls):
            yield _chunk(reply, index, {"tool_calls": [{"index": position, **_tool_call(call)}]})
        yield _chunk(reply, index, {}, "tool_calls" if calls else "stop")


def response_id(reply: Reply) -> str:
    """A stable id, so that tests can name a response."""
    return "chatcmpl-" + hashlib.sha256(repr(reply).encode()).hexdigest()[:12]


def _chunk(
    reply: Reply, index: int, delta: dict[str, Any], finish: str | None = None
) -> dict[str, Any]:
    return {
        "id": response_id(reply),
        "object": "chat.completion.chunk",
        "created": 1_767_225_600,
        "model": MODEL,
        "choices": [{"index": index, "delta": delta, "finish_reason": finish}],
    }


def _tool_call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _embeddings(request: dict[str, Any]) -> dict[str, Any]:
    texts = request["input"] if isinstance(request["input"], list) else [request["input"]]
    packed = request.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": i, "embedding": _encode(embed(text), packed)}
        for i, text in enumerate(texts)
    ]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return {"object": "list", "model": "stub-embedding", "data": data, "usage": usage}


def _encode(vector: list[float], packed: bool) -> list[float] | str:
    if not packed:
        return vector
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, stub: OpenAIStub) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.stub = stub

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):  # some tests abandon streams
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet per answer: else each waits 40 ms for a delayed acknowledgement
    disable_nagle_algorithm = True
    server: _Server

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/embeddings"):
            self.server.stub.embedding_requests.append(request)
            self._json(200, _embeddings(request))
        elif self.path.endswith("/chat/completions"):
            self._chat(request)
        else:
            self._json(404, {"error": {"message": f"no such path: {self.path}"}})

    def _chat(self, request: dict[str, Any]) -> None:
        reply = self.server.stub.answer(request)
        if reply.status != 200:
            self._json(reply.status, {"error": {"message": reply.texts[0]}})
        elif request.get("stream"):
            self._stream(reply)
        else:
            self._json(200, completion(reply))

    def _json(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, reply: Reply) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            for number, chunk in enumerate(chunks(reply)):
                if number == reply.break_after_chunks:
                    return
                self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
                self.wfile.flush()
            self.wfile.write(b"data: [DONE]\n\n")
        except (BrokenPipeError, ConnectionResetError):
            return

    def log_message(self, format: str, *args: object) -> None:
        """Quiet: pytest shows what failed."""
