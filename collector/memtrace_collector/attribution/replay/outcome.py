"""What a replay showed: both arms, the rule that reads them, and its place in a verdict. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

CONFIRMED = "confirmed"
REFUTED = "refuted"
REPRODUCED = "reproduced"
NOT_REPRODUCED = "not_reproduced"
NOT_DETERMINISTIC = "not_deterministic"
INCONCLUSIVE = "inconclusive"
PARTLY = "partly"
NOT_REPLAYABLE = "not_replayable"
RESULTS = (
    CONFIRMED,
    REFUTED,
    REPRODUCED,
    NOT_REPRODUCED,
    NOT_DETERMINISTIC,
    INCONCLUSIVE,
    PARTLY,
    NOT_REPLAYABLE,
)
NO_ENDPOINT = "no_endpoint"
"""Value of ``missing``: no endpoint is set."""
BASIS = "replay"
STEPS = ("extraction", "retrieval", "assembly")
"""What may be assumed."""
MAX_SCORE = 0.99
_RAISES, _RAISES_ASSUMING = 0.5, 0.25
"""Share of what is left to :data:`MAX_SCORE` that a confirmation adds."""
_LOWERS, _LOWERS_ASSUMING = 0.4, 0.6
"""What is left of the score after a refutation."""
_MAX_REPLIES, _MAX_REPLY = 10, 200

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Arm:
    """One prompt, asked several times. ``unclear``: whether the reply is right cannot be told."""

    right: int = 0
    wrong: int = 0
    unclear: int = 0
    replies: tuple[str, ...] = ()

    @property
    def runs(self) -> int:
        return self.right + self.wrong + self.unclear

    @property
    def flips(self) -> int:
        """Runs that disagree with what most runs of this arm say."""
        return self.runs - max(self.right, self.wrong, self.unclear)

    def with_run(self, right: bool | None, reply: str) -> Arm:
        """One more run; ``None``: it cannot be told."""
        return Arm(
            self.right + (right is True),
            self.wrong + (right is False),
            self.unclear + (right is None),
            (*self.replies, reply[:_MAX_REPLY])[:_MAX_REPLIES],
        )

    def to_json(self) -> Json:
        return {
            "right": self.right,
            "wrong": self.wrong,
            "unclear": self.unclear,
            "replies": list(dict.fromkeys(self.replies)),
        }


@dataclass(frozen=True, slots=True)
class Step:
    """What one step downstream of the repair would have done, by what was recorded of it."""

    step: str
    """retrieval or assembly."""
    outcome: str
    """delivered, still_cut, removed, shown, or unchanged."""
    assumed: bool = False
    """Not shown by anything recorded: taken in favour of the repair."""
    rank: int | None = None

    def to_json(self) -> Json:
        return {
            "step": self.step,
            "outcome": self.outcome,
            "assumed": self.assumed,
            "rank": self.rank,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The result. ``missing``: why it could not be replayed, in a word (``no_content``, ``cut``,
    ``no_model``, ``no_endpoint``, ``no_expected``, ``nothing_downstream``, ``refused``,
    ``budget``)."""

    result: str
    reason: str
    missing: str | None = None
    steps: tuple[Step, ...] = ()
    assumed: tuple[str, ...] = ()
    repaired: Arm = field(default_factory=Arm)
    control: Arm = field(default_factory=Arm)
    model: str = ""

    def to_json(self) -> Json:
        return {
            "result": self.result,
            "runs": max(self.repaired.runs, self.control.runs),
            "flips": self.repaired.flips + self.control.flips,
            "reason": self.reason,
            "missing": self.missing,
            "assumed": list(self.assumed),
            "steps": [step.to_json() for step in self.steps],
            "repaired": self.repaired.to_json() if self.repaired.runs else None,
            "control": self.control.to_json() if self.control.runs else None,
            "model": self.model or None,
        }


