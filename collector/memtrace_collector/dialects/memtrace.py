"""Our own span contract (DESIGN section 3): one span -> facts. Pure.

What is malformed is salvaged and named in :attr:`SpanFacts.problems`; nothing here raises for
bad input.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memtrace_collector.dialects import attributes as attr
from memtrace_collector.dialects import packed_json
from memtrace_collector.dialects.attributes import Source, SpanAttributes
from memtrace_collector.dialects.lineage import LineageReader, is_reference, regular_fields
from memtrace_collector.graph.facts import Flag, Operation, SpanFacts, Value
from memtrace_collector.otlp.slices import SpanView
from memtrace_otel import canonical_json, semconv, variables
from memtrace_otel.variables import DigestKey

MARKERS = (b"memtrace.",)
OWN_SPANS = frozenset(
    (semconv.SPAN_CASE, semconv.SPAN_HOP, semconv.SPAN_ATTRIBUTION, semconv.SPAN_CAUSE)
)
_SECOND_PART = f"{semconv.MEMTRACE_LINEAGE}.1"
_DELETED_OR_UNKNOWN = (semconv.DELETED_VERSION, semconv.UNKNOWN_VERSION)
_KNOWN_KEYS: Mapping[str, DigestKey] = {semconv.KEY_PLAIN: variables.PLAIN}


def read_span(
    span: SpanView,
    data: bytes,
    source: Source,
    keys: Mapping[str, DigestKey] = _KNOWN_KEYS,
) -> SpanFacts | None:
    """Facts of a span of this dialect; None when it is not one.

    Args:
        span: the span, of which only what is known here is decoded.
        data: its bytes, as received.
        source: tenant, resource and scope it came with.
        keys: digest keys by name, with which values can be verified.
    """
    if span.name in OWN_SPANS:
        return None
    attributes = SpanAttributes(span.attributes)
    step = attributes.text(semconv.MEMTRACE_STEP)
    flagged = attributes.is_true(semconv.MEMTRACE_FLAGGED)
    if not step and not flagged:
        return None
    fields, problems, incomplete = _lineage(attributes)
    if step == semconv.STEP_FAREWELL:
        return SpanFacts(
            tenant=source.tenant,
            farewell=fields["sequence"],
            farewell_ns=attr.nanoseconds(span.start_time_unix_nano),
            problems=tuple(problems),
        )
    graph_id = attributes.text(semconv.MEMTRACE_GRAPH_ID)
    owner = graph_id or attributes.text(semconv.GEN_AI_CONVERSATION_ID) or _service_graph(source)
    values: tuple[Value, ...] = ()
    operation = None
    is_operation = step and (
        step != semconv.STEP_FLAG or graph_id or fields["sequence"] is not None
    )
    if is_operation:
        values, values_complete = _values(attributes, owner, source.tenant, fields, keys)
        if incomplete:
            fields["truncated"] = {**fields["truncated"], "lineage": 1}
        if not values_complete:
            fields["truncated"] = {**fields["truncated"], "values": 1}
            problems.append(semconv.MEMTRACE_VALUES)
        operation = _operation(span, data, attributes, source, owner, step, fields)
    return SpanFacts(
        tenant=source.tenant,
        operation=operation,
        values=values,
        flags=_flags(span, attributes, source.tenant, step, flagged),
        problems=tuple(dict.fromkeys(problems)),
    )


def _lineage(attributes: SpanAttributes) -> tuple[dict[str, Any], list[str], bool]:
    """Fields of the operation, names of what could not be read, and whether much is missing."""
    text = attributes.text(semconv.MEMTRACE_LINEAGE)
    regular = regular_fields(text) if text and _SECOND_PART not in attributes else None
    if regular is not None:
        return regular, [], False
    packed = packed_json.read(attributes, semconv.MEMTRACE_LINEAGE)
    reader = LineageReader(packed.data if packed else {})
    incomplete = packed is not None and not packed.complete
    if incomplete:
        reader.problems.append(semconv.MEMTRACE_LINEAGE)
    return reader.fields(), reader.problems, incomplete


def _operation(
    span: SpanView,
    data: bytes,
    attributes: SpanAttributes,
    source: Source,
    graph_id: str,
    step: str,
    fields: dict[str, Any],
) -> Operation:
    fields["composite"] = fields["composite"] or step == semconv.STEP_ADD
    return Operation(
        graph_id=graph_id,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_span_id=span.parent_span_id.hex(),
        name=span.name,
        step=step,
        start_ns=attr.nanoseconds(span.start_time_unix_nano),
        end_ns=attr.nanoseconds(span.end_time_unix_nano),
        tenant=source.tenant,
        system=attributes.text(semconv.MEMTRACE_SYSTEM),
        system_version=attributes.text(semconv.MEMTRACE_SYSTEM_VERSION),
        service=source.service,
        capture=attributes.text(semconv.MEMTRACE_CAPTURE) or semconv.CAPTURE_OBSERVED,
        error_type=attributes.text(semconv.ERROR_TYPE),
        conversation_id=attributes.text(semconv.GEN_AI_CONVERSATION_ID),
        response_id=attributes.text(semconv.GEN_AI_RESPONSE_ID),
        digest=attr.span_digest(data),
        **fields,
    )


def _service_graph(source: Source) -> str:
    return f"service:{source.service or 'unknown'}"


def _values(
    attributes: SpanAttributes,
    graph_id: str,
    tenant: str,
    fields: Mapping[str, Any],
    keys: Mapping[str, DigestKey],
) -> tuple[tuple[Value, ...], bool]:
    packed = packed_json.read(attributes, semconv.MEMTRACE_VALUES)
    if packed is None:
        return (), True
    key = keys.get(fields["digest_key"])
    cut = frozenset(fields["cut"])
    values = tuple(
        Value(
            graph_id=graph_id,
            ref=reference,
            content=content if isinstance(content, (str, list)) else canonical_json.dumps(content),
            tenant=tenant,
            cut=reference in cut,
            verified=reference not in cut
            and key is not None
            and _digest_matches(reference, content, key),
        )
        for reference, content in packed.data.items()
        if is_reference(reference) and content is not None
    )
    return values, packed.complete


def _digest_matches(reference: str, content: object, key: DigestKey) -> bool:
    version = variables.text_version(variables.version_of(reference))
    if version in _DELETED_OR_UNKNOWN:
        return False
    return key.digest(content)[:12] == version


def _flags(
    span: SpanView, attributes: SpanAttributes, tenant: str, step: str, flagged: bool
) -> tuple[Flag, ...]:
    if step != semconv.STEP_FLAG and not flagged:
        return ()
    trace_id, span_id = span.trace_id.hex(), span.span_id.hex()
    origin = f"{trace_id}:{span_id}"
    response_id = conversation_id = ""
    if step == semconv.STEP_FLAG:
        trace_id = attributes.text(semconv.MEMTRACE_FLAG_TRACE_ID).lower()
        span_id = attributes.text(semconv.MEMTRACE_FLAG_SPAN_ID).lower()
        response_id = attributes.text(semconv.GEN_AI_RESPONSE_ID)
        conversation_id = attributes.text(semconv.GEN_AI_CONVERSATION_ID)
        if not (trace_id or response_id or conversation_id):
            trace_id, span_id = _linked(span)
    if not (trace_id or response_id or conversation_id):
        return ()
    return (
        Flag(
            tenant=tenant,
            graph_id=attributes.text(semconv.MEMTRACE_GRAPH_ID),
            trace_id=trace_id,
            span_id=span_id,
            response_id=response_id,
            conversation_id=conversation_id,
            expected=attr.optional_text(attributes, semconv.MEMTRACE_EXPECTED),
            evidence=attr.texts(attributes, semconv.MEMTRACE_EVIDENCE),
            reason=attributes.text(semconv.MEMTRACE_FLAG_REASON),
            source=attributes.text(semconv.MEMTRACE_FLAG_SOURCE),
            at_ns=attr.nanoseconds(span.end_time_unix_nano),
            origin=origin,
        ),
    )


def _linked(span: SpanView) -> tuple[str, str]:
    for link in span.links:
        relation = SpanAttributes(link.attributes).text(semconv.LINK_RELATION)
        if relation == semconv.RELATION_FLAGS:
            return link.trace_id.hex(), link.span_id.hex()
    return "", ""
