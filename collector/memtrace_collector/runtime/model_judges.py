"""What judges by asking a model or comparing texts with one. Loaded where a setting wants it."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import NamedTuple

from memtrace_collector.attribution.agent.judge import AGENT, AgentJudge, AgentLimits
from memtrace_collector.attribution.attribute import attribute
from memtrace_collector.attribution.judge import Judge
from memtrace_collector.attribution.model.ask import Asker
from memtrace_collector.attribution.model.budget import RUN_SECONDS, Budget, Limits, Prices, Usage
from memtrace_collector.attribution.model.cache import Cache
from memtrace_collector.attribution.model.embeddings import (
    LOCAL,
    EndpointEmbedder,
    KeptEmbedder,
    LocalEmbedder,
)
from memtrace_collector.attribution.model.endpoint import Endpoint
from memtrace_collector.attribution.model.judge import ModelJudge
from memtrace_collector.attribution.model.similar_judge import Similar
from memtrace_collector.config import Config
from memtrace_collector.runtime.judges import CACHE_FILE
from memtrace_collector.settings.model import ModelConfig, key_for
from memtrace_collector.telemetry.metrics import Metrics


class _Asked(NamedTuple):
    """The model, and what all methods together may spend on it."""

    endpoint: Endpoint
    run: Budget


class ModelJudges:
    """See :class:`~memtrace_collector.runtime.judges.Judges`, which has checked the settings."""

    def __init__(self, config: Config, folder: Path, metrics: Metrics) -> None:
        self._config, self._folder, self._metrics = config, folder, metrics
        self._opened = contextlib.ExitStack()
        self._lock = threading.Lock()
        self._asked: _Asked | None = None
        self._asker: Asker | None = None
        self._cache: Cache | None = None
        self._compares: Similar | None = None

    def close(self) -> None:
        """End what was opened; nobody judges any more."""
        self._opened.close()

    def named(self, method: str) -> Judge:
        """What judges by ``method``, the rules with the embedding model among them."""
        model = self._config.model
        if method == "rules":
            return self._similar() or attribute
        if method == AGENT:
            asked = self._model()
            return AgentJudge(
                asked.endpoint, asked.run, _prices(model), _agent_limits(model), self._metrics
            )
        return ModelJudge(
            self._closed(), lambda: _case_budget(model), method, model.cut, self._similar()
        )

    def _similar(self) -> Similar | None:
        """Who compares texts by meaning; None where no embedding model is named."""
        model = self._config.model
        if not model.embeddings:
            return None
        cache = self._kept()
        with self._lock:
            if self._compares is None:
                embedder = _embedder(model)
                self._opened.callback(embedder.close)
                kept = KeptEmbedder(embedder, model.embeddings, cache)
                self._compares = Similar(kept, self._metrics)
            return self._compares

    def _kept(self) -> Cache:
        with self._lock:
            if self._cache is None:
                self._cache = Cache(self._folder / CACHE_FILE)
                self._opened.callback(self._cache.close)
            return self._cache

    def _model(self) -> _Asked:
        with self._lock:
            if self._asked is None:
                self._asked = self._open()
            return self._asked

    def _open(self) -> _Asked:
        model = self._config.model
        endpoint = Endpoint(
            model.name,
            base_url=model.base_url,
            key=key_for(model, os.environ),
            timeout_seconds=model.timeout_seconds,
            retries=model.retries,
            concurrency=model.concurrency,
        )
        self._opened.callback(endpoint.close)
        return _Asked(endpoint, _run_budget(model))

    def _closed(self) -> Asker:
        """Who asks closed questions."""
        asked, cache = self._model(), self._kept()
        with self._lock:
            if self._asker is None:
                prices = _prices(self._config.model)

                def price(usage: Usage) -> float:
                    return prices.of(usage.prompt, usage.completion)

                self._asker = Asker(asked.endpoint, cache, asked.run, price, self._metrics)
            return self._asker


def _embedder(model: ModelConfig) -> EndpointEmbedder | LocalEmbedder:
    if model.embeddings.startswith(LOCAL):
        return LocalEmbedder(model.embeddings.removeprefix(LOCAL))
    return EndpointEmbedder(
        model.embeddings,
        base_url=model.base_url,
        key=key_for(model, os.environ),
        timeout_seconds=model.timeout_seconds,
        retries=model.retries,
    )


def _prices(model: ModelConfig) -> Prices:
    return Prices(prompt=model.prompt_price, completion=model.completion_price)


def _case_budget(model: ModelConfig) -> Budget:
    limits = Limits(calls=model.case_calls, tokens=model.case_tokens, cost=model.case_cost)
    return Budget(limits, _prices(model))


def _agent_limits(model: ModelConfig) -> AgentLimits:
    return AgentLimits(
        steps=model.agent_steps,
        tokens=model.agent_tokens,
        seconds=model.agent_seconds,
        cost=model.case_cost,
    )


def _run_budget(model: ModelConfig) -> Budget:
    limits = Limits(calls=model.run_calls, tokens=model.run_tokens, cost=model.run_cost)
    return Budget(limits, _prices(model), renew_seconds=RUN_SECONDS)
