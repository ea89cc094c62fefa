"""What replays verdicts: settings and a folder -> replayers with their endpoint. Loaded where a
setting or a request wants it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from memtrace_collector.attribution.judge import Judge
from memtrace_collector.attribution.model.budget import RUN_SECONDS, Budget, Limits, Prices
from memtrace_collector.attribution.replay.answer import Endpoint
from memtrace_collector.attribution.replay.replay import AttributesOf, Replayer, Settings
from memtrace_collector.config import Config
from memtrace_collector.errors import NotFoundError, UnreachableError
from memtrace_collector.graph.facts import OperationKey
from memtrace_collector.runtime.data import Data
from memtrace_collector.settings.model import COMMON_KEY_VARIABLE, key_for

URL_VARIABLE = "OPENAI_BASE_URL"
KEY_VARIABLE = "MEMTRACE_REPLAY_API_KEY"
"""Where the key of ``attribution.replay_url`` is read from, and only there."""
TOKENS_PER_CALL = 20_000
"""What calls may take on average before the budget counts as spent."""

Wrap: TypeAlias = Callable[[Judge], Judge]


class Door(NamedTuple):
    """An endpoint and the key for it; ``url`` is empty where none is set."""

    url: str
    key: str


def door(config: Config, environment: Mapping[str, str]) -> Door:
    """Where replays ask: their own endpoint, else that of the model that judges, else the one
    that the openai package itself would take from the environment. A key for one service is not
    sent to another, and without any of these nobody is asked."""
    own = config.attribution.replay_url
    if own:
        return Door(own, environment.get(KEY_VARIABLE, ""))
    if config.model.base_url:
        return Door(config.model.base_url, key_for(config.model, environment))
    return Door(environment.get(URL_VARIABLE, ""), environment.get(COMMON_KEY_VARIABLE, ""))


class Replayers:
    """Replays verdicts as configured, or as a request asks, until :meth:`close`.

    Args:
        data: where the answers' own spans are.
        config: endpoint, budget and defaults.
    """

    def __init__(self, data: Data, config: Config) -> None:
        self._data, self._config = data, config
        self._opened = contextlib.ExitStack()
        self._usual: Wrap = _as_it_is
        if config.attribution.replay:
            replayer = self._opened.enter_context(self._replaying(self._settings(), RUN_SECONDS))
            self._usual = replayer.judge

    def close(self) -> None:
        """Nobody replays any more."""
        self._opened.close()

    def usual(self, judge: Judge) -> Judge:
        """``judge``, with a replay of what it finds where that is configured."""
        return self._usual(judge)

    @contextlib.contextmanager
    def asked(self, runs: int, model: str) -> Iterator[Wrap]:
        """For one request, with a budget of its own: what makes a judge replay what it finds.
        0 runs and no model: as configured.

        Raises on leaving:
            UnreachableError: the endpoint did not answer; what was found stands unreplayed.
        """
        with self._replaying(self._settings(runs, model), None) as replayer:
            yield replayer.judge
            if replayer.silence:
                raise UnreachableError(
                    f"verdicts are stored, not all of them replayed: {replayer.silence}"
                )

    def _settings(self, runs: int = 0, model: str = "") -> Settings:
        usual = self._config.attribution
        return Settings(runs=runs or usual.replay_runs, model=model or usual.replay_model)

    @contextlib.contextmanager
    def _replaying(self, settings: Settings, renew_seconds: float | None) -> Iterator[Replayer]:
        calls = self._config.attribution.replay_calls
        limits = Limits(calls=calls, tokens=calls * TOKENS_PER_CALL)
        budget = Budget(limits, Prices(), renew_seconds=renew_seconds)
        url, key = door(self._config, os.environ)
        endpoint = Endpoint(url, key) if url else None
        try:
            yield Replayer(attributes_of(self._data), endpoint, budget, settings)
        finally:
            if endpoint is not None:
                endpoint.close()


def _as_it_is(judge: Judge) -> Judge:
    return judge


def attributes_of(data: Data) -> AttributesOf:
    """Looks up the attributes of a span in the log; none when the log holds it no more."""

    def look_up(key: OperationKey) -> Sequence[KeyValue]:
        position = data.facts.first_position([key]).get(key)
        if position is None:
            return ()
        try:
            request = data.request_at(position)
        except NotFoundError:
            return ()
        trace_id, span_id = bytes.fromhex(key.trace_id), bytes.fromhex(key.span_id)
        spans = (
            span
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
            if (span.trace_id, span.span_id) == (trace_id, span_id)
        )
        return next((tuple(span.attributes) for span in spans), ())

    return look_up
