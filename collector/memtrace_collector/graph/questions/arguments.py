"""The kinds of arguments that questions share, each with what it may be."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

_NAME = 1_000

GraphId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=_NAME,
        description="Id of a graph (one memory owner), such as user:anna. `graphs` lists them.",
    ),
]
AnyGraphId = Annotated[
    str, Meta(max_length=_NAME, description="Only this graph; empty: every graph.")
]
Record = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=_NAME,
        description="A record, kind:id, such as mem:mem0:4f0c2d1e-…, or a reference to one of its "
        "versions, kind:id@version.",
    ),
]
Reference = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=_NAME,
        description="A reference, kind:id@version, such as msg:conv-7/12@0d3f5a6b7c8d; without "
        "@version any version of that record. Kinds: msg, fact, mem, doc, query, ctx, ans, prompt.",
    ),
]
Answer = Annotated[
    str,
    Meta(
        max_length=49,
        description="TRACE:SPAN of an answer in hex digits, or TRACE for the last answer of it.",
    ),
]
Span = Annotated[
    str, Meta(max_length=49, description="TRACE:SPAN of one operation, 32 and 16 hex digits.")
]
