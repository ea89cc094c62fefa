"""Every attribute, span, link, metric and key name of the span contract, once.

Names under ``gen_ai.`` are OpenTelemetry's own (semantic-conventions-genai, Development
stability); everything else is under ``memtrace.``. This module imports nothing, so that the
host package, the collector and the tests can all share it.
"""

SCHEMA_VERSION = 1
"""Value of :data:`MEMTRACE_SCHEMA_VERSION` written by this release."""

# OpenTelemetry GenAI names
GEN_AI_OPERATION_NAME = "gen_ai.operation.name"
GEN_AI_CONVERSATION_ID = "gen_ai.conversation.id"
GEN_AI_RESPONSE_ID = "gen_ai.response.id"
GEN_AI_RESPONSE_MODEL = "gen_ai.response.model"
GEN_AI_REQUEST_MODEL = "gen_ai.request.model"
GEN_AI_USAGE_INPUT_TOKENS = "gen_ai.usage.input_tokens"
GEN_AI_USAGE_OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
GEN_AI_PROVIDER_NAME = "gen_ai.provider.name"
GEN_AI_MEMORY_STORE_ID = "gen_ai.memory.store.id"
GEN_AI_MEMORY_RECORD_ID = "gen_ai.memory.record.id"
GEN_AI_MEMORY_RECORD_COUNT = "gen_ai.memory.record.count"
GEN_AI_MEMORY_QUERY_TEXT = "gen_ai.memory.query.text"
GEN_AI_MEMORY_RECORDS = "gen_ai.memory.records"
GEN_AI_DATA_SOURCE_ID = "gen_ai.data_source.id"
GEN_AI_RETRIEVAL_TOP_K = "gen_ai.retrieval.top_k"
GEN_AI_RETRIEVAL_QUERY_TEXT = "gen_ai.retrieval.query.text"
GEN_AI_RETRIEVAL_DOCUMENTS = "gen_ai.retrieval.documents"
GEN_AI_INPUT_MESSAGES = "gen_ai.input.messages"
GEN_AI_OUTPUT_MESSAGES = "gen_ai.output.messages"
GEN_AI_SYSTEM_INSTRUCTIONS = "gen_ai.system_instructions"
GEN_AI_TOOL_CALL_ARGUMENTS = "gen_ai.tool.call.arguments"
GEN_AI_TOOL_CALL_RESULT = "gen_ai.tool.call.result"
GEN_AI_EVALUATION_RESULT = "gen_ai.evaluation.result"
"""Name of the evaluation event or log record."""
GEN_AI_EVALUATION_NAME = "gen_ai.evaluation.name"
GEN_AI_EVALUATION_SCORE_VALUE = "gen_ai.evaluation.score.value"
GEN_AI_EVALUATION_SCORE_LABEL = "gen_ai.evaluation.score.label"
GEN_AI_EVALUATION_EXPLANATION = "gen_ai.evaluation.explanation"
ERROR_TYPE = "error.type"
SERVICE_NAME = "service.name"
USER_ID = "user.id"

# Operation spans (DESIGN 3.2)
MEMTRACE_SCHEMA_VERSION = "memtrace.schema.version"
MEMTRACE_GRAPH_ID = "memtrace.graph.id"
MEMTRACE_STEP = "memtrace.step"
MEMTRACE_SYSTEM = "memtrace.system"
MEMTRACE_SYSTEM_VERSION = "memtrace.system.version"
MEMTRACE_LINEAGE = "memtrace.lineage"
MEMTRACE_VALUES = "memtrace.values"
MEMTRACE_CAPTURE = "memtrace.capture"

# Flags (DESIGN 3.5)
MEMTRACE_FLAGGED = "memtrace.flagged"
MEMTRACE_EXPECTED = "memtrace.expected"
MEMTRACE_EVIDENCE = "memtrace.evidence"
MEMTRACE_FLAG_REASON = "memtrace.flag.reason"
MEMTRACE_FLAG_SOURCE = "memtrace.flag.source"
MEMTRACE_FLAG_TRACE_ID = "memtrace.flag.trace_id"
"""On a ``memtrace.flag`` span: the flagged trace, 32 hex digits."""
MEMTRACE_FLAG_SPAN_ID = "memtrace.flag.span_id"
"""On a ``memtrace.flag`` span: the flagged span of that trace, 16 hex digits."""

