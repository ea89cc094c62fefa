"""A failure whose every captured text and name looks like code, as OTLP/JSON."""

from __future__ import annotations

import json
from typing import Any

from tests.memtrace_collector.running import VECTORS

MARKUP = "<img src=x onerror=\"document.title='pwned'\">"
CLOSING = "</script></style><script>document.title='pwned'</script>"
BIDI = "\u202egnirts\u202c \u2066x\u2069 \u200b\ufeff"
TEXT = f"{MARKUP} {CLOSING} {BIDI} {{{{7*7}}}} javascript:alert(1)"
GRAPH = f"user:{MARKUP}"
SERVICE = f"agent {CLOSING}"
_VECTOR = "overwritten"
_NAMES = {"memtrace.graph.id": GRAPH, "service.name": SERVICE, "memtrace.system": MARKUP}


def export_request() -> bytes:
    """A contract vector, flagged, with hostile texts and names in place of its own."""
    document = json.loads((VECTORS / f"{_VECTOR}.otlp.json").read_text("utf-8"))
    for resource in document["resourceSpans"]:
        _rename(resource.get("resource", {}))
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                _rename(span)
    return json.dumps(document).encode()


def _rename(holder: dict[str, Any]) -> None:
    for item in holder.get("attributes", ()):
        key, value = item["key"], item["value"]
        if key in _NAMES:
            value["stringValue"] = _NAMES[key]
        elif key == "memtrace.values":
            values = json.loads(value["stringValue"])
            told = {ref: _hostile(content) for ref, content in values.items()}
            value["stringValue"] = json.dumps(told)


def _hostile(content: Any) -> Any:
    return f"{content} {TEXT}" if isinstance(content, str) else [*content, TEXT]
