"""What a model was asked for a verdict, as chat spans of our own in the case trace. Pure.

They follow the conventions for GenAI client spans and bear ``memtrace.case.id``, by which the
dialects know them for ours: they are never part of a graph and never flag anything.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from memtrace_collector.attribution.writeback.sizes import MAX_BYTES, clipped
from memtrace_collector.otlp.attributes import encode
from memtrace_otel import semconv

CALL_NS = 1_000_000
_CONTENT_BYTES = (1_900, 900, 300)
"""Tried in turn: as JSON a text is up to six times as long."""


def chat_spans(
    verdict: Mapping[str, Any], trace_id: str, parent: str, start_ns: int, *, quotes: bool
) -> list[Span]:
    """A span per kept call, in order.

    Args:
        verdict: JSON form; its ``model`` says what was asked, null: nothing.
        trace_id: of the case trace, 32 hex digits.
        parent: its root, 16 hex digits.
        start_ns: when the first one stands in the case trace.
        quotes: whether prompts and replies may go along.
    """
    model = verdict.get("model") or {}
    return [
        Span(
            trace_id=bytes.fromhex(trace_id),
            span_id=hashlib.sha256(f"chat\0{parent}\0{number}".encode()).digest()[:8],
            parent_span_id=bytes.fromhex(parent),
            name=f"chat {model['model']}"[:128],
            kind=Span.SPAN_KIND_CLIENT,
            start_time_unix_nano=start_ns + number * CALL_NS,
            end_time_unix_nano=start_ns + (number + 1) * CALL_NS,
            attributes=encode(_of_call(verdict["id"], model["model"], call, quotes)),
        )
        for number, call in enumerate(model.get("asked", ()))
    ]


def _of_call(case_id: str, model: str, call: Mapping[str, Any], quotes: bool) -> dict[str, Any]:
    tokens = call.get("tokens", {})
    return {
        semconv.MEMTRACE_CASE_ID: case_id,
        semconv.GEN_AI_OPERATION_NAME: "chat",
        semconv.GEN_AI_REQUEST_MODEL: model,
        semconv.GEN_AI_USAGE_INPUT_TOKENS: tokens.get("prompt"),
        semconv.GEN_AI_USAGE_OUTPUT_TOKENS: tokens.get("completion"),
        semconv.GEN_AI_INPUT_MESSAGES: _message("user", call["prompt"]) if quotes else None,
        semconv.GEN_AI_OUTPUT_MESSAGES: _message("assistant", call["reply"]) if quotes else None,
    }


def _message(role: str, content: str) -> str:
    for limit in _CONTENT_BYTES:
        part = {"type": "text", "content": clipped(content, limit)}
        message = json.dumps([{"role": role, "parts": [part]}], ensure_ascii=False)
        if len(message.encode(errors="replace")) <= MAX_BYTES:
            break
    return message
