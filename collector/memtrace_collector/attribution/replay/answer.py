"""The answer call, made again through an OpenAI-compatible endpoint.

The prompt is the agent's own and hostile by nature: it is sent as it was, with no tools, and the
reply is only ever compared with what was expected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import openai
from opentelemetry.instrumentation.utils import suppress_instrumentation

from memtrace_collector.attribution.model.clients import client
from memtrace_collector.attribution.replay.messages import Message
from memtrace_collector.errors import UnreachableError, WrongUseError

TIMEOUT_SECONDS = 60.0
RETRIES = 2


class Answering(Protocol):
    """Asks a model. Called from several threads."""

    def complete(
        self, model: str, messages: Sequence[Message], parameters: Mapping[str, object]
    ) -> str:
        """The model's reply; empty when it says nothing.

        Raises:
            UnreachableError: nobody answers, or not in time, or not now.
            WrongUseError: the endpoint refuses this request.
        """
        ...


class Endpoint:
    """An OpenAI-compatible endpoint.

    Args:
        base_url: its URL up to the version, such as ``http://localhost:8000/v1``.
        api_key: sent as bearer token; a server without keys takes any.
    """

    def __init__(self, base_url: str, api_key: str = "") -> None:
        self._base_url = base_url
        self._client = client(base_url, api_key, TIMEOUT_SECONDS, RETRIES)

    def complete(
        self, model: str, messages: Sequence[Message], parameters: Mapping[str, object]
    ) -> str:
        told: list[Any] = [{"role": each.role, "content": each.text} for each in messages]
        options: dict[str, Any] = dict(parameters)
        try:
            with suppress_instrumentation():
                completion = self._client.chat.completions.create(
                    model=model, messages=told, **options
                )
        except (openai.APIConnectionError, openai.InternalServerError, openai.RateLimitError) as e:
            raise UnreachableError(f"{self._base_url} does not answer: {e}") from None
        except openai.APIStatusError as error:
            raise WrongUseError(f"{self._base_url} refuses the prompt: {error}") from None
        except openai.OpenAIError as error:
            raise UnreachableError(f"{self._base_url}: {error}") from None
        choices = getattr(completion, "choices", None) or ()
        return (choices[0].message.content or "") if choices else ""

    def close(self) -> None:
        self._client.close()
