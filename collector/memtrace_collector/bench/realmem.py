"""RealMem files (AvatarMemory/RealMemBench, Apache-2.0) as dialogues: one for each persona.

A turn marked ``is_query`` is a question; what would be right is one memory that the assistant
used in its reply, and the evidence is the turn which that memory came from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta, timezone
from pathlib import Path
from typing import Any

from memtrace_collector.bench.dialogue import Dialogue, Message, Question
from memtrace_collector.bench.json_file import items, mapping, read_json, text
from memtrace_collector.demo.language import content_stems
from memtrace_collector.errors import DamagedError

SOURCE = "realmem"
CATEGORY = "need"
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_LABEL = re.compile(r"\s*【[^】]*】\s*")
_MORNING = time(9, tzinfo=timezone.utc)
_TURN_SECONDS = 60
_FEWEST_NEW_STEMS = 2
_MOST_WORDS = 40


@dataclass(frozen=True, slots=True)
class _Session:
    id: str
    day: datetime
    turns: Sequence[Mapping[str, Any]]
    memories: Sequence[Mapping[str, Any]]


def load(path: Path) -> list[Dialogue]:
    """The persona of a RealMem file; the list has one dialogue.

    Raises:
        NotFoundError: there is no such file.
        DamagedError: it is no RealMem file.
    """
    document = mapping(read_json(path))
    sessions = list(items(document.get("dialogues")))
    if not sessions:
        raise DamagedError(f"{path} holds no RealMem dialogue")
    name = text(mapping(document.get("_metadata")).get("person_name")) or path.stem
    return [_dialogue(name, sessions)]


def _dialogue(name: str, raw: Sequence[Mapping[str, Any]]) -> Dialogue:
    dirt: list[str] = []
    sessions = sorted(_sessions(raw, dirt), key=lambda session: session.day)
    facts, source = _memories(sessions, dirt)
    messages: list[Message] = []
    questions: list[Question] = []
    clock = datetime.min.replace(tzinfo=timezone.utc)
    for session in sessions:
        clock = max(session.day, clock + timedelta(hours=1))
        for place, turn in enumerate(session.turns, start=1):
            identifier = f"{session.id}/{place}"
            said_at = clock + timedelta(seconds=_TURN_SECONDS * place)
            message = _message(turn, identifier, name, said_at, facts.get(identifier, ()))
            if message is None:
                dirt.append(f"{identifier}: a turn without text")
                continue
            if turn.get("is_query") is True:
                reply = session.turns[place] if place < len(session.turns) else {}
                known = {each.id for each in messages}
                question = _question(message, reply, source, known)
                if question:
                    questions.append(question)
                else:
                    dirt.append(f"{identifier}: a query whose answer uses no memory seen before")
            messages.append(message)
        clock += timedelta(seconds=_TURN_SECONDS * len(session.turns))
    return Dialogue(
        id=name,
        source=SOURCE,
        owner=name,
        messages=tuple(messages),
        questions=tuple(questions),
        dirt=tuple(dirt),
    )


def _sessions(raw: Sequence[Mapping[str, Any]], dirt: list[str]) -> Iterator[_Session]:
    day = datetime(2000, 1, 1, tzinfo=timezone.utc)
    for place, item in enumerate(raw, start=1):
        identifier = text(item.get("session_uuid")) or f"session-{place}"
        found = _DATE.search(text(item.get("current_time")))
        try:
            day = datetime.combine(datetime.fromisoformat(found.group() if found else ""), _MORNING)
        except ValueError:
            dirt.append(f"{identifier}: no day that can be read; taken as that of the one before")
        turns = list(items(item.get("dialogue_turns")))
        yield _Session(identifier, day, turns, list(items(item.get("extracted_memory"))))


def _memories(
    sessions: Sequence[_Session], dirt: list[str]
) -> tuple[dict[str, tuple[str, ...]], dict[tuple[str, str], str]]:
    """Facts by message id, and the message id of each memory by session and content."""
    facts: dict[str, list[str]] = {}
    source: dict[tuple[str, str], str] = {}
    for session in sessions:
        for memory in session.memories:
            content, place = text(memory.get("content")), _source_turn(session, memory)
            if not content or place is None:
                dirt.append(f"{session.id}: a memory that comes from no turn")
                continue
            identifier = f"{session.id}/{place}"
            facts.setdefault(identifier, []).append(_LABEL.sub(" ", content).strip())
            source[session.id, content] = identifier
    return {name: tuple(dict.fromkeys(texts)) for name, texts in facts.items()}, source


def _source_turn(session: _Session, memory: Mapping[str, Any]) -> int | None:
    """Number, from 1, of the turn that a memory came from: by its snapshot, else as given."""
    snapshot = text(memory.get("source_content_snapshot"))
    given = memory.get("source_turn")
    for place, turn in enumerate(session.turns, start=1):
        if snapshot and text(turn.get("content")) == snapshot:
            return place
    return given if isinstance(given, int) and 1 <= given <= len(session.turns) else None


def _message(
    turn: Mapping[str, Any], identifier: str, name: str, said_at: datetime, facts: Sequence[str]
) -> Message | None:
    content = text(turn.get("content"))
    user = text(turn.get("speaker")).lower() == "user"
    if not content:
        return None
    return Message(
        id=identifier,
        speaker=name.replace("_", " ") if user else "Assistant",
        role="user" if user else "assistant",
        text=content,
        said_at=said_at,
        facts=tuple(facts),
    )


def _question(
    message: Message,
    reply: Mapping[str, Any],
    source: Mapping[tuple[str, str], str],
    known: set[str],
) -> Question | None:
    """The question of a query turn: about the memory that adds most to the question's words."""
    asked = set(content_stems(message.text))
    best: tuple[int, str, str] | None = None
    for used in items(reply.get("memory_used")):
        content = text(used.get("content"))
        evidence = source.get((text(used.get("session_uuid")), content), "")
        expected = _LABEL.sub(" ", content).strip()
        new = len(set(content_stems(expected)) - asked)
        fits = evidence in known and len(expected.split()) <= _MOST_WORDS
        if fits and new >= _FEWEST_NEW_STEMS and (best is None or new > best[0]):
            best = (new, expected, evidence)
    if best is None:
        return None
    return Question(
        id=f"{message.id}/question",
        text=" ".join(message.text.split()),
        asked_at=message.said_at,
        expected=best[1],
        evidence=(best[2],),
        category=CATEGORY,
    )
