"""From a doubt to an answer: sentences, options, calls, checks, cache, budget."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from memtrace_collector.attribution.carrying.judgements import Doubt
from memtrace_collector.attribution.model import decoys, questions, reply, spending
from memtrace_collector.attribution.model.budget import Budget, Usage, estimate
from memtrace_collector.attribution.model.cache import Cache, cache_key
from memtrace_collector.attribution.model.endpoint import Completion, Endpoint, EndpointError
from memtrace_collector.attribution.model.questions import Message
from memtrace_collector.telemetry.metrics import Metrics

MAX_COMPLETION_TOKENS = 1_500
"""A cap for models that reason at length; a plain reply has about :data:`USUAL_TOKENS`."""
USUAL_TOKENS = 100
MAX_KEPT_CALLS = 24
MAX_KEPT_CHARACTERS = 6_000


class Answered(NamedTuple):
    """What a call gave: ``says`` is None when nothing can be built on it; ``why`` in a word."""

    says: bool | None
    quote: str
    why: str


@dataclass
class Record:
    """Everything that was asked for one case. ``stopped``: why no more was, empty when done."""

    model: str
    calls: list[dict[str, Any]] = field(default_factory=list)
    count: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    stopped: str = ""
    noted: set[str] = field(default_factory=set)

    def to_json(self) -> dict[str, Any]:
        """For the verdict; ``asked`` holds the first calls, ``calls`` counts them all. What was
        answered from the cache counts as it did when it was asked, so that a verdict does not
        depend on what the cache holds."""
        return {
            "model": self.model,
            "calls": self.count,
            "tokens": {"prompt": self.prompt_tokens, "completion": self.completion_tokens},
            "cost": round(self.cost, 6),
            "stopped": self.stopped or None,
            "asked": self.calls,
        }


class _StoppedError(Exception):
    """No further question about this case: the budget is spent or nobody answers."""


class Asker:
    """Asks one model; safe for threads.

    Args:
        endpoint: who is asked.
        cache: what was answered before.
        run: the budget of the run.
        price: of a usage, in money.
        metrics: told of calls, tokens and what came to nothing.
        rng: source of marks, labels and orders; an attacker must not be able to foresee them.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        cache: Cache,
        run: Budget,
        price: Callable[[Usage], float],
        metrics: Metrics,
        rng: random.Random | None = None,
    ) -> None:
        self._endpoint, self._cache, self._run = endpoint, cache, run
        self._price, self._metrics = price, metrics
        self._rng = rng or secrets.SystemRandom()

    @property
    def model(self) -> str:
        return self._endpoint.model

    def answer(self, doubt: Doubt, case: Budget, record: Record) -> bool | None:
        """Yes, no, or nothing to build on; ``record.stopped`` says if no more can be asked."""
        found = questions.units(doubt)
        if not found.best:
            return None
        try:
            others = self._others(doubt, case, record)
            return self._over_units(doubt, found, others, case, record)
        except _StoppedError:
            return None

    def _over_units(
        self,
        doubt: Doubt,
        found: questions.Units,
        others: tuple[str, ...],
        case: Budget,
        record: Record,
    ) -> bool | None:
        best = [self._of_unit(doubt, unit, others, case, record) for unit in found.best]
        if any(best):
            return True if False not in best else None
        if not found.complete or None in best:
            return None
        further = [*found.rest, *filter(None, [found.together])]
        for unit in further:
            if self._of_unit(doubt, unit, others, case, record) is not False:
                return None
        return False

    def _of_unit(
        self, doubt: Doubt, unit: str, others: tuple[str, ...], case: Budget, record: Record
    ) -> bool | None:
        """A yes must come twice, with the options in other places."""
        places = self._rng.sample(range(questions.DECOYS + 1), 2)
        for draw, place in enumerate(places):
            answer = self._chosen(
                doubt, questions.choice(doubt, unit, others, draw), place, case, record
            )
            if not answer.says:
                return answer.says if draw == 0 else None
        return True

    def _chosen(
        self, doubt: Doubt, choice: questions.Choice, place: int, case: Budget, record: Record
    ) -> Answered:
        asked = questions.render(choice, place, self._rng)
        needed = questions.words_to_quote(doubt, choice.unit)

        def read(content: str) -> dict[str, object]:
            return reply.read(content, asked, needed)._asdict()

        kept = self._call(choice.fingerprint, asked.messages, read, case, record, doubt)
        says = kept.get("says")
        return Answered(
            says if isinstance(says, bool) else None,
            str(kept.get("quote", "")),
            str(kept.get("why", "")),
        )

    def _others(self, doubt: Doubt, case: Budget, record: Record) -> tuple[str, ...]:
        expected = questions.expected_option(doubt)
        asked = questions.question_alone(doubt)
        messages = questions.render_others(asked, expected, self._rng)

        def read(content: str) -> dict[str, object]:
            return {"others": reply.read_others(content)[: decoys.MOST * 2]}

        fingerprint = questions.others_fingerprint(asked, expected)
        kept = self._call(fingerprint, messages, read, case, record, doubt)
        proposed = kept.get("others")
        usable = decoys.usable(proposed if isinstance(proposed, list) else (), expected)
        return decoys.completed(usable, expected)

    def _call(
        self,
        fingerprint: str,
        messages: Sequence[Message],
        read: Callable[[str], dict[str, object]],
        case: Budget,
        record: Record,
        doubt: Doubt,
    ) -> dict[str, object]:
        """What a reply says, from the cache or from the endpoint; a reply that says nothing
        valid is kept as such, so that it is not paid for again."""
        key = cache_key(self._endpoint.model, self._endpoint.parameters, fingerprint)
        kept = self._cache.get(key)
        if kept is None:
            completion = self._complete(messages, case, record)
            kept = _kept(messages, completion, read)
            self._cache.put(key, kept)
        else:
            self._metrics.add("memtrace.model.cache.hits", 1)
        if key not in record.noted:
            record.noted.add(key)
            self._note(record, doubt, kept)
        return kept

    def _complete(self, messages: Sequence[Message], case: Budget, record: Record) -> Completion:
        prompt = sum(estimate(each.content) for each in messages)
        expected = Usage(prompt=prompt, completion=USUAL_TOKENS)
        if not case.reserve(expected):
            raise self._stop(record, "case budget")
        if not self._run.reserve(expected):
            case.settle(expected, None)
            raise self._stop(record, "run budget")
        used = None
        try:
            completion = self._endpoint.complete(messages, MAX_COMPLETION_TOKENS)
            used = completion.usage
        except EndpointError as error:
            raise self._stop(record, f"unreachable: {error}") from None
        finally:
            case.settle(expected, used)
            self._run.settle(expected, used)
        spending.tell(self._metrics, used, self._price(used))
        return completion

    def _stop(self, record: Record, why: str) -> _StoppedError:
        record.stopped = why
        self._metrics.add("memtrace.model.stopped", 1, reason=why.partition(":")[0])
        return _StoppedError()

    def _note(self, record: Record, doubt: Doubt, kept: dict[str, object]) -> None:
        usage = Usage(
            prompt=_whole(kept["prompt_tokens"]), completion=_whole(kept["completion_tokens"])
        )
        record.count += 1
        record.prompt_tokens += usage.prompt
        record.completion_tokens += usage.completion
        record.cost += self._price(usage)
        if not kept.get("valid"):
            self._metrics.add("memtrace.model.invalid_replies", 1)
        if len(record.calls) < MAX_KEPT_CALLS:
            record.calls.append(
                {
                    "kind": "others" if "others" in kept else doubt.kind,
                    "ref": doubt.ref,
                    **{name: kept.get(name) for name in ("says", "why", "quote")},
                    **{name: kept[name] for name in ("prompt", "reply")},
                    "tokens": asdict(usage),
                }
            )


def _kept(
    messages: Sequence[Message], completion: Completion, read: Callable[[str], dict[str, object]]
) -> dict[str, object]:
    try:
        found, valid = read(completion.content), True
    except reply.ReplyError as error:
        found, valid = {"says": None, "quote": "", "why": f"invalid reply: {error}"}, False
    return {
        **found,
        "valid": valid,
        "prompt": "\n\n".join(f"{m.role}: {m.content}" for m in messages)[:MAX_KEPT_CHARACTERS],
        "reply": completion.content[:MAX_KEPT_CHARACTERS],
        "prompt_tokens": completion.usage.prompt,
        "completion_tokens": completion.usage.completion,
    }


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
