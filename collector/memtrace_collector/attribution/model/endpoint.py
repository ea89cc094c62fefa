"""One chat call to any OpenAI-compatible endpoint: time-outs, retries, concurrency, JSON mode."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import openai
from openai.types.chat import ChatCompletion
from opentelemetry.instrumentation.utils import suppress_instrumentation

from memtrace_collector.attribution.model.budget import Usage, estimate
from memtrace_collector.attribution.model.clients import client
from memtrace_collector.attribution.model.questions import Message

FAILURES_UNTIL_PAUSE = 3
PAUSE_SECONDS = 60.0
TEMPERATURE = 0.0
_REFUSED = (400, 404, 415, 422)
_OTHERWISE = ("response_format", "temperature", "max_tokens")
"""Parameters without which it also goes: some servers know no JSON mode, reasoning models want
``max_completion_tokens`` and their own temperature."""


class EndpointError(Exception):
    """No reply: the endpoint cannot be reached, refuses, or answers something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A reply and its size, as counted by the endpoint or else estimated."""

    content: str
    usage: Usage


class Endpoint:
    """A model behind an HTTP interface; safe for threads.

    Args:
        model: its name there.
        base_url: ends in ``/v1``; empty: the client's own default.
        key: sent as bearer token.
        timeout_seconds: of one attempt.
        retries: further attempts after a time-out, a lost connection, 408, 409, 429 or 5xx, with
            exponential back-off (``Retry-After`` is honoured).
        concurrency: calls at the same time.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = "",
        key: str = "",
        timeout_seconds: float = 30.0,
        retries: int = 2,
        concurrency: int = 4,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.model = model
        self._client = client(base_url, key, timeout_seconds, retries)
        self._slots = threading.BoundedSemaphore(concurrency)
        self._clock = clock
        self._lock = threading.Lock()
        self._refused: frozenset[str] = frozenset()
        self._failures = 0
        self._paused_until = 0.0

    @property
    def parameters(self) -> str:
        """What besides model and prompt decides a reply."""
        return f"temperature={TEMPERATURE}"

    def complete(self, messages: Sequence[Message], max_tokens: int) -> Completion:
        """The reply to one prompt.

        Raises:
            EndpointError: there is none. After :data:`FAILURES_UNTIL_PAUSE` in a row nothing is
                sent for :data:`PAUSE_SECONDS`.
        """
        told = [{"role": each.role, "content": each.content} for each in messages]
        json_mode = {"type": "json_object"}
        reply = self._guarded(lambda: self._create(told, max_tokens, response_format=json_mode))
        return _completion(reply, sum(estimate(each.content) for each in messages))

    def converse(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        max_tokens: int,
    ) -> tuple[ChatCompletion, Usage]:
        """The reply to a conversation in which functions may be called, as it came, and its
        size; both arguments in the form of chat completions.

        Raises:
            EndpointError: as :meth:`complete`.
        """
        reply = self._guarded(lambda: self._create(messages, max_tokens, tools=list(tools)))
        return reply, _completion(reply, estimate(json.dumps([*messages, *tools]))).usage

    def close(self) -> None:
        self._client.close()

    def _guarded(self, send: Callable[[], ChatCompletion]) -> ChatCompletion:
        if self._clock() < self._paused_until:
            raise EndpointError("not asked: it has just failed several times")
        try:
            with self._slots, suppress_instrumentation():
                reply = send()
        except openai.OpenAIError as error:
            self._count(failed=True)
            raise EndpointError(f"{type(error).__name__}: {error}"[:300]) from None
        self._count(failed=False)
        return reply

    def _create(
        self, messages: Sequence[Mapping[str, Any]], max_tokens: int, **options: Any
    ) -> ChatCompletion:
        """Send with every parameter that the endpoint has not refused so far."""
        wanted = {"temperature": TEMPERATURE, "max_tokens": max_tokens, **options}
        for _ in range(len(_OTHERWISE) + 1):
            sent = {name: value for name, value in wanted.items() if name not in self._refused}
            if "max_tokens" in self._refused:
                sent["max_completion_tokens"] = max_tokens
            try:
                return self._send(messages, sent)
            except openai.APIStatusError as error:
                named = [name for name in _OTHERWISE if name in sent and name in str(error)]
                if error.status_code not in _REFUSED or not named:
                    raise
                self._refused = self._refused | set(named)
        raise EndpointError("every form of the request was refused")

    def _send(
        self, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]
    ) -> ChatCompletion:
        told: list[Any] = list(messages)
        found: ChatCompletion = self._client.chat.completions.create(
            model=self.model, messages=told, **options
        )
        return found

    def _count(self, *, failed: bool) -> None:
        with self._lock:
            self._failures = self._failures + 1 if failed else 0
            if self._failures >= FAILURES_UNTIL_PAUSE:
                self._paused_until = self._clock() + PAUSE_SECONDS
                self._failures = 0


def _completion(reply: object, sent_tokens: int) -> Completion:
    """What counts of a reply, of whatever form a compatible endpoint sent; ``sent_tokens``:
    the estimate, where the endpoint does not count."""
    choices = getattr(reply, "choices", None)
    content = getattr(getattr(choices[0], "message", None), "content", None) if choices else None
    said = content if isinstance(content, str) else ""
    usage = getattr(reply, "usage", None)
    prompt, completion = (
        getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens")
    )
    return Completion(
        content=said,
        usage=Usage(
            prompt=prompt if isinstance(prompt, int) else sent_tokens,
            completion=completion if isinstance(completion, int) else estimate(said),
        ),
    )
