"""The held-out scenarios, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tests.contract.held_out.story import Expected, Story

Tell = Callable[[Story], Expected]


class Scenario(NamedTuple):
    """A story, and one sentence on why its verdict is what it is."""

    name: str
    why: str
    tell: Tell

    def told(self) -> tuple[Story, Expected]:
        """The story from its beginning, with what the decision table says of it."""
        story = Story(f"user:{self.name}")
        return story, self.tell(story)


SCENARIOS: dict[str, Scenario] = {}


def scenario(why: str) -> Callable[[Tell], Tell]:
    """Register a story under its function's name."""

    def register(tell: Tell) -> Tell:
        SCENARIOS[tell.__name__] = Scenario(tell.__name__, why, tell)
        return tell

    return register
