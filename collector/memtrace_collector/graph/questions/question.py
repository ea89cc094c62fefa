"""A question: a name, typed arguments, and a function that answers it from a source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from memtrace_collector.errors import WrongUseError
from memtrace_collector.graph.questions.answered import MAX_PAGE_CHARS, Found, Texts, page
from memtrace_collector.graph.questions.shapes import Json
from memtrace_collector.graph.questions.suggest import did_you_mean

Source = TypeVar("Source")


@dataclass(frozen=True, slots=True)
class Question(Generic[Source]):
    """``ask(source, arguments, texts)`` answers. The doc string of ``arguments``, a msgspec
    struct, is the description for whoever may ask; its fields are the schema."""

    name: str
    title: str
    arguments: type[msgspec.Struct]
    ask: Callable[[Source, Any, Texts], Found[Any]]

    @property
    def description(self) -> str:
        """For the model or person that chooses what to ask."""
        return description_of(self.arguments)

    @property
    def schema(self) -> Json:
        """JSON schema of the arguments."""
        return schema_of(self.arguments)

    def answer(
        self,
        source: Source,
        arguments: Mapping[str, Any],
        texts: Texts,
        max_chars: int = MAX_PAGE_CHARS,
    ) -> Json:
        """The answer, of about ``max_chars`` as JSON at most; a list from its cursor on.

        Raises:
            WrongUseError: the arguments do not fit the schema, or name what does not exist.
        """
        try:
            given = msgspec.convert(dict(arguments), self.arguments)
        except msgspec.ValidationError as error:
            raise WrongUseError(f"{self.name}: {error}") from None
        found = self.ask(source, given, texts)
        limit, cursor = getattr(given, "limit", 1), getattr(given, "cursor", "")
        return page(found, limit, cursor, max_chars)


def description_of(arguments: type[msgspec.Struct]) -> str:
    """The doc string of a struct of arguments, on one line."""
    return " ".join((arguments.__doc__ or "").split())


def schema_of(arguments: type[msgspec.Struct]) -> Json:
    """The JSON schema of a struct of arguments, without references."""
    _, parts = msgspec.json.schema_components([arguments], ref_template="{name}")
    found = parts[arguments.__name__]
    return {key: item for key, item in found.items() if key not in ("title", "description")}


def named(questions: Iterable[Question[Source]], name: str) -> Question[Source]:
    """The question of that name.

    Raises:
        WrongUseError: there is none.
    """
    by_name = {question.name: question for question in questions}
    if name not in by_name:
        hint = did_you_mean(name, by_name)
        raise WrongUseError(f"there is no question {name!r}{hint}; there are {', '.join(by_name)}")
    return by_name[name]
