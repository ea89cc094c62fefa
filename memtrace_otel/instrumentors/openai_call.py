"""One request for an answer, from its prompt to the end of its reply, and its operation.

The operation is written onto the span that another instrumentation made for the request, when
there is one, and before that span ends; else onto a ``memtrace.answer`` of its own.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from opentelemetry import context as context_api
from opentelemetry import trace
from opentelemetry.instrumentation.utils import is_instrumentation_enabled
from opentelemetry.trace import Span, format_trace_id
from opentelemetry.util.types import AttributeValue

from memtrace_otel import references, runtime, scope, semconv
from memtrace_otel.digests import Recent
from memtrace_otel.guard import guarded
from memtrace_otel.instrumentors import openai_prompt, openai_spans, openai_tools
from memtrace_otel.instrumentors.openai_abandoned import Abandoned
from memtrace_otel.instrumentors.openai_lineage import PromptLineage, trace_prompt
from memtrace_otel.instrumentors.openai_prompt import Prompt
from memtrace_otel.instrumentors.openai_reply import Choice, Reply
from memtrace_otel.instrumentors.openai_tools import Purpose
from memtrace_otel.operations import MemoryOperation
from memtrace_otel.tracer import adopt_operation, current_operation, start_operation
from memtrace_otel.variables import Variable

_SYSTEM = "openai"
_abandoned = Abandoned()
_answers: Recent[str, tuple[str, ...]] = Recent(1_000)
"""Response id -> its answers: a request may continue a conversation that the API keeps."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a request goes: URL path, provider by OpenTelemetry's names, library version."""

    path: str
    provider: str
    library_version: str


@guarded
def begin(endpoint: Endpoint, body: object) -> Call | None:
    """The call that this request makes; ``None`` when it is not an operation of its own.

    Inside an open memory operation a request belongs to that operation (DESIGN section 3.2).
    Where instrumentation is suppressed, a request makes no span; one that has a span already,
    perhaps by whom it was suppressed (Logfire does so), has its lineage there.
    """
    state = runtime.get()
    if state.provider() is None or current_operation() is not None:
        return None
    adopted = openai_spans.adoptable()
    if adopted is None and not is_instrumentation_enabled():
        return None
    prompt = openai_prompt.read(endpoint.path, body)
    matches = state.recent.find([message.text for message in prompt.messages])
    here = trace.get_current_span().get_span_context()
    lineage = trace_prompt(
        prompt,
        matches,
        trace_id=format_trace_id(here.trace_id) if here.is_valid else "",
        graph_id=scope.current().graph_id,
        is_produced=lambda ref: state.lineage.producer(ref) is not None,
    )
    lineage.inputs.extend(_answers.get(prompt.previous_response) or ())
    return Call(endpoint, prompt, lineage, adopted)


