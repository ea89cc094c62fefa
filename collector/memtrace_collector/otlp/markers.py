"""Does a request or a span hold an attribute of an enabled dialect? Answered without decoding.

A marker is the beginning of an attribute's key. In protobuf a key follows its field's tag and
its length, so that text that merely mentions a marker does not count, and one search looks for all
markers at the speed of finding a byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

_KEY = rb"\x0a[\x80-\xff]{0,4}[\x00-\x7f]"
"""Field 1 of a KeyValue: its tag, and a length that may take several bytes."""


class Markers:
    """Looks for keys that begin with one of ``beginnings``; finds none when there are none."""

    def __init__(self, beginnings: Iterable[bytes]) -> None:
        self._beginnings = tuple(sorted(set(beginnings)))
        anywhere = b"|".join(map(re.escape, self._beginnings)) or rb"(?!)"
        self.in_protobuf: Callable[[bytes], object] = re.compile(
            rb"%s(?:%s)" % (_KEY, anywhere)
        ).search
        """Truthy when protobuf bytes may hold such a key."""

    def in_json(self, data: bytes) -> bool:
        """May the JSON hold such a key? A mention counts too."""
        return any(beginning in data for beginning in self._beginnings)
