"""How the LangGraph agent's memory is written: by the model's own tool calls, or behind its back.

A background manager extracts facts, and may decide what they mean for the records that are there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolUnionParam

import memtrace_otel as memtrace
from memtrace_collector.bench.dialogue import Message
from memtrace_collector.bench.pipelines.base import Bench
from memtrace_collector.bench.pipelines.langgraph_records import SYSTEM, Record, Records
from memtrace_collector.bench.pipelines.surface import Surface
from memtrace_collector.bench.planned import Planting
from memtrace_collector.bench.stand_in.model import MODEL_NAME, StandIn
from memtrace_collector.bench.stand_in.writing import day
from memtrace_collector.demo.decision import Memory
from memtrace_otel import Variable

LIFETIME = timedelta(days=3650)
_OFFERED = 12
_SAVE: ChatCompletionToolUnionParam = {
    "type": "function",
    "function": {
        "name": "save_memory",
        "description": "Remember a fact about the people in this conversation.",
        "parameters": {
            "type": "object",
            "properties": {"content": {"type": "string"}},
            "required": ["content"],
        },
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A text that is to be stored, and the value that it comes from."""

    text: str
    source: Variable
    message: Message

    @property
    def line(self) -> str:
        """As a prompt would show it."""
        return f"[{day(self.message.said_at)}] {self.text}"


