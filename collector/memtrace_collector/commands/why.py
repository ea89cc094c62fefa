"""`why`: the receipt of an answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from memtrace_collector.commands.options import format_option, store_option
from memtrace_collector.commands.output import print_json, print_line, shorten, span_text, table
from memtrace_collector.commands.session import open_questions


@click.command()
@click.argument("answer", metavar="TRACE[:SPAN]")
@click.argument("about", metavar="[RECORD|TEXT]", default="")
@store_option
@format_option()
def why(answer: str, about: str, store: str, output_format: str) -> None:
    """The receipt of an answer: what was considered, its rank, what beat it, whether it was used.

    With a record (mem:mem0:…) or a text: why that was recalled, or was not.

    \b
    Example:
      memtrace-otel why 4bf92f3577b34da6a3ce929d0e0e4736 "lives in Lisbon"
    """
    with open_questions(store, "why") as ask:
        found = ask.why(answer, about)
    if output_format == "json":
        print_json(found)
        return
    print_line("\n".join(_lines(found)))


def _lines(found: dict[str, Any]) -> Iterator[str]:
    yield f"answer {span_text(found['answer'])} in {found['graph_id']}"
    if found["text"]:
        yield f"said: {shorten(found['text'], 200)}"
    for read in found["reads"]:
        yield ""
        yield f"{read['name']} {read['operation']} at {read['time']}"
        if read["limits"]:
            yield _limits(read["limits"])
        yield table(
            ("RANK", "SCORE", "OUTCOME", "REFERENCE", "TEXT"), map(_row, read["candidates"])
        )
    if not found["reads"]:
        yield "nothing was read for this answer, as far as was recorded"
    if found["about"]:
        yield ""
        yield from _about(found["about"])


def _about(about: dict[str, Any]) -> Iterator[str]:
    if about["says"]:
        yield about["says"]
    for told in about["found"]:
        yield f"{told['record']}:"
        for line in told["says"]:
            where = f" ({span_text(line['span'])})" if line["span"] else ""
            yield f"  {line['text']}{where}"


def _row(candidate: dict[str, Any]) -> tuple[str, ...]:
    rank, score = candidate["rank"], candidate["score"]
    return (
        "-" if rank is None else str(rank),
        "-" if score is None else f"{score:.3f}",
        candidate["outcome"],
        candidate["ref"],
        shorten(candidate["text"] or "", 60),
    )


def _limits(limits: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in limits.items())
