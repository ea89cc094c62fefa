"""What the model told mem0 is read as the installed mem0 reads it."""

from __future__ import annotations

import importlib

import pytest

from memtrace_otel.instrumentors.mem0_replies import (
    Action,
    Extracted,
    ReplyReader,
    UnreadableReplyError,
)
from tests.instrumentors import mem0_kit

utils = importlib.import_module("mem0.memory.utils")
reader = ReplyReader(utils)
lenient = pytest.mark.skipif(
    not hasattr(utils, "normalize_facts"), reason="this mem0 takes facts as plain texts only"
)


@pytest.mark.skipif(mem0_kit.MAJOR != 1, reason="2.x has no list of facts")
@pytest.mark.parametrize(
    ("reply", "facts"),
    [
        ('{"facts": ["a", "b"]}', ["a", "b"]),
        ('```json\n{"facts": ["a"]}\n```', ["a"]),
        ('<think>hm</think>{"facts": ["a"]}', ["a"]),
        pytest.param('Sure! {"facts": ["a"]}', ["a"], marks=lenient),
        pytest.param(
            '{"facts": [{"fact": "a"}, {"text": "b"}, {"x": "c"}, ""]}', ["a", "b"], marks=lenient
        ),
        ('{"facts": []}', []),
        ("  ", []),
    ],
)
def test_facts(reply: str, facts: list[str]) -> None:
    assert reader.facts(reply) == facts


@pytest.mark.parametrize("reply", ["no", "[]", '{"other": 1}', None, 7])
def test_an_extraction_that_is_none_is_an_error(reply: object) -> None:
    with pytest.raises(ValueError):
        reader.facts(reply)


def test_actions_leave_out_what_mem0_ignores() -> None:
    reply = """{"memory": [
        {"id": "0", "text": "a", "event": "ADD"},
        {"id": "1", "text": "b", "event": "UPDATE"},
        {"id": 2, "text": null, "event": "DELETE"},
        {"id": "3", "text": "d", "event": "NONE"},
        {"id": "4", "text": "e", "event": "MERGE"},
        "nonsense"
    ]}"""
    assert reader.actions(reply) == [
        Action("ADD", "a", "0"),
        Action("UPDATE", "b", "1"),
        Action("DELETE", "", None),
        Action("NOOP", "d", "3"),
    ]


def test_extracted_entries_keep_their_links() -> None:
    reply = """{"memory": [
        {"id": "0", "text": "a", "linked_memory_ids": ["0", 2]},
        {"id": "1", "text": "", "linked_memory_ids": ["1"]},
        {"id": "2", "text": "b", "linked_memory_ids": null}
    ]}"""
    assert reader.extracted(reply) == [Extracted("a", ("0", "2")), Extracted("b", ())]


@pytest.mark.parametrize("reply", ['{"memory": "x"}', "[1]"])
def test_a_decision_without_a_list_is_an_error(reply: str) -> None:
    with pytest.raises(UnreadableReplyError):
        reader.actions(reply)
