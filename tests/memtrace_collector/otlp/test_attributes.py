from __future__ import annotations

import pytest

from memtrace_collector.api.flagging import flag_request
from memtrace_collector.dialects.attributes import decode
from memtrace_collector.graph.facts import OperationKey
from memtrace_collector.otlp.attributes import AttributeValue, encode


@pytest.mark.parametrize("value", [True, 0, 7, 1.5, "text", "", ["a", "b"], []])
def test_a_value_comes_back_as_it_went(value: AttributeValue) -> None:
    (item,) = encode({"name": value, "absent": None})
    found = decode([item])["name"]
    assert (found, type(found)) == (value, type(value))


def test_what_is_not_utf_8_on_a_command_line_can_be_sent() -> None:
    assert decode(encode({"name": "a\udcffb"})) == {"name": "a?b"}
    answer = OperationKey("0" * 31 + "1", "0" * 15 + "1")
    assert b"a?b" in flag_request(answer, 1, reason="a\udcffb")
