"""What asking may cost: calls, tokens and money, per case and per run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

RUN_SECONDS = 86_400.0
"""A run is one command, or one day of a service."""
_ASCII_PER_TOKEN = 3
_TOKENS_PER_OTHER = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most that may be spent; ``cost`` in the currency of the prices, 0: not limited."""

    calls: int
    tokens: int
    cost: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Of one million tokens. 0: not known, then no cost is stated."""

    prompt: float = 0.0
    completion: float = 0.0

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """The price of one call."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one call, as the endpoint counted or as estimated."""

    prompt: int
    completion: int


def estimate(content: str) -> int:
    """Tokens of a text without its tokenizer, rather too many: one per three ASCII characters
    and two per other character (tokenizers in use need about one per four, and one)."""
    plain = sum(char < "\x80" for char in content)
    return -(-plain // _ASCII_PER_TOKEN) + _TOKENS_PER_OTHER * (len(content) - plain)


class Budget:
    """Counts what is spent against limits; safe for threads.

    A call is reserved at its estimate before it is made and settled at its usage, so that
    concurrent calls cannot overrun the limits by more than they were underestimated.
    """

    def __init__(
        self,
        limits: Limits,
        prices: Prices,
        *,
        renew_seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits, self._prices = limits, prices
        self._renew, self._clock = renew_seconds, clock
        self._lock = threading.Lock()
        self._since = clock()
        self._calls, self._tokens, self._cost = 0, 0, 0.0

    def reserve(self, expected: Usage) -> bool:
        """Take one call of this size, if the limits allow it."""
        with self._lock:
            if self._renew is not None and self._clock() - self._since >= self._renew:
                self._begin()
            tokens = self._tokens + expected.prompt + expected.completion
            cost = self._cost + self._prices.of(expected.prompt, expected.completion)
            limits = self._limits
            if (
                self._calls + 1 > limits.calls
                or tokens > limits.tokens
                or (limits.cost and cost > limits.cost)
            ):
                return False
            self._calls, self._tokens, self._cost = self._calls + 1, tokens, cost
            return True

    def settle(self, expected: Usage, used: Usage | None) -> None:
        """Replace the estimate of a reserved call by what it used; None: it was not made."""
        with self._lock:
            spent = used or Usage(prompt=0, completion=0)
            self._calls -= used is None
            self._tokens += spent.prompt + spent.completion
            self._tokens -= expected.prompt + expected.completion
            self._cost += self._prices.of(spent.prompt, spent.completion)
            self._cost -= self._prices.of(expected.prompt, expected.completion)

    def _begin(self) -> None:
        self._since = self._clock()
        self._calls, self._tokens, self._cost = 0, 0, 0.0
