"""The client of an OpenAI-compatible endpoint, made in one place."""

from __future__ import annotations

import openai

NO_KEY = "none"
"""For servers without keys; the package wants one."""


def client(base_url: str, key: str, timeout_seconds: float, retries: int) -> openai.OpenAI:
    """Asks ``base_url`` (empty: where the openai package itself would) and nobody else.

    A redirect is not followed: prompts hold captured content, which goes where the
    configuration says or nowhere.
    """
    return openai.OpenAI(
        api_key=key or NO_KEY,
        base_url=base_url or None,
        timeout=timeout_seconds,
        max_retries=retries,
        http_client=openai.DefaultHttpxClient(follow_redirects=False),
    )