def read_arms(repaired: Arm, control: Arm, *, place_assumed: bool = False) -> tuple[str, str]:
    """Result and reason of a repair that was asked beside the unrepaired prompt.

    It *confirms* when the repaired prompt is answered rightly in more than half its runs, and in
    at least half the runs (rounded up) more than the unrepaired one. Else, when the unrepaired
    prompt is answered rightly in most runs, the failure is *not reproduced*; when it is at times,
    the model is *not deterministic*. It *refutes* when the repaired prompt is answered wrongly in
    more than half its runs, unless where the value would stand had to be assumed.
    """
    runs = repaired.runs
    told = _told(repaired.right, control.right, runs)
    clearly = repaired.right - control.right >= (runs + 1) // 2
    if 2 * repaired.right > runs and clearly:
        return CONFIRMED, told
    if 2 * control.right > control.runs:
        return NOT_REPRODUCED, told
    if control.right:
        return NOT_DETERMINISTIC, told
    if 2 * repaired.wrong > runs:
        if place_assumed:
            return INCONCLUSIVE, f"{told}; where it would stand in the prompt is not recorded"
        return REFUTED, told
    if repaired.right and repaired.wrong:
        return NOT_DETERMINISTIC, told
    return INCONCLUSIVE, told


def read_again(control: Arm) -> tuple[str, str]:
    """Result and reason of the same prompt asked again (errors of the response)."""
    told = f"right in {control.right} of {control.runs} with the same prompt"
    if control.right:
        return NOT_DETERMINISTIC, told
    if control.wrong == control.runs:
        return REPRODUCED, told
    return INCONCLUSIVE, told


def with_replay(finding: Mapping[str, Any], replay: Replay) -> Json:
    """A finding (JSON form) with a replay in it: a confirmation raises the score and stands in
    ``basis``, a refutation lowers it; the explanation says so."""
    plain = without_replay(finding)
    told = replay.to_json()
    if replay.result not in (CONFIRMED, REFUTED):
        return {**plain, "replay": told}
    before = float(plain["score"])
    told["score_before"] = before
    raised = replay.result == CONFIRMED
    return {
        **plain,
        "score": _raised(before, replay) if raised else _lowered(before, replay),
        "basis": [*plain["basis"], BASIS] if raised else plain["basis"],
        "explanation": plain["explanation"] + sentence(told),
        "replay": told,
    }


def without_replay(finding: Mapping[str, Any]) -> Json:
    """The finding as it was before it was replayed."""
    told = finding.get("replay")
    plain = {**finding, "replay": None}
    if told and told["result"] in (CONFIRMED, REFUTED):
        plain["score"] = told["score_before"]
        plain["basis"] = [each for each in finding["basis"] if each != BASIS]
        plain["explanation"] = finding["explanation"].removesuffix(sentence(told))
    return plain


def is_news(previous: Mapping[str, Any] | None, replay: Mapping[str, Any] | None) -> bool:
    """Whether a replay says more than the one before: none does not, and one that asked nobody
    says less than one that did."""
    if replay is None:
        return False
    return previous is None or bool(replay["runs"]) or not previous["runs"]


def sentence(replay: Mapping[str, Any] | None) -> str:
    """What an explanation says of a replay (JSON form): at most 200 characters, made of its
    numbers and closed words alone, so that no content is in it."""
    if replay is None or replay["result"] not in (CONFIRMED, REFUTED):
        return ""
    assumed = [each for each in replay.get("assumed") or () if each in STEPS]
    assuming = f" (assumed: {', '.join(assumed)})" if assumed else ""
    outcome = "confirms" if replay["result"] == CONFIRMED else "refutes"
    return f" A replay {outcome} it{assuming}{_counted(replay)}."


def _counted(replay: Mapping[str, Any]) -> str:
    repaired, control = (replay.get(arm) or {} for arm in ("repaired", "control"))
    if "right" not in repaired or "right" not in control:
        return ""
    right, without, runs = repaired["right"], control["right"], replay.get("runs")
    return f": {_told(right, without, runs)}"


def _told(right: object, without: object, runs: object) -> str:
    return f"right in {right} of {runs} with the repair, {without} without"


def _raised(score: float, replay: Replay) -> float:
    share = _RAISES_ASSUMING if replay.assumed else _RAISES
    return round(max(score, score + (MAX_SCORE - score) * share), 4)


def _lowered(score: float, replay: Replay) -> float:
    return round(score * (_LOWERS_ASSUMING if replay.assumed else _LOWERS), 4)
