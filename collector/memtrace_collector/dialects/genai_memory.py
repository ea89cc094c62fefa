"""Memory spans of other instrumentations, by the merged ``gen_ai.memory.*`` conventions. Pure.

They carry no lineage: what they say of records becomes an operation whose capture is
``inferred``, with versions under the plain key where content was recorded and ``?`` where not.
"""

from __future__ import annotations

from memtrace_collector.dialects import attributes as attr
from memtrace_collector.dialects import packed_json
from memtrace_collector.dialects.attributes import Attributes, Source, SpanAttributes
from memtrace_collector.graph.facts import Operation, SpanFacts, Value
from memtrace_collector.otlp.slices import SpanView
from memtrace_otel import semconv, variables
from memtrace_otel.variables import PLAIN

MARKERS = (b"gen_ai.memory.",)
_STEPS = {
    "create_memory": semconv.STEP_CREATE,
    "update_memory": semconv.STEP_UPDATE,
    # the system decides between create and update: a blind put
    "upsert_memory": semconv.STEP_UPDATE,
    "delete_memory": semconv.STEP_DELETE,
    "search_memory": semconv.STEP_RETRIEVE,
}
_MAX_RECORDS = 1_000


def read_span(span: SpanView, data: bytes, source: Source) -> SpanFacts | None:
    """Facts of a memory span without ``memtrace.*``; None when it is not one.

    Args as those of :func:`memtrace_collector.dialects.memtrace.read_span`.
    """
    attributes = SpanAttributes(span.attributes)
    step = _STEPS.get(attr.text(attributes, semconv.GEN_AI_OPERATION_NAME))
    if step is None or semconv.MEMTRACE_STEP in attributes:
        return None
    system = attr.text(attributes, semconv.GEN_AI_PROVIDER_NAME) or "genai"
    store = attr.text(attributes, semconv.GEN_AI_MEMORY_STORE_ID)
    contents: dict[str, str] = {}
    records, scores = _records(attributes, step, system, store, contents)
    query = attr.text(attributes, semconv.GEN_AI_MEMORY_QUERY_TEXT)
    inputs: tuple[str, ...] = ()
    if query and step == semconv.STEP_RETRIEVE:
        reference = str(variables.make(semconv.KIND_QUERY, query, key=PLAIN))
        contents[reference] = query
        inputs = (reference,)
    written = step != semconv.STEP_RETRIEVE
    unseen = tuple(f"{variables.record_of(ref)}@{semconv.UNKNOWN_VERSION}" for ref in records)
    operation = Operation(
        graph_id=_graph_id(attributes, source),
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_span_id=span.parent_span_id.hex(),
        name=span.name,
        step=step,
        start_ns=attr.nanoseconds(span.start_time_unix_nano),
        end_ns=attr.nanoseconds(span.end_time_unix_nano),
        tenant=source.tenant,
        system=system,
        service=source.service,
        capture=semconv.CAPTURE_INFERRED,
        error_type=attr.text(attributes, semconv.ERROR_TYPE),
        conversation_id=attr.text(attributes, semconv.GEN_AI_CONVERSATION_ID),
        inputs=inputs,
        outputs=records if written else (),
        delivered=() if written else records,
        scores=() if written else scores,
        supersedes=unseen if step in (semconv.STEP_UPDATE, semconv.STEP_DELETE) else (),
        digest_key=semconv.KEY_PLAIN,
        digest=attr.span_digest(data),
    )
    return SpanFacts(tenant=source.tenant, operation=operation, values=_values(operation, contents))


def _graph_id(attributes: Attributes, source: Source) -> str:
    user = attr.text(attributes, semconv.USER_ID) or attr.text(source.resource, semconv.USER_ID)
    if user:
        return f"user:{PLAIN.digest(user)[:32]}"
    conversation = attr.text(attributes, semconv.GEN_AI_CONVERSATION_ID)
    return conversation or f"service:{source.service or 'unknown'}"


def _records(
    attributes: Attributes, step: str, system: str, store: str, contents: dict[str, str]
) -> tuple[tuple[str, ...], tuple[float | None, ...]]:
    references: list[str] = []
    scores: list[float | None] = []
    for item in _record_items(attributes)[:_MAX_RECORDS]:
        content, identifier, score = item.get("content"), item.get("id"), item.get("score")
        if not isinstance(identifier, (str, int)):
            continue
        record = variables.library_id(system, identifier, PLAIN, store)
        if step == semconv.STEP_DELETE:
            reference = f"{semconv.KIND_MEMORY}:{record}@{semconv.DELETED_VERSION}"
        elif isinstance(content, str):
            reference = str(variables.make(semconv.KIND_MEMORY, content, key=PLAIN, id=record))
            contents[reference] = content
        else:
            reference = f"{semconv.KIND_MEMORY}:{record}@{semconv.UNKNOWN_VERSION}"
        references.append(reference)
        scores.append(_number(score))
    return tuple(references), tuple(scores)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value)


def _record_items(attributes: Attributes) -> list[dict[str, object]]:
    records = attributes.get(semconv.GEN_AI_MEMORY_RECORDS)
    if isinstance(records, str):
        records = packed_json.loads(records)
    items: list[dict[str, object]] = []
    if isinstance(records, list):
        items = [item for item in records if isinstance(item, dict)]
    identifier = attr.text(attributes, semconv.GEN_AI_MEMORY_RECORD_ID)
    return items or ([{"id": identifier}] if identifier else [])


def _values(operation: Operation, contents: dict[str, str]) -> tuple[Value, ...]:
    return tuple(
        Value(
            graph_id=operation.graph_id,
            ref=reference,
            content=content,
            tenant=operation.tenant,
            verified=True,
        )
        for reference, content in contents.items()
    )