class Call:
    """A request and what was seen of its reply. Its end may come from any thread.

    The first of these ends it: the whole response, the end of the stream, an error, the end of
    the adopted span, its abandonment.

    Attributes:
        reading: the program is waiting for the next chunk right now.
    """

    def __init__(
        self, endpoint: Endpoint, prompt: Prompt, lineage: PromptLineage, adopted: Span | None
    ) -> None:
        self.reading = False
        self._reply = Reply()
        self._endpoint = endpoint
        self._prompt = prompt
        self._lineage = lineage
        self._context = context_api.get_current()
        self._adopted = adopted
        self._operation = self._start() if adopted is None else None
        self._done = False
        self._lock = threading.Lock()
        self._streams = False
        self._read_any = False
        if adopted is not None:
            openai_spans.before_end(adopted, self.adopted_ends)

    def active(self) -> AbstractContextManager[object]:
        """While the request runs, its own span is the current one."""
        if self._operation is None or not self._operation.is_recording:
            return nullcontext()
        return trace.use_span(
            self._operation.span, record_exception=False, set_status_on_exception=False
        )

    @guarded
    def respond(self, response: object) -> None:
        """The whole response is there."""
        self._reply.read(response)
        self._finish(None)

    @guarded
    def chunk(self, chunk: object) -> None:
        """The program read one chunk of the stream."""
        self._read_any = True
        self._reply.read_chunk(chunk)

    @guarded
    def end(self) -> None:
        """The stream is over."""
        self._finish(None)

    @guarded
    def adopted_ends(self) -> None:
        """The adopted span is about to end.

        When the program has read something by now, it left the stream early. Else the span's
        owner does not wait for the stream, and the operation goes on below that span.
        """
        if self._done or self._adopted is None:
            return
        if self._streams and not self._read_any:
            self._adopted, self._operation = None, self._start()
        else:
            self._finish(None)

    @guarded
    def fail(self, error: BaseException) -> None:
        """The program sees this error."""
        self._finish(error)

    def watch(self) -> None:
        """The program reads the reply itself: notice when it never gets to the end."""
        self._streams = True
        _abandoned.watch(self)

    def closed(self) -> None:
        """The response was closed, perhaps before its end. Takes no lock."""
        if self._operation is not None and not self.reading:
            _abandoned.put(self)

    @guarded
    def give_up(self) -> None:
        """Nobody will read on. An adopted span that is open by now may never end."""
        self._adopted = None
        self._finish(None)

    def __del__(self) -> None:
        if not getattr(self, "_done", True):
            _abandoned.put(self)

    def _finish(self, error: BaseException | None) -> None:
        with self._lock:
            if self._done:
                return
            self._done = True
        operation = self._operation or self._adopt()
        try:
            self._write(operation)
        finally:
            if error is None:
                operation.stop()
            else:
                operation.fail(error)

    def _adopt(self) -> MemoryOperation:
        """An operation on the adopted span; below it, when it has ended or has one by now."""
        span = self._adopted
        if span is None or not openai_spans.is_free(span):
            return self._start()
        return adopt_operation(
            span,
            semconv.STEP_ANSWER,
            system=_SYSTEM,
            system_version=self._endpoint.library_version,
            conversation_id=self._conversation(),
            capture=semconv.CAPTURE_OBSERVED,
            context=self._context,
            library_graph_id=self._graph(),
        )

    def _start(self) -> MemoryOperation:
        attributes: dict[str, AttributeValue] = {
            semconv.GEN_AI_PROVIDER_NAME: self._endpoint.provider
        }
        if self._prompt.model:
            attributes[semconv.GEN_AI_REQUEST_MODEL] = self._prompt.model
        return start_operation(
            semconv.STEP_ANSWER,
            system=_SYSTEM,
            system_version=self._endpoint.library_version,
            conversation_id=self._conversation(),
            capture=semconv.CAPTURE_OBSERVED,
            attributes=attributes,
            context=self._context,
            library_graph_id=self._graph(),
        )

    def _graph(self) -> str | None:
        graphs = self._lineage.graphs
        return scope.current(self._context).graph_id or next(
            iter((*graphs, self._lineage.query_graph)), None
        )

    def _conversation(self) -> str | None:
        enclosing = scope.current(self._context).conversation_id
        return None if enclosing else self._prompt.conversation or None

    def _write(self, operation: MemoryOperation) -> None:
        lineage = self._lineage
        graph_id = operation.graph_id
        for put, given in (
            (operation.inputs, lineage.inputs),
            (operation.shown, lineage.shown),
            (operation.inferred, lineage.inferred),
            (operation.reads, [graph for graph in lineage.graphs if graph != graph_id]),
        ):
            if given:
                put(*given)
        for variable, role in lineage.roles:
            operation.role(variable, role)
        for ref, origin in lineage.inferred.items():
            if origin is not None:
                operation.source(ref, *origin)
        self._write_reply(operation)

    def _write_reply(self, operation: MemoryOperation) -> None:
        reply = self._reply
        outputs: list[Variable] = list(map(references.query, reply.queries))
        answers: list[Variable] = []
        cut: list[Variable] = []
        for _, choice in sorted(reply.choices.items()):
            outputs += _tool_outputs(choice)
            if not choice.calls and choice.text.strip():
                answers.append(references.answer(choice.text))
                if choice.clipped or not choice.finished:
                    cut.append(answers[-1])
        if outputs or answers:
            operation.outputs(*outputs, *answers)
        if cut:
            operation.cut(*cut)
        if reply.id:
            operation.attribute(semconv.GEN_AI_RESPONSE_ID, reply.id)
            _answers.set(reply.id, tuple(answer.ref for answer in answers))
        if reply.model:
            operation.attribute(semconv.GEN_AI_RESPONSE_MODEL, reply.model)


def _tool_outputs(choice: Choice) -> list[Variable]:
    """What the model authored for memory tools: queries to search for, facts to save."""
    outputs: list[Variable] = []
    for call in choice.tool_calls:
        purpose = openai_tools.purpose(call.name)
        if purpose is not None:
            make = references.query if purpose is Purpose.READ else references.fact
            outputs += map(make, openai_tools.texts(call, purpose))
    return outputs
