"""Our own span contract (DESIGN section 3): one span -> facts. Pure.

What is malformed is salvaged and named in :attr:`SpanFacts.problems`; nothing here raises for
bad input.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from memtrace_collector.dialects import attributes as attr
from memtrace_collector.dialects import packed_json
from memtrace_collector.dialects.attributes import Attributes, Source
from memtrace_collector.dialects.lineage import LineageReader, is_reference
from memtrace_collector.graph.facts import Flag, Operation, SpanFacts, Value
from memtrace_otel import canonical_json, semconv, variables
from memtrace_otel.variables import DigestKey

MARKERS = (b"memtrace.",)
OWN_SPANS = frozenset(
    (semconv.SPAN_CASE, semconv.SPAN_HOP, semconv.SPAN_ATTRIBUTION, semconv.SPAN_CAUSE)
)
_DELETED_OR_UNKNOWN = (semconv.DELETED_VERSION, semconv.UNKNOWN_VERSION)
_KNOWN_KEYS: Mapping[str, DigestKey] = {semconv.KEY_PLAIN: variables.PLAIN}


def read_span(
    span: Span,
    attributes: Attributes,
    source: Source,
    keys: Mapping[str, DigestKey] = _KNOWN_KEYS,
) -> SpanFacts | None:
    """Facts of a span of this dialect; None when it is not one.

    Args:
        span: the span as received.
        attributes: its attributes, decoded.
        source: tenant, resource and scope it came with.
        keys: digest keys by name, with which values can be verified.
    """
    if span.name in OWN_SPANS:
        return None
    step = attr.text(attributes, semconv.MEMTRACE_STEP)
    flagged = attributes.get(semconv.MEMTRACE_FLAGGED) is True
    if not step and not flagged:
        return None
    packed = packed_json.read(attributes, semconv.MEMTRACE_LINEAGE)
    lineage = LineageReader(packed.data if packed else {})
    incomplete = packed is not None and not packed.complete
    if incomplete:
        lineage.problems.append(semconv.MEMTRACE_LINEAGE)
    if step == semconv.STEP_FAREWELL:
        return SpanFacts(
            tenant=source.tenant,
            farewell=lineage.sequence(),
            farewell_ns=attr.nanoseconds(span.start_time_unix_nano),
            problems=tuple(lineage.problems),
        )
    operation = _operation(span, attributes, source, lineage, step) if step else None
    values: tuple[Value, ...] = ()
    if operation is not None:
        truncated = dict(operation.truncated)
        values, values_complete = _values(attributes, operation, keys)
        if incomplete:
            truncated["lineage"] = 1
        if not values_complete:
            truncated["values"] = 1
            lineage.problems.append(semconv.MEMTRACE_VALUES)
        operation = _with_truncated(operation, truncated)
    return SpanFacts(
        tenant=source.tenant,
        operation=operation,
        values=values,
        flags=_flags(span, attributes, source.tenant, step, flagged),
        problems=tuple(dict.fromkeys(lineage.problems)),
    )


def _operation(
    span: Span, attributes: Attributes, source: Source, lineage: LineageReader, step: str
) -> Operation | None:
    fields = lineage.fields()
    graph_id = attr.text(attributes, semconv.MEMTRACE_GRAPH_ID)
    if step == semconv.STEP_FLAG and not graph_id and fields["sequence"] is None:
        return None
    conversation = attr.text(attributes, semconv.GEN_AI_CONVERSATION_ID)
    fields["composite"] = fields["composite"] or step == semconv.STEP_ADD
    return Operation(
        graph_id=graph_id or conversation or f"service:{source.service or 'unknown'}",
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_span_id=span.parent_span_id.hex(),
        name=span.name,
        step=step,
        start_ns=attr.nanoseconds(span.start_time_unix_nano),
        end_ns=attr.nanoseconds(span.end_time_unix_nano),
        tenant=source.tenant,
        system=attr.text(attributes, semconv.MEMTRACE_SYSTEM),
        system_version=attr.text(attributes, semconv.MEMTRACE_SYSTEM_VERSION),
        service=source.service,
        capture=attr.text(attributes, semconv.MEMTRACE_CAPTURE) or semconv.CAPTURE_OBSERVED,
        error_type=attr.text(attributes, semconv.ERROR_TYPE),
        conversation_id=conversation,
        response_id=attr.text(attributes, semconv.GEN_AI_RESPONSE_ID),
        digest=attr.message_digest(span),
        **fields,
    )


def _with_truncated(operation: Operation, truncated: Mapping[str, int]) -> Operation:
    if truncated == operation.truncated:
        return operation
    return structs.replace(operation, truncated=truncated)


def _values(
    attributes: Attributes, operation: Operation, keys: Mapping[str, DigestKey]
) -> tuple[tuple[Value, ...], bool]:
    packed = packed_json.read(attributes, semconv.MEMTRACE_VALUES)
    if packed is None:
        return (), True
    key = keys.get(operation.digest_key)
    cut = frozenset(operation.cut)
    values = tuple(
        _value(reference, content, operation, key, reference in cut)
        for reference, content in packed.data.items()
        if is_reference(reference) and content is not None
    )
    return values, packed.complete


def _value(
    reference: str, content: object, operation: Operation, key: DigestKey | None, cut: bool
) -> Value:
    kept = content if isinstance(content, (str, list)) else canonical_json.dumps(content)
    return Value(
        graph_id=operation.graph_id,
        ref=reference,
        content=kept,
        tenant=operation.tenant,
        cut=cut,
        verified=not cut and key is not None and _digest_matches(reference, content, key),
    )


def _digest_matches(reference: str, content: object, key: DigestKey) -> bool:
    version = variables.text_version(variables.version_of(reference))
    if version in _DELETED_OR_UNKNOWN:
        return False
    return key.digest(content)[:12] == version


def _flags(
    span: Span, attributes: Attributes, tenant: str, step: str, flagged: bool
) -> tuple[Flag, ...]:
    if step != semconv.STEP_FLAG and not flagged:
        return ()
    trace_id, span_id = span.trace_id.hex(), span.span_id.hex()
    origin = f"{trace_id}:{span_id}"
    response_id = conversation_id = ""
    if step == semconv.STEP_FLAG:
        trace_id = attr.text(attributes, semconv.MEMTRACE_FLAG_TRACE_ID).lower()
        span_id = attr.text(attributes, semconv.MEMTRACE_FLAG_SPAN_ID).lower()
        response_id = attr.text(attributes, semconv.GEN_AI_RESPONSE_ID)
        conversation_id = attr.text(attributes, semconv.GEN_AI_CONVERSATION_ID)
        if not (trace_id or response_id or conversation_id):
            trace_id, span_id = _linked(span)
    if not (trace_id or response_id or conversation_id):
        return ()
    return (
        Flag(
            tenant=tenant,
            graph_id=attr.text(attributes, semconv.MEMTRACE_GRAPH_ID),
            trace_id=trace_id,
            span_id=span_id,
            response_id=response_id,
            conversation_id=conversation_id,
            expected=attr.optional_text(attributes, semconv.MEMTRACE_EXPECTED),
            evidence=attr.texts(attributes, semconv.MEMTRACE_EVIDENCE),
            reason=attr.text(attributes, semconv.MEMTRACE_FLAG_REASON),
            source=attr.text(attributes, semconv.MEMTRACE_FLAG_SOURCE),
            at_ns=attr.nanoseconds(span.end_time_unix_nano),
            origin=origin,
        ),
    )


def _linked(span: Span) -> tuple[str, str]:
    for link in span.links:
        relation = attr.decode(link.attributes).get(semconv.LINK_RELATION)
        if relation == semconv.RELATION_FLAGS:
            return link.trace_id.hex(), link.span_id.hex()
    return "", ""