# Verdicts (DESIGN 3.6)
MEMTRACE_ATTRIBUTION_STAGE = "memtrace.attribution.stage"
MEMTRACE_ATTRIBUTION_TYPE = "memtrace.attribution.type"
MEMTRACE_ATTRIBUTION_SCORE = "memtrace.attribution.score"
MEMTRACE_ATTRIBUTION_BASIS = "memtrace.attribution.basis"
MEMTRACE_ATTRIBUTION_LINEAGE = "memtrace.attribution.lineage"
MEMTRACE_ATTRIBUTION_REVISION = "memtrace.attribution.revision"
MEMTRACE_ATTRIBUTION_EXPLANATION = "memtrace.attribution.explanation"
MEMTRACE_ATTRIBUTION_METHOD = "memtrace.attribution.method"
MEMTRACE_ATTRIBUTION_MISSING = "memtrace.attribution.missing"
MEMTRACE_CAUSE_TRACE_ID = "memtrace.cause.trace_id"
MEMTRACE_CAUSE_SPAN_ID = "memtrace.cause.span_id"
MEMTRACE_CAUSE_SERVICE = "memtrace.cause.service"
MEMTRACE_CAUSE_OPERATION = "memtrace.cause.operation"
MEMTRACE_CAUSE_SYSTEM = "memtrace.cause.system"
MEMTRACE_CAUSE_TIME = "memtrace.cause.time"
MEMTRACE_CAUSE_FURTHER = "memtrace.cause.further"
"""Decisive operations after the first, each as ``TRACE:SPAN type``."""
MEMTRACE_CAUSE_ALSO = "memtrace.cause.also"
"""Operations whose repair alone would have been enough, too; in the same form."""
MEMTRACE_CASE_ID = "memtrace.case.id"
MEMTRACE_CASE_TRACE_ID = "memtrace.case.trace_id"
MEMTRACE_CASE_PATH = "memtrace.case.path"
"""On a case trace's root: its hops in words, in order."""
MEMTRACE_JUDGEMENT_AGREEMENT = "memtrace.judgement.agreement"
"""What a person said of the machine's verdict: confirmed, or what they corrected."""
MEMTRACE_JUDGEMENT_BY = "memtrace.judgement.by"
MEMTRACE_JUDGEMENT_NOTE = "memtrace.judgement.note"
MEMTRACE_JUDGEMENT_DECISIVE = "memtrace.judgement.decisive"
"""On a judgement: the decisive operations, each as ``TRACE:SPAN``."""
MEMTRACE_JUDGEMENT_LAST_RIGHT = "memtrace.judgement.last_right"
MEMTRACE_JUDGEMENT_FIRST_WRONG = "memtrace.judgement.first_wrong"
MEMTRACE_ANSWER_TRACE_ID = "memtrace.answer.trace_id"
MEMTRACE_ANSWER_SPAN_ID = "memtrace.answer.span_id"
MEMTRACE_HOP_KIND = "memtrace.hop.kind"
MEMTRACE_HOP_OUTCOME = "memtrace.hop.outcome"
MEMTRACE_HOP_SERVICE = "memtrace.hop.service"
MEMTRACE_HOP_SYSTEM = "memtrace.hop.system"
MEMTRACE_HOP_OPERATION = "memtrace.hop.operation"
MEMTRACE_HOP_TIME = "memtrace.hop.time"
MEMTRACE_HOP_RECORD = "memtrace.hop.record"
MEMTRACE_HOP_VERSIONS = "memtrace.hop.versions"
MEMTRACE_HOP_TRACE_ID = "memtrace.hop.trace_id"
MEMTRACE_HOP_SPAN_ID = "memtrace.hop.span_id"

# Links
LINK_RELATION = "memtrace.link.relation"
RELATION_EXTRACTED_FROM = "extracted_from"
RELATION_DERIVED_FROM = "derived_from"
RELATION_DECIDED_BY = "decided_by"
RELATION_SUPERSEDES = "supersedes"
RELATION_RETRIEVED_FROM = "retrieved_from"
RELATION_RERANKED_FROM = "reranked_from"
RELATION_ASSEMBLED_FROM = "assembled_from"
RELATION_ANSWERED_WITH = "answered_with"
RELATION_EVALUATES = "evaluates"
RELATION_FLAGS = "flags"
RELATION_RELATED_TO = "related_to"
"""An association the library recorded between two records; never ancestry."""
MAX_LINKS = 8

