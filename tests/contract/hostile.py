"""Names that look like code, or like nothing at all."""

from __future__ import annotations

HOSTILE = {
    "sql": "'); DROP TABLE operation; --",
    "like": "%_\\",
    "quotes": "\"'`$1 ?1 :name @name",
    "long": "x" * 20_000,
    "nul": "before\x00after",
    "right to left": "\u202egnirts\u202c \u05d0\u05d1",
    "zero width": "a\u200bb\u200d\ufeff",
    "emoji": "\U0001f469\u200d\U0001f680",
    "json": '{"$ref": ["a", null]}',
    "markup": "<script>alert(1)</script>",
    "controls": "\t\r\n\x1b[31m\x7f",
    "separators": "a:b@c@d:e",
}
