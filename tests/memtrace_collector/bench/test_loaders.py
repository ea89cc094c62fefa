"""Files of LoCoMo and RealMem become dialogues, whatever is dirty in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memtrace_collector.bench import locomo, realmem
from memtrace_collector.bench.dialogue import Dialogue
from memtrace_collector.errors import DamagedError, NotFoundError

EXCERPT = Path(__file__).parent / "data" / "realmem" / "excerpt.json"


def turn(identifier: str, speaker: str, text: str) -> dict[str, str]:
    return {"dia_id": identifier, "speaker": speaker, "text": text}


def conversation(**changes: Any) -> list[dict[str, Any]]:
    """A file in LoCoMo's form about two people who never lived."""
    sample = {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ana",
            "speaker_b": "Ben",
            "session_1_date_time": "9:05 am on 8 May, 2023",
            "session_1": [
                turn("D1:1", "Ana", "I bought a bicycle."),
                turn("D1:2", "Ben", "Which colour?"),
                {**turn("D1:3", "Ana", "Look!"), "blip_caption": "a red bicycle"},
            ],
            "session_2_date_time": "11:40 pm on 9 May, 2023",
            "session_2": [turn("D2:1", "Ben", "I moved to Porto."), turn("D2:2", "Ana", "")],
            "session_3": [turn("D3:1", "Ana", "Good for you.")],
        },
        "observation": {
            "session_1_observation": {
                "Ana": [["Ana bought a bicycle.", "D1:1"], ["It is red.", ["D1:3", "D1:1"]]]
            }
        },
        "qa": [],
    }
    return [{**sample, **changes}]


def loaded(tmp_path: Path, **changes: Any) -> Dialogue:
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps(conversation(**changes)))
    (dialogue,) = locomo.load(path)
    return dialogue


def asked(**changes: Any) -> dict[str, Any]:
    known = {"question": "Which colour?", "answer": "red", "evidence": ["D1:3"], "category": 4}
    return {**known, **changes}


def test_turns_have_the_session_s_time_a_minute_apart_and_the_picture_s_caption(
    tmp_path: Path,
) -> None:
    first, second, third, *_ = loaded(tmp_path).messages
    assert first.said_at.isoformat() == "2023-05-08T09:05:00+00:00"
    assert (second.said_at - first.said_at).total_seconds() == 60
    assert (first.role, second.role) == ("user", "assistant")
    assert third.text == "Look! [shows a picture: a red bicycle]"


def test_observations_are_facts_of_every_turn_that_they_name(tmp_path: Path) -> None:
    facts = {message.id: message.facts for message in loaded(tmp_path).messages}
    assert facts["D1:1"] == ("Ana bought a bicycle.", "It is red.")
    assert facts["D1:3"] == ("It is red.",)


def test_what_is_missing_is_reported_and_the_rest_is_kept(tmp_path: Path) -> None:
    dialogue = loaded(tmp_path)
    assert [message.id for message in dialogue.messages] == ["D1:1", "D1:2", "D1:3", "D2:1", "D3:1"]
    assert any("D2:2" in line for line in dialogue.dirt)
    assert any("session_3" in line for line in dialogue.dirt)


def test_several_ids_in_one_text_and_malformed_ids_are_split_and_normalised(
    tmp_path: Path,
) -> None:
    evidence = ["D1:1; D:1:3", "D02:01"]
    (question,) = loaded(tmp_path, qa=[asked(evidence=evidence)]).questions
    assert question.evidence == ("D1:1", "D1:3", "D2:1")


def test_a_number_is_an_answer(tmp_path: Path) -> None:
    (question,) = loaded(tmp_path, qa=[asked(answer=2023, category=2)]).questions
    assert (question.expected, question.category) == ("2023", "temporal")


def test_an_adversarial_question_expects_nothing_and_has_a_tempting_answer(
    tmp_path: Path,
) -> None:
    item = asked(category=5, adversarial_answer="blue")
    del item["answer"]
    (question,) = loaded(tmp_path, qa=[item]).questions
    assert (question.expected, question.evidence) == ("", ())
    assert (question.tempting, question.near) == ("blue", ("D1:3",))


@pytest.mark.parametrize(
    "item",
    [
        asked(evidence=["D9:9"]),
        asked(evidence=["D1:1", "D9:9"]),
        asked(evidence=["D"]),
        asked(evidence=None),
        asked(answer=None),
        asked(category="4"),
        asked(question=7.5, answer=[]),
    ],
)
def test_a_question_that_cannot_be_asked_is_dirt_and_no_crash(
    tmp_path: Path, item: dict[str, Any]
) -> None:
    dialogue = loaded(tmp_path, qa=[item, asked()])
    assert [question.text for question in dialogue.questions] == ["Which colour?"]
    assert any("q1" in line for line in dialogue.dirt)


def test_a_file_that_is_none_of_these_is_refused_with_its_name(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text('{"qa": []}')
    for load in (locomo.load, realmem.load):
        with pytest.raises(DamagedError, match=r"wrong\.json"):
            load(wrong)
        with pytest.raises(NotFoundError, match="nowhere"):
            load(tmp_path / "nowhere")


def test_an_excerpt_of_realmem_becomes_a_dialogue_with_questions() -> None:
    (dialogue,) = realmem.load(EXCERPT)
    times = [message.said_at for message in dialogue.messages]
    assert times == sorted(times)
    assert dialogue.questions
    said_at = {message.id: message.said_at for message in dialogue.messages}
    for question in dialogue.questions:
        (evidence,) = question.evidence
        assert said_at[evidence] < question.asked_at
        assert question.expected and "【" not in question.expected


def test_an_unpaired_query_and_a_memory_from_nowhere_are_dirt(tmp_path: Path) -> None:
    session = {
        "session_uuid": "s1",
        "current_time": "2025-12-15 (Monday)",
        "dialogue_turns": [
            {"speaker": "User", "content": "I like tea.", "is_query": False},
            {"speaker": "User", "content": "", "is_query": False},
            {"speaker": "User", "content": "What do I like?", "is_query": True},
        ],
        "extracted_memory": [{"content": "User likes tea.", "source_turn": 9}],
    }
    path = tmp_path / "realmem.json"
    path.write_text(json.dumps({"_metadata": {"person_name": "P"}, "dialogues": [session, 7]}))
    (dialogue,) = realmem.load(path)
    assert [message.id for message in dialogue.messages] == ["s1/1", "s1/3"]
    assert dialogue.questions == ()
    assert len(dialogue.dirt) == 3
