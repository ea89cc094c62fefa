"""A finding as the stored verdict of its case, and what it changes about the one before. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from datetime import datetime, timezone
from typing import Any

from memtrace_collector.attribution.replay.outcome import is_news, without_replay
from memtrace_collector.attribution.writeback.identity import case_trace_id

Json = dict[str, Any]

_STORED = ("id", "revision", "created", "case_trace", "supersedes")
"""Added by storing."""
_NOT_SAID = (*_STORED, "model", "judgement", "machine_now", "agreement", "withdrawn")
"""Also what it took to find out, and what a person said of it: not what was found."""
_NS = 1_000_000_000


def stored_form(
    finding: Mapping[str, Any], case_id: str, now_ns: int, previous: Mapping[str, Any] | None
) -> Json | None:
    """The verdict to be stored; None when it says the same as ``previous``.

    One that supersedes another says so: ``supersedes`` names its revision and case trace, and
    the explanation ends with what changed.
    """
    if previous is None:
        return _verdict(finding, case_id, 1, now_ns) | {"supersedes": None}
    if is_known(previous, finding):
        return None
    return superseding_form(finding, case_id, now_ns, previous, _change(previous, finding))


def superseding_form(
    finding: Mapping[str, Any],
    case_id: str,
    now_ns: int,
    previous: Mapping[str, Any],
    change: str,
) -> Json:
    """The verdict to be stored after ``previous``; ``change`` says in words, without content,
    what is different."""
    says = f"Supersedes revision {previous['revision']}: {change}."
    verdict = _verdict(finding, case_id, int(previous["revision"]) + 1, now_ns)
    return verdict | {
        "explanation": f"{finding['explanation']} {says}",
        "supersedes": {
            "revision": previous["revision"],
            "stage": previous["stage"],
            "error_type": previous["error_type"],
            "case_trace": previous["case_trace"],
            "says": says,
        },
    }


def shown_form(finding: Mapping[str, Any], case_id: str, now_ns: int) -> Json:
    """A finding that is shown and not stored: revision 0, without a case trace."""
    return _verdict(finding, case_id, 0, now_ns) | {"case_trace": None, "supersedes": None}


def finding_of(verdict: Mapping[str, Any]) -> str:
    """What a verdict says, without what storing it added, as comparable text. Of a replay its
    result counts, and not in how many runs; of a hop what became of the information, and not
    its system, which follows from its span and which earlier releases did not tell."""
    found = without_replay(_as_found(verdict))
    found["path"] = [_without(hop, ("system",)) for hop in verdict.get("path", ())]
    if verdict.get("replay"):
        found["replay"] = verdict["replay"]["result"]
    return json.dumps(found, sort_keys=True)


def _as_found(verdict: Mapping[str, Any]) -> Json:
    return _without_storing(verdict, _NOT_SAID)


def finding_again(verdict: Mapping[str, Any]) -> Json:
    """What was found, out of the stored form, with what it took."""
    return _without_storing(verdict, _STORED)


def _without(said: Mapping[str, Any], names: Collection[str]) -> Json:
    return {name: value for name, value in said.items() if name not in names}


def _without_storing(verdict: Mapping[str, Any], names: Collection[str]) -> Json:
    found = _without(verdict, names)
    superseded = verdict.get("supersedes")
    if superseded:
        found["explanation"] = verdict["explanation"].removesuffix(f" {superseded['says']}")
    return found


def is_known(previous: Mapping[str, Any], finding: Mapping[str, Any]) -> bool:
    """Whether a finding says the same as a verdict; one that was not replayed, or could not be,
    leaves the replay of an equal one standing."""
    if is_news(previous.get("replay"), finding.get("replay")):
        return finding_of(previous) == finding_of(finding)
    before, now = without_replay(_as_found(previous)), without_replay(finding)
    return finding_of(before) == finding_of(now)


def _verdict(finding: Mapping[str, Any], case_id: str, revision: int, now_ns: int) -> Json:
    moment = datetime.fromtimestamp(now_ns / _NS, tz=timezone.utc)
    return {
        "id": case_id,
        "revision": revision,
        "created": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        **finding,
        "case_trace": case_trace_id(case_id, revision),
    }


def _change(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """What is different, in words without content."""
    said, says = _named(old), _named(new)
    if said != says:
        return f"it said {said}"
    if _operations(old) != _operations(new):
        return f"it named {_operations(old) or 'no operation'} as decisive"
    for name, label in (
        ("lineage", "the lineage was"),
        ("absence", "absence was"),
        ("missing", "missing was"),
        ("method", "it was found by"),
        ("basis", "it rested on"),
        ("score", "its score was"),
        ("replay", "its replay was"),
    ):
        before, now = _text(old.get(name)), _text(new.get(name))
        if before != now:
            return f"{label} {before}, now {now}"
    return "the same finding rests on other evidence"


def _named(verdict: Mapping[str, Any]) -> str:
    return f"{verdict['stage']}/{verdict['error_type']}"


def _operations(verdict: Mapping[str, Any]) -> str:
    return ", ".join(f"{each['traceId']}:{each['spanId']}" for each in verdict["decisive"])


def _text(value: object) -> str:
    if isinstance(value, dict):
        return str(value["result"])
    if value is None:
        return "none"
    return ", ".join(map(str, value)) or "nothing" if isinstance(value, list) else str(value)
