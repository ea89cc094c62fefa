"""OTLP messages as OTLP/JSON: hexadecimal ids, enums as integers. Pure."""

from __future__ import annotations

import base64
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

_IDS = ("traceId", "spanId", "parentSpanId")


def to_json(request: Message) -> dict[str, Any]:
    """An export request of traces as an OTLP/JSON object."""
    document: dict[str, Any] = MessageToDict(request, use_integers_for_enums=True)
    for resource in document.setdefault("resourceSpans", []):
        for scope in resource.setdefault("scopeSpans", []):
            for span in scope.setdefault("spans", []):
                _hex_ids(span)
                for link in span.get("links", ()):
                    _hex_ids(link)
    return document


def _hex_ids(item: dict[str, Any]) -> None:
    for name in _IDS:
        if name in item:
            item[name] = base64.b64decode(item[name]).hex()