# Steps
STEP_ADD = "add"
STEP_INGEST = "ingest"
STEP_EXTRACT = "extract"
STEP_DECIDE = "decide"
STEP_CREATE = "create"
STEP_UPDATE = "update"
STEP_DELETE = "delete"
STEP_CONSOLIDATE = "consolidate"
STEP_REWRITE = "rewrite"
STEP_RETRIEVE = "retrieve"
STEP_RERANK = "rerank"
STEP_ASSEMBLE = "assemble"
STEP_ANSWER = "answer"
STEP_JUDGE = "judge"
STEP_FLAG = "flag"
STEP_FAREWELL = "farewell"
"""The process says that it ends: its sequence has no later number (DESIGN 3.3, absence)."""

SPAN_NAMES = {
    STEP_ADD: "upsert_memory",
    STEP_INGEST: "memtrace.ingest",
    STEP_EXTRACT: "memtrace.extract",
    STEP_DECIDE: "memtrace.decide",
    STEP_CREATE: "create_memory",
    STEP_UPDATE: "update_memory",
    STEP_DELETE: "delete_memory",
    STEP_CONSOLIDATE: "memtrace.consolidate",
    STEP_REWRITE: "memtrace.rewrite",
    STEP_RETRIEVE: "search_memory",
    STEP_RERANK: "memtrace.rerank",
    STEP_ASSEMBLE: "memtrace.assemble",
    STEP_ANSWER: "memtrace.answer",
    STEP_JUDGE: "memtrace.judge",
    STEP_FLAG: "memtrace.flag",
    STEP_FAREWELL: "memtrace.farewell",
}
"""Span name per step; a retrieval of documents is named ``retrieval {data source}`` instead."""

OPERATION_NAMES = {
    STEP_ADD: "upsert_memory",
    STEP_CREATE: "create_memory",
    STEP_UPDATE: "update_memory",
    STEP_DELETE: "delete_memory",
    STEP_RETRIEVE: "search_memory",
    STEP_ANSWER: "chat",
}
"""``gen_ai.operation.name`` per step, where the conventions have one."""

STEP_RELATIONS = {
    STEP_EXTRACT: RELATION_EXTRACTED_FROM,
    STEP_RETRIEVE: RELATION_RETRIEVED_FROM,
    STEP_RERANK: RELATION_RERANKED_FROM,
    STEP_ASSEMBLE: RELATION_ASSEMBLED_FROM,
    STEP_ANSWER: RELATION_ANSWERED_WITH,
    STEP_JUDGE: RELATION_EVALUATES,
    STEP_FLAG: RELATION_FLAGS,
}
"""Link relation of an operation of this step to a producer of its input; others: derived_from."""

# Spans of our own that are never attributed
SPAN_CASE = "memtrace.case"
SPAN_HOP = "memtrace.hop"
SPAN_ATTRIBUTION = "memtrace.attribution"
SPAN_CAUSE = "memtrace.cause"
SPAN_JUDGEMENT = "memtrace.judgement"
"""In an exported case: what a person said of its verdict, linked to the answer."""

# Values of memtrace.capture
CAPTURE_OBSERVED = "observed"
CAPTURE_DECLARED = "declared"
CAPTURE_INFERRED = "inferred"

# Variable kinds (DESIGN 3.1)
KIND_MESSAGE = "msg"
KIND_FACT = "fact"
KIND_MEMORY = "mem"
KIND_DOCUMENT = "doc"
KIND_QUERY = "query"
KIND_CONTEXT = "ctx"
KIND_ANSWER = "ans"
KIND_PROMPT = "prompt"
KINDS = (
    KIND_MESSAGE,
    KIND_FACT,
    KIND_MEMORY,
    KIND_DOCUMENT,
    KIND_QUERY,
    KIND_CONTEXT,
    KIND_ANSWER,
    KIND_PROMPT,
)

# Keys of memtrace.lineage
INPUTS = "inputs"
SHOWN = "shown"
OUTPUTS = "outputs"
DELIVERED = "delivered"
SCORES = "scores"
SCORE_KIND = "score_kind"
DROPPED = "dropped"
LIMITS = "limits"
SUPERSEDES = "supersedes"
DECISIONS = "decisions"
EDGES = "edges"
READS = "reads"
FROM = "from"
TIMES = "times"
ROLES = "roles"
INFERRED = "inferred"
CUT = "cut"
COMPOSITE = "composite"
TRUNCATED = "truncated"
SEQ = "seq"
KEY = "key"
KEY_PLAIN = "plain"

DELETED_VERSION = "deleted"
UNKNOWN_VERSION = "?"
MAX_REFERENCES = 1_000
MAX_READS = 8

# Baggage entries, only when the user opts in
BAGGAGE_GRAPH_ID = "memtrace.graph.id"
BAGGAGE_CONVERSATION_ID = "gen_ai.conversation.id"
