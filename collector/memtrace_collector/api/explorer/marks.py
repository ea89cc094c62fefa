"""What a verdict says of the nodes of a drawing. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

ANSWER, DECISIVE, ALSO = "answer", "decisive", "also"
LAST_RIGHT, FIRST_WRONG, EVIDENCE = "last right", "first wrong", "evidence"


class Marks(NamedTuple):
    """By node (``trace:span`` or reference). ``outcome``: what became of the needed information
    at an operation: kept, changed, lost or unknown."""

    words: Mapping[str, tuple[str, ...]]
    outcome: Mapping[str, str]


def marks(answer: str, verdict: Mapping[str, Any] | None) -> Marks:
    """Of an answer (``trace:span``) and the verdict on it (JSON form), if there is one."""
    words: dict[str, dict[str, None]] = {answer: {ANSWER: None}}
    outcome: dict[str, str] = {}

    def mark(node: str | None, word: str) -> None:
        if node:
            words.setdefault(node, {})[word] = None

    if verdict is not None:
        for part, word in (("decisive", DECISIVE), ("also", ALSO)):
            for lost in verdict[part]:
                mark(_node(lost), word)
                mark(lost.get("last_right"), LAST_RIGHT)
                mark(lost.get("first_wrong"), FIRST_WRONG)
        mark(verdict["last_right"], LAST_RIGHT)
        mark(verdict["first_wrong"], FIRST_WRONG)
        for hop in verdict.get("path") or ():
            if hop["span"]:
                outcome[_node(hop["span"])] = hop["outcome"]
            if hop["kind"] == EVIDENCE:
                for ref in hop["versions"]:
                    mark(ref, EVIDENCE)
    return Marks({node: tuple(found) for node, found in words.items()}, outcome)


def _node(span: Mapping[str, str]) -> str:
    return f"{span['traceId']}:{span['spanId']}"
