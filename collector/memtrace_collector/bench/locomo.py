"""LoCoMo files (snap-research/LoCoMo) as dialogues: one for each conversation.

The file's dirty spots (several ids in one evidence string, malformed ids, ids of no turn, answers
that are numbers) are split and normalised; what cannot be kept is named in ``Dialogue.dirt``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from memtrace_collector.bench.dialogue import Dialogue, Message, Question
from memtrace_collector.bench.json_file import items, mapping, read_json, text
from memtrace_collector.errors import DamagedError

SOURCE = "locomo"
CATEGORIES = {1: "multi_hop", 2: "temporal", 3: "open_domain", 4: "single_hop", 5: "adversarial"}
ADVERSARIAL = "adversarial"
_SESSION = re.compile(r"session_(\d+)")
_TURN_ID = re.compile(r"D:?(\d+):(\d+)")
_TURN_SECONDS = 60
_ASKED_AFTER = timedelta(days=1)


def load(path: Path) -> list[Dialogue]:
    """The conversations of a LoCoMo file (a list of samples).

    Raises:
        NotFoundError: there is no such file.
        DamagedError: it is no LoCoMo file.
    """
    samples = [item for item in items(read_json(path)) if mapping(item.get("conversation"))]
    if not samples:
        raise DamagedError(f"{path} holds no LoCoMo conversation")
    return [_dialogue(sample, number) for number, sample in enumerate(samples, start=1)]


def _dialogue(sample: Mapping[str, Any], number: int) -> Dialogue:
    dirt: list[str] = []
    name = text(sample.get("sample_id")) or f"conversation-{number}"
    facts = _observations(mapping(sample.get("observation")))
    messages = tuple(_messages(mapping(sample.get("conversation")), facts, dirt))
    known = {message.id for message in messages}
    asked_at = messages[-1].said_at + _ASKED_AFTER if messages else _EPOCH
    questions = tuple(
        question
        for place, item in enumerate(items(sample.get("qa")), start=1)
        if (question := _question(item, f"{name}/q{place}", known, asked_at, dirt))
    )
    return Dialogue(
        id=name,
        source=SOURCE,
        owner=name,
        messages=messages,
        questions=questions,
        dirt=tuple(dirt),
    )


_EPOCH = datetime(2000, 1, 1, tzinfo=timezone.utc)


def _messages(
    conversation: Mapping[str, Any], facts: Mapping[str, Sequence[str]], dirt: list[str]
) -> Iterator[Message]:
    first = text(conversation.get("speaker_a"))
    numbers = (match.group(1) for name in conversation if (match := _SESSION.fullmatch(name)))
    before = _EPOCH
    for number in sorted(map(int, numbers)):
        name = f"session_{number}"
        began = _moment(text(conversation.get(f"{name}_date_time")))
        if began is None:
            dirt.append(f"{name}: no time that can be read; taken as a day after the one before")
            began = before + timedelta(days=1)
        for place, turn in enumerate(items(conversation.get(name))):
            said = _said(turn)
            identifier = text(turn.get("dia_id")) or f"D{number}:{place + 1}"
            if not said:
                dirt.append(f"{identifier}: a turn without text")
                continue
            before = began + timedelta(seconds=_TURN_SECONDS * place)
            speaker = text(turn.get("speaker")) or first or "Someone"
            yield Message(
                id=identifier,
                speaker=speaker,
                role="user" if speaker == first else "assistant",
                text=said,
                said_at=before,
                facts=tuple(facts.get(identifier, ())),
            )


def _said(turn: Mapping[str, Any]) -> str:
    caption = text(turn.get("blip_caption"))
    words = text(turn.get("text"))
    return f"{words} [shows a picture: {caption}]".strip() if caption else words


def _moment(value: str) -> datetime | None:
    """``1:10 pm on 27 March, 2023``, taken as UTC."""
    try:
        found = datetime.strptime(value, "%I:%M %p on %d %B, %Y")
    except ValueError:
        return None
    return found.replace(tzinfo=timezone.utc)


def _observations(observation: Mapping[str, Any]) -> dict[str, list[str]]:
    """Facts by turn: each is ``[text, dia_id]`` or ``[text, [dia_id, …]]``."""
    found: dict[str, list[str]] = {}
    for session in observation.values():
        for entries in mapping(session).values():
            for entry in entries if isinstance(entries, list) else ():
                if isinstance(entry, list) and len(entry) == 2 and text(entry[0]):
                    for identifier in _turn_ids(entry[1]):
                        found.setdefault(identifier, []).append(text(entry[0]))
    return found


def _turn_ids(value: object) -> list[str]:
    """Every turn id in a text or a list of texts, normalised: ``D:11:26`` is ``D11:26``."""
    parts = value if isinstance(value, list) else [value]
    return [
        f"D{int(session)}:{int(turn)}"
        for part in parts
        for session, turn in _TURN_ID.findall(text(part))
    ]


def _question(
    item: Mapping[str, Any], name: str, known: set[str], asked_at: datetime, dirt: list[str]
) -> Question | None:
    number = item.get("category")
    category = CATEGORIES.get(number) if isinstance(number, int) else None
    asked, answer = text(item.get("question")), text(item.get("answer"))
    ids = list(dict.fromkeys(_turn_ids(item.get("evidence"))))
    evidence = tuple(identifier for identifier in ids if identifier in known)
    unanswerable = category == ADVERSARIAL
    if category is None or not asked or not (answer or unanswerable):
        dirt.append(f"{name}: no question with an answer")
        return None
    if len(evidence) < max(len(ids), 1):
        dirt.append(f"{name}: evidence that is no turn: {item.get('evidence')}")
        if not evidence or not unanswerable:
            return None
    return Question(
        id=name,
        text=asked,
        asked_at=asked_at,
        expected="" if unanswerable else answer,
        evidence=() if unanswerable else evidence,
        category=category,
        tempting=text(item.get("adversarial_answer")) or (answer if unanswerable else ""),
        near=evidence if unanswerable else (),
    )
