"""What stands in a prompt of ours, read as a model reads it, and models that answer it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_MARK = re.compile(r"between \[(\w+)\] and")
_NONE = re.compile(r"Choose (\w+) when the text")
_UNCLEAR = re.compile(r"choose (\w+) when it cannot")
CONTROL = 'Asked "'
BLANK = 'Somebody asked "'
SAID = '", somebody said: '


@dataclass(frozen=True)
class Prompt:
    """A prompt's parts by label; ``others`` is set in the prompt that asks for other answers."""

    system: str
    question: str
    options: Mapping[str, str]
    texts: Mapping[str, str]
    none: str
    unclear: str
    given: str = ""

    @property
    def data(self) -> str:
        """Everything that others wrote."""
        return "\n".join([self.question, self.given, *self.options.values(), *self.texts.values()])


def parse(request: Mapping[str, Any]) -> Prompt:
    system, user = (message["content"] for message in request["messages"])
    mark = _MARK.search(system)[1]  # type: ignore[index]  # a prompt without marks fails the test
    values = re.compile(rf"^(.*?): \[{mark}\](.*)\[/{mark}\]$", re.M)
    head, _, rest = user.partition("\nOptions:\n")
    question = values.search(head)[2]  # type: ignore[index]
    if not rest:
        given = values.findall(head)[1][1]
        return Prompt(system, question, {}, {}, "", "", given)
    options, _, texts = rest.partition("\nTexts:")
    return Prompt(
        system,
        question,
        dict(values.findall(options)),
        dict(values.findall(texts)),
        _NONE.search(system)[1],  # type: ignore[index]
        _UNCLEAR.search(system)[1],  # type: ignore[index]
    )


def answers(chosen: Mapping[str, str], prompt: Prompt, quotes: Mapping[str, str] = {}) -> str:
    return json.dumps(
        {
            "answers": [
                {"text": text, "option": option, "quote": quotes.get(text, prompt.texts[text])}
                for text, option in chosen.items()
            ]
        }
    )


def label_of(options: Mapping[str, str], option: str, otherwise: str) -> str:
    return next((label for label, each in options.items() if each == option), otherwise)


@dataclass(frozen=True)
class HonestModel:
    """Answers rightly: ``means`` says which expected answer a text gives, by a part of it."""

    means: Mapping[str, str]
    others: tuple[str, ...] = ("a red kite", "a long letter", "two old coins", "a wooden boat")

    def __call__(self, request: Mapping[str, Any]) -> str:
        prompt = parse(request)
        if not prompt.options:
            return json.dumps({"others": list(self.others)})
        return answers({label: self.option(prompt, label) for label in prompt.texts}, prompt)

    def option(self, prompt: Prompt, label: str) -> str:
        said = prompt.texts[label]
        if said.startswith(CONTROL):
            return label_of(prompt.options, said.rpartition(SAID)[2], prompt.none)
        if said.startswith(BLANK):
            return prompt.none
        meant = next((answer for part, answer in self.means.items() if part in said), "")
        return label_of(prompt.options, meant, prompt.none)


Model = Callable[[Mapping[str, Any]], str]
