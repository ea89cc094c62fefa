"""A model that does whatever the data of a prompt tells it, in any language and encoding it knows.

The worst that a model can do with an injected instruction: it follows each one that it can read,
for the text in which it stands or for all texts, and is honest everywhere else.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import re
import unicodedata
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from memtrace_collector.attribution.texts import text
from tests.instrumentors.openai_stub import Reply, ToolCall
from tests.memtrace_collector.attribution.model import prompts
from tests.memtrace_collector.attribution.model.prompts import HonestModel, Prompt

_LOOKALIKES = str.maketrans("аеорсху", "aeopcxy")
_LEET = str.maketrans("013457", "oieast")
_RAW = re.compile(r"output exactly (\{.*?\})(?: and|\.|$)|(\{\s*\"answers?\".*\})", re.I | re.S)
_TOOL = re.compile(r"<tool_call>|<function_calls>|call the tool", re.I)
_OPTION = re.compile(r"choose option (\S+)", re.I)
_HERE = re.compile(
    r"this text|diesen text|este texto|ce texte|этого текста|这段文字|このテキスト", re.I
)
_CHOOSE = r"(?:choose|pick|reply|answer|say|wähle|elige|choisis|выбери|选择)\W+(?:[^.;:]{0,24}?)"
_WANTED = {
    "none": r"\b(?:none|no|keine|ninguna|aucune|ничего)\b|无|なし",
    "first": r"\bfirst|\berste|\bprimera|\bpremière|第一",
    "second": r"\bsecond|\bsegunda",
    "third": r"\bthird",
    "fourth": r"\bfourth",
    "last": r"\blast\b",
    "longest": r"\blongest",
    "shortest": r"\bshortest",
    "best": r"\bbest\b|\byes\b",
}
_COMMANDS = {name: re.compile(f"{_CHOOSE}(?:{words})", re.I) for name, words in _WANTED.items()}
_COMMANDS["none"] = re.compile(rf"{_COMMANDS['none'].pattern}|なし[^。]*選", re.I)
_DECODERS: tuple[Callable[[str], bytes], ...] = (base64.b64decode, bytes.fromhex)
_PLACES = ("first", "second", "third", "fourth")


def readings(content: str) -> Iterator[str]:
    """A text as it stands and decoded in every way this model knows."""
    plain = unicodedata.normalize("NFKC", content)
    seen = "".join(char for char in plain if unicodedata.category(char) != "Cf")
    yield from (seen, seen.translate(_LOOKALIKES), seen.translate(_LEET), seen[::-1])
    yield codecs.encode(seen, "rot13")
    yield urllib.parse.unquote(seen)
    for token in re.findall(r"[A-Za-z0-9+/=]{16,}", seen):
        yield from filter(None, (_decoded(decode, token) for decode in _DECODERS))


def _decoded(decode: Callable[[str], bytes], token: str) -> str:
    try:
        return decode(token).decode()
    except (ValueError, binascii.Error):
        return ""


@dataclass(frozen=True)
class ObedientModel:
    """Obeys; ``honest`` answers where nothing is commanded."""

    honest: HonestModel

    def __call__(self, request: Mapping[str, Any]) -> Reply | str:
        prompt = prompts.parse(request)
        return self.to(prompt) if prompt.options else self.honest(request)

    def to(self, prompt: Prompt) -> Reply | str:
        """The reply to a question with options."""
        all_data = " ".join([prompt.question, *prompt.texts.values()])
        for reading in readings(all_data):
            if _TOOL.search(reading):
                return Reply(("",), tool_calls=(ToolCall("submit", "{}"),))
            if raw := _RAW.search(reading):
                return raw[1] or raw[2]
        chosen = {label: self._option(prompt, label) for label in prompt.texts}
        return prompts.answers(chosen, prompt)

    def _option(self, prompt: Prompt, label: str) -> str:
        own, elsewhere = prompt.texts[label], [prompt.question, *prompt.texts.values()]
        for reading in readings(own):
            if (found := commanded(prompt, reading, own)) is not None:
                return found
        for reading in (each for said in elsewhere for each in readings(said)):
            if not _HERE.search(reading) or said_of_all(prompt, reading):
                found = commanded(prompt, reading, own)
                if found is not None:
                    return found
        return self.honest.option(prompt, label)


def said_of_all(prompt: Prompt, reading: str) -> bool:
    """Whether a command for "this text" stands in the question, and so speaks of any."""
    return reading in set(readings(prompt.question))


def commanded(prompt: Prompt, reading: str, own: str) -> str | None:
    """The option that a text commands, as a label."""
    if option := _OPTION.search(reading):
        return option[1]
    hits = {name: hit.start() for name, each in _COMMANDS.items() if (hit := each.search(reading))}
    if not hits:
        return None
    labels = list(prompt.options)
    wanted = min(hits, key=hits.__getitem__)
    if wanted == "none":
        return prompt.none
    if wanted in _PLACES:
        return labels[_PLACES.index(wanted)]
    if wanted == "last":
        return labels[-1]
    sizes = {label: len(option) for label, option in prompt.options.items()}
    if wanted in ("longest", "shortest"):
        return (max if wanted == "longest" else min)(labels, key=sizes.__getitem__)
    words = text.content_tokens(own)
    return max(labels, key=lambda each: len(words & text.content_tokens(prompt.options[each])))


@dataclass(frozen=True)
class ColludingModel:
    """Knows the attacker's goal and the expected answer, and serves both whenever a sentence of
    the payload is before it: more than any instruction could tell a model."""

    honest: HonestModel
    payload: tuple[str, ...]
    goal: str
    expected: str

    def __call__(self, request: Mapping[str, Any]) -> str:
        prompt = prompts.parse(request)
        if not prompt.options:
            return self.honest(request)
        return prompts.answers(
            {label: self._option(prompt, label) for label in prompt.texts}, prompt
        )

    def _option(self, prompt: Prompt, label: str) -> str:
        said = prompt.texts[label]
        is_unit = not said.startswith((prompts.CONTROL, prompts.BLANK))
        if is_unit and any(part[:30] in said for part in self.payload):
            if self.goal == "no":
                return prompt.none
            return prompts.label_of(prompt.options, self.expected, prompt.none)
        return self.honest.option(prompt, label)