class Writing:
    """Writes what is said into the records of one owner."""

    def __init__(self, bench: Bench, model: StandIn, surface: Surface, records: Records) -> None:
        self._bench = bench
        self._model = model
        self._surface = surface
        self._records = records
        self._keys: dict[str, str] = {}
        self._page: Record | None = None
        self._stale_base: Record | None = None

    def listen(self, message: Message, variable: Variable) -> None:
        """One message has entered; what is worth it is stored."""
        if not self._surface.background:
            saved = self._by_tools(message)
        else:
            saved = self._extracted(message, variable)
            if self._surface.decides:
                self._decide(message, saved)
                return
        for each in saved:
            self._store(each)

    def store(self, texts: Sequence[str], message: Message, variable: Variable) -> None:
        """Store these texts of a message as they stand."""
        for text in texts:
            self._store(Saved(text=text, source=variable, message=message))

    def clean_up(self) -> None:
        """The nightly job deletes what is no longer wanted: more than that, if planted."""
        for planted in self._model.plantings.of("deleted"):
            for record in self._records.all():
                if planted.message in self._model.oracle.carried_by(record.item.line()):
                    self._records.delete(record, planted)

    def _by_tools(self, message: Message) -> list[Saved]:
        """The model reads the message and calls its tool for each thing to be remembered."""
        messages: list[ChatCompletionMessageParam] = [
            {"role": "system", "content": f"You are an assistant. It is {day(message.said_at)}."},
            {"role": "user", "content": message.text},
        ]
        completion = self._bench.client.chat.completions.create(
            model=MODEL_NAME, messages=messages, tools=[_SAVE], temperature=0.0
        )
        calls = completion.choices[0].message.tool_calls or []
        texts = [
            str(json.loads(call.function.arguments)["content"])
            for call in calls
            if call.type == "function"
        ]
        return [Saved(text=t, source=memtrace.fact(t), message=message) for t in texts]

    def _extracted(self, message: Message, variable: Variable) -> list[Saved]:
        found = []
        with memtrace.operation("extract", system=SYSTEM) as op:
            op.inputs(variable)
            for text in self._model.extract([message]):
                fact = memtrace.fact(text)
                op.outputs(fact)
                op.edge(variable, fact)
                found.append(Saved(text=text, source=fact, message=message))
        return found

    def _decide(self, message: Message, saved: Sequence[Saved]) -> None:
        if not saved:
            return
        existing = self._offered(saved)
        with memtrace.operation("decide", system=SYSTEM) as op:
            op.inputs(*(each.source for each in saved))
            op.shown(*(record.variable for record in existing))
            actions = self._model.decide(
                [each.text for each in saved],
                [Memory(str(number), record.text) for number, record in enumerate(existing)],
            )
            by_text = {each.text: each for each in saved}
            for action in actions:
                known = action.event != "ADD" and int(action.id) < len(existing)
                target = existing[int(action.id)].variable if known else None
                each = by_text.get(action.text)
                op.decision(each.source if each else None, action.event, target)
            chosen = {action.text for action in actions}
            for each in saved:
                if each.text not in chosen:
                    op.decision(each.source, "NOOP")
        for action in actions:
            known = action.event != "ADD" and int(action.id) < len(existing)
            each = by_text.get(action.text)
            if known and action.event == "DELETE":
                self._records.delete(existing[int(action.id)])
            elif known and each is not None:
                base = existing[int(action.id)]
                new = replace(base, text=each.text, said_at=message.said_at)
                self._records.update(base, new, each.source)
            elif each is not None:
                self._store(each)

    def _offered(self, saved: Sequence[Saved]) -> list[Record]:
        hits = [hit for each in saved for hit in self._records.search(each.text, _OFFERED)]
        return list({hit.record.key: hit.record for hit in hits}.values())

    def _store(self, each: Saved) -> None:
        """One write, in the way that this agent writes, or as its fault has it."""
        failing = self._planted("write_failed", each)
        if failing:
            self._records.fail_to_create(each.source, failing)
        elif not (self._shares_a_page(each) or self._corrects(each)):
            self._put(each)

    def _put(self, each: Saved) -> None:
        record = Record(
            key=self._key(each),
            text=each.text,
            said_at=each.message.said_at,
            expires_at=self._expiry(each),
        )
        if not self._surface.blind_puts:
            self._records.create(record, each.source, self._planted("expired", each))
            return
        lost = self._records.get(record.key)
        colliding = [
            planted
            for planted in self._model.plantings.of("written_over")
            if lost and planted.message in self._model.oracle.carried_by(lost.item.line())
        ]
        self._records.put(record, each.source, colliding[0] if colliding else None)

    def _key(self, each: Saved) -> str:
        """A new key; where keys come from topics, two topics may get the same one by mistake."""
        if not self._surface.blind_puts:
            return self._records.new_key()
        for planted in self._model.plantings.of("written_over"):
            if planted.message in self._model.oracle.carried_by(each.line):
                self._keys[planted.message] = self._records.new_key(each.text)
                return self._keys[planted.message]
            taken = self._keys.pop(planted.message, "")
            if taken and not self._model.oracle.speaks_of(each.line):
                return taken
            if taken:
                self._keys[planted.message] = taken
        return self._records.new_key(each.text)

    def _shares_a_page(self, each: Saved) -> bool:
        """Two sessions write to one page of the owner; with ``race``, the second has read it
        before the first wrote. Whether ``each`` went onto the page."""
        planted = self._model.plantings.fires("race")
        if planted is None:
            return False
        if planted.message in self._model.oracle.carried_by(each.line):
            if self._page is None:
                return False
            self._stale_base = self._stale_base or self._page
            self._page = self._append(self._page, each)
            return True
        if self._model.oracle.speaks_of(each.line):
            return False
        if self._stale_base is not None:
            self._append(self._stale_base, each, planted)
            self._stale_base, self._page = None, None
            return True
        if self._page is None:
            self._page = Record(
                key=self._records.new_key(), text=each.text, said_at=each.message.said_at
            )
            self._records.create(self._page, each.source)
            return True
        return False

    def _append(self, base: Record, each: Saved, planted: Planting | None = None) -> Record:
        new = replace(base, text=f"{base.text} {each.text}", said_at=each.message.said_at)
        self._records.update(base, new, base.variable, each.source, planted=planted)
        return new

    def _corrects(self, each: Saved) -> bool:
        """A correction goes onto the record that it corrects; with ``stale_index`` searches see
        the store as it was before."""
        for planting in self._model.case.plantings:
            if planting.message != each.message.id or "earlier" not in planting.detail:
                continue
            old = next((r for r in self._records.all() if r.text == planting.detail["text"]), None)
            if old is None or not self._model.oracle.carried_by(each.line):
                continue
            if self._model.plantings.fires("stale_index"):
                self._records.lag()
            new = replace(old, text=each.text, said_at=each.message.said_at)
            self._records.update(old, new, each.source)
            return True
        return False

    def _expiry(self, each: Saved) -> datetime | None:
        """Ten years; where that is planted, long before the question."""
        said = each.message.said_at
        if self._planted("expired", each):
            return said + max(timedelta(), self._model.case.question.asked_at - said) / 2
        return said + LIFETIME if self._surface.expires else None

    def _planted(self, kind: str, each: Saved) -> Planting | None:
        planted = self._model.plantings.fires(kind, each.message.id)
        if planted and each.message.id in self._model.oracle.carried_by(each.line):
            return planted
        return None
