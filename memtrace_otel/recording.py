"""What one open operation has gathered, and writing it onto its span at the exit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from opentelemetry import trace
from opentelemetry.trace import Span, SpanContext, Status, StatusCode, TraceFlags
from opentelemetry.util.types import AttributeValue

from memtrace_otel import canonical_json, content, packing, semconv
from memtrace_otel.containment import Kind, Origin
from memtrace_otel.guard import report
from memtrace_otel.references import DeferredVariable
from memtrace_otel.runtime import Runtime
from memtrace_otel.variables import Variable, VariableRef

_RECENT_KINDS: Mapping[str, Kind] = {
    semconv.KIND_MESSAGE: "message",
    semconv.KIND_QUERY: "query",
    semconv.KIND_ANSWER: "answer",
}
MAX_ENTRIES = 10 * semconv.MAX_REFERENCES
"""Entries kept per field while an operation runs; what comes after is only counted."""
_RECORD_STEPS = (semconv.STEP_CREATE, semconv.STEP_UPDATE, semconv.STEP_DELETE)
_UNSAFE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
_NONE: list[Any] = []
_NO_SOURCES: Mapping[str, str] = {}


class Begin(NamedTuple):
    """What is known of an operation when it starts."""

    step: str
    graph_id: str
    conversation_id: str
    capture: str
    attributes: Mapping[str, AttributeValue]
    sequence: str
    parent_span_id: int
    adopted: bool


class Record:
    """Everything an open operation has been given.

    Attributes:
        fields: keys of ``memtrace.lineage`` with what was given for them.
        texts: reference -> content as text, for variables whose content is known.
        attributes: further span attributes.
    """

    __slots__ = (
        "_keeps_all",
        "attributes",
        "begin",
        "fields",
        "runtime",
        "span",
        "texts",
    )

    def __init__(self, runtime: Runtime, span: Span, begin: Begin) -> None:
        self.runtime = runtime
        self.span = span
        self.begin = begin
        self.fields: dict[str, Any] = {}
        self.texts: dict[str, str] = {}
        self.attributes: dict[str, AttributeValue] = {}
        self._keeps_all = runtime.config.capture_content

    def references(self, variables: Iterable[object], *, delivered: bool = False) -> list[str]:
        """The references of ``variables``; texts are remembered where they are needed later.

        With capture off only what may be found in a prompt is: what enters, what is asked and
        answered, and what a read delivers.
        """
        texts = self.texts
        keeps = self._keeps_all or delivered
        references = []
        reference = self.runtime.digests.reference
        for variable in variables:
            if type(variable) is DeferredVariable:  # the hot path
                ref = variable.known_ref
                if not ref:
                    variable.known_ref = ref = reference(variable.parts)
                references.append(ref)
                if (keeps or variable.parts[0] in _RECENT_KINDS) and ref not in texts:
                    self._keep(ref, variable.content)
                continue
            ref = reference_text(variable)
            if ref:
                references.append(ref)
                if isinstance(variable, Variable) and ref not in texts:
                    self._keep(ref, variable.content)
        return references

    def _keep(self, ref: str, value: object) -> None:
        if value is not None and len(self.texts) < MAX_ENTRIES:
            self.texts[ref] = value if isinstance(value, str) else canonical_json.dumps(value)

    def write(self, error: BaseException | None) -> None:
        """Put everything onto the span, lineage last, and end it unless it was adopted."""
        span = self._writable()
        try:
            self._add_links(span)
            if error is not None:
                self._set_error(span, error)
            attributes: dict[str, AttributeValue] = self.attributes
            if self.begin.adopted:
                attributes = {**self.begin.attributes, **attributes}
            _add_conventional(attributes, self.begin, self.fields)
            limit = _attribute_limit(span, self.runtime)
            if self._keeps_all and self.texts:
                self._add_content(attributes, limit)
            key_name = self.runtime.digests.key_name
            attributes.update(packing.pack(self._lineage(), self.begin.sequence, key_name, limit))
            span.set_attributes(attributes)
        finally:
            if span is not self.span or not self.begin.adopted:
                clock = self.runtime.clock
                span.end(clock() if clock else None)
        self._register(span.get_span_context())

    def _writable(self) -> Span:
        """The span; a child of its own when an adopted span was ended before its operation."""
        if not self.begin.adopted or self.span.is_recording():
            return self.span
        provider = self.runtime.provider()
        if provider is None:
            return self.span
        return self.runtime.tracer(provider).start_span(
            semconv.SPAN_NAMES.get(self.begin.step, self.begin.step),
            context=trace.set_span_in_context(self.span),
            attributes=self.begin.attributes,
        )

    def _lineage(self) -> dict[str, Any]:
        fields = self.fields
        scores = fields.get(semconv.SCORES)
        if scores is not None and not any(score is not None for score in scores):
            del fields[semconv.SCORES]
        for name in (semconv.INPUTS, semconv.SHOWN, semconv.OUTPUTS, semconv.SUPERSEDES):
            if name in fields:
                fields[name] = list(dict.fromkeys(fields[name]))
        return fields

    def _add_links(self, span: Span) -> None:
        fields = self.fields
        sources: Mapping[str, str] = fields.get(semconv.FROM, _NO_SOURCES)
        read = fields.get(semconv.INPUTS, _NONE)
        if semconv.SHOWN in fields:
            read = read + fields[semconv.SHOWN]
        if sources:
            read = [ref for ref in read if ref not in sources]
        fetched = fields.get(semconv.DELIVERED, _NONE)
        superseded = fields.get(semconv.SUPERSEDES, _NONE)
        if not (read or sources or fetched or superseded):
            return
        context = span.get_span_context()
        links = self.runtime.lineage.links(
            self.begin.step,
            trace_id=context.trace_id,
            excluded=(context.span_id, self.begin.parent_span_id),
            named=[_named(source) for source in sources.values()],
            read=read,
            fetched=fetched,
            superseded=superseded,
        )
        for target, relation in links:
            span.add_link(target, {semconv.LINK_RELATION: relation})

    def _set_error(self, span: Span, error: BaseException) -> None:
        self.attributes[semconv.ERROR_TYPE] = qualified_name(error)
        # An exception's message may quote what the user said.
        message = str(error) if self.runtime.config.capture_content else None
        span.set_status(Status(StatusCode.ERROR, message))

    def _add_content(self, attributes: dict[str, AttributeValue], limit: int | None) -> None:
        runtime = self.runtime
        config = runtime.config
        lineage = runtime.lineage
        new = [(ref, text) for ref, text in self.texts.items() if not lineage.is_published(ref)]
        published = content.publish(
            new,
            redactor=runtime.redactor,
            max_value_chars=config.max_value_chars,
            max_span_chars=config.max_span_chars,
        )
        text, sent = content.fit(published, limit)
        if sent.values:
            attributes[semconv.MEMTRACE_VALUES] = text
            if self.span.get_span_context().trace_flags.sampled:
                lineage.publish(sent.values)
        if sent.cut:
            self.fields.setdefault(semconv.CUT, []).extend(sent.cut)
        if self.begin.step == semconv.STEP_RETRIEVE:
            self._add_retrieved(attributes, limit)

    def _add_retrieved(self, attributes: dict[str, AttributeValue], limit: int | None) -> None:
        texts = self.texts
        delivered = self.fields.get(semconv.DELIVERED, _NONE)
        queries = [
            ref
            for ref in self.fields.get(semconv.INPUTS, _NONE)
            if ref in texts and ref.startswith(f"{semconv.KIND_QUERY}:")
        ]
        config = self.runtime.config
        allowed = content.publish(
            [(ref, texts[ref]) for ref in (*queries[:1], *delivered) if ref in texts],
            redactor=self.runtime.redactor,
            max_value_chars=config.max_value_chars,
            max_span_chars=config.max_span_chars,
        ).values
        if queries and queries[0] in allowed:
            attributes[semconv.GEN_AI_MEMORY_QUERY_TEXT] = allowed[queries[0]]
        records = _conventional_records(delivered, self.fields.get(semconv.SCORES, _NONE), allowed)
        text = packing.dumps(records)
        if records and (limit is None or len(text) <= limit):  # half a JSON text is of no use
            attributes[semconv.GEN_AI_MEMORY_RECORDS] = text

    def _register(self, context: SpanContext) -> None:
        fields = self.fields
        if context.trace_flags.sampled:
            self.runtime.lineage.register(
                context,
                produced=fields.get(semconv.OUTPUTS, _NONE),
                delivered=fields.get(semconv.DELIVERED, _NONE),
                decided=[entry[0] for entry in fields.get(semconv.DECISIONS, _NONE) if entry[0]],
            )
        if self.texts:
            self._remember(context)

    def _remember(self, context: SpanContext) -> None:
        """Keep values that may turn up in a prompt, with the operation they came from."""
        origin: Origin | None = None
        if context.trace_flags.sampled:
            trace_id, span_id = context.trace_id, context.span_id
            origin = (trace.format_trace_id(trace_id), trace.format_span_id(span_id))
        add = self.runtime.recent.add
        graph_id = self.begin.graph_id
        delivered = frozenset(self.fields.get(semconv.DELIVERED, _NONE))
        for ref, text in self.texts.items():
            kind = "delivered" if ref in delivered else _RECENT_KINDS.get(ref.partition(":")[0])
            if kind is not None:
                add(ref, text, origin, graph_id, kind)


def reference_text(given: object) -> str:
    """The text of a reference that was given as such; empty, and reported, when it is none."""
    if isinstance(given, Variable):
        given = given.ref
    elif isinstance(given, VariableRef):
        given = str(given)
    if isinstance(given, str) and 0 < given.find(":") < given.rfind("@") < len(given) - 1:
        return given if given.isprintable() else _UNSAFE.sub("\ufffd", given)
    report(
        f"reference:{type(given).__name__}",
        "memtrace_otel: expected a variable or the text of a reference, got %s; it is left out",
        type(given).__name__,
    )
    return ""


def qualified_name(error: BaseException) -> str:
    """``module.Class`` of an exception, as ``error.type`` asks; built-in ones without module."""
    kind = type(error)
    if kind.__module__ == "builtins":
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"


def _named(source: str) -> SpanContext:
    """The span that an entry of ``from`` names: 32 and 16 hex digits."""
    trace_id, _, span_id = source.partition("-")
    return SpanContext(
        int(trace_id, 16),
        int(span_id, 16),
        is_remote=True,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )


def _attribute_limit(span: Span, runtime: Runtime) -> int | None:
    """The SDK's limit for one attribute's characters; the API has no way to ask for it."""
    limits = getattr(span, "_limits", None)
    limit = getattr(limits, "max_span_attribute_length", None)
    return limit if isinstance(limit, int) else runtime.config.attribute_limit


def _add_conventional(
    attributes: dict[str, AttributeValue], begin: Begin, fields: Mapping[str, Any]
) -> None:
    """``gen_ai.memory.record.id`` and ``.record.count``, unless the caller gave them."""
    if begin.step == semconv.STEP_RETRIEVE:
        count = len(fields.get(semconv.DELIVERED, _NONE))
        attributes.setdefault(semconv.GEN_AI_MEMORY_RECORD_COUNT, count)
    elif begin.step in _RECORD_STEPS:
        prefix = f"{semconv.KIND_MEMORY}:"
        refs = [ref for ref in fields.get(semconv.OUTPUTS, _NONE) if ref.startswith(prefix)]
        attributes.setdefault(semconv.GEN_AI_MEMORY_RECORD_COUNT, len(refs))
        if len(refs) == 1:
            attributes.setdefault(semconv.GEN_AI_MEMORY_RECORD_ID, _library_id(refs[0]))


def _library_id(reference: str) -> str:
    """The last part of a record's id: the library's own, or its digest."""
    return reference.rpartition("@")[0].rpartition(":")[2]


def _conventional_records(
    delivered: list[str], scores: list[float | None], texts: Mapping[str, str]
) -> list[dict[str, object]]:
    records: list[dict[str, object]] = []
    for rank, ref in enumerate(delivered):
        if ref not in texts:
            continue
        record: dict[str, object] = {"id": _library_id(ref), "content": texts[ref]}
        if rank < len(scores) and scores[rank] is not None:
            record["score"] = scores[rank]
        records.append(record)
    return records
