"""An agent on a LangGraph store, whose model decides by tool calls what to save and to search.

python -m memtrace_collector.bench.pipelines.langgraph --plan plan.json --outcomes out.jsonl
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolUnionParam

import memtrace_otel as memtrace
from memtrace_collector.bench.dialogue import Message
from memtrace_collector.bench.faults import LANGGRAPH
from memtrace_collector.bench.pipelines import runner, turn
from memtrace_collector.bench.pipelines.anew import anew
from memtrace_collector.bench.pipelines.base import INSTRUCTIONS, Bench, Ran, owner_of, told
from memtrace_collector.bench.pipelines.langgraph_finding import Finding
from memtrace_collector.bench.pipelines.langgraph_records import SYSTEM, Records
from memtrace_collector.bench.pipelines.langgraph_writing import Writing
from memtrace_collector.bench.pipelines.neighbour import graph_of, neighbour_messages, neighbour_of
from memtrace_collector.bench.pipelines.surface import Surface
from memtrace_collector.bench.pipelines.turn import Item
from memtrace_collector.bench.pipelines.vectors import StandInEmbeddings
from memtrace_collector.bench.planned import PlannedCase, Planting
from memtrace_collector.bench.plantings import Plantings
from memtrace_collector.bench.stand_in.model import MODEL_NAME, StandIn
from memtrace_otel import Variable

_HEADING = "Found:"
_EXTRACTED = {"background": True}
_DECIDED = {"background": True, "decides": True}
_BY_TOOLS = {"background": False}
_PLAIN = {"background": True, "decides": False, "blind_puts": False}
NEEDS = {
    **dict.fromkeys(
        ("left_out", "value_changed", "negated", "owner_swapped", "made_up"), _EXTRACTED
    ),
    **dict.fromkeys(("did_not_save", "saved_wrongly"), _BY_TOOLS),
    **dict.fromkeys(("forget_ignored", "chose_nothing"), _DECIDED),
    "written_over": {"blind_puts": True, "decides": False},
    "write_failed": {"blind_puts": False},
    "expired": {"blind_puts": False, "expires": True},
    "race": _PLAIN,
    "stale_index": _PLAIN,
}
_SEARCH: ChatCompletionToolUnionParam = {
    "type": "function",
    "function": {
        "name": "search_memory",
        "description": "Search what is remembered about the people in this conversation.",
        "parameters": {
            "type": "object",
            "properties": {"query": {"type": "string"}},
            "required": ["query"],
        },
    },
}


class _Agent:
    """One agent that serves several owners."""

    def __init__(self, bench: Bench, model: StandIn, chosen: Surface, plantings: Plantings) -> None:
        self._bench = bench
        self._model = model
        self._surface = chosen
        self._plantings = plantings
        self._embeddings = StandInEmbeddings(model)
        self._records: dict[str, Records] = {}
        self._writing: dict[str, Writing] = {}

    def run(self, case: PlannedCase) -> Ran:
        for message in neighbour_messages(case):
            self._listen(neighbour_of(case), message, case)
        for message in told(case, self._plantings):
            self._listen(owner_of(case, message, self._plantings), message, case)
        graph_id = graph_of(case.owner)
        with self._bench.turn("nightly"), memtrace.graph(graph_id):
            self._of(case.owner).clean_up()
        with self._bench.turn("question"), memtrace.graph(graph_id):
            ran = self._answer(case, graph_id)
        self._read_again(case, graph_id)
        return ran

    def _of(self, owner: str) -> Writing:
        if owner not in self._writing:
            self._records[owner] = Records(self._model, self._embeddings, owner)
            self._writing[owner] = Writing(
                self._bench, self._model, self._surface, self._records[owner]
            )
        return self._writing[owner]

    def _listen(self, owner: str, message: Message, case: PlannedCase) -> None:
        """One turn of the conversation."""
        writing = self._of(owner)
        with self._bench.turn("listen"), memtrace.graph(graph_of(owner)):
            variable = memtrace.message(message.text, id=message.id)
            with memtrace.operation("ingest", system=SYSTEM) as op:
                op.outputs(variable)
                op.time(variable, message.said_at)
                op.role(variable, message.role)
                misfiled = self._plantings.fires("filed_elsewhere", message.id)
                if misfiled and owner != case.owner:
                    self._model.effect(misfiled)
            if owner == neighbour_of(case):
                writing.store([message.text], message, variable)
            else:
                writing.listen(message, variable)

    def _answer(self, case: PlannedCase, graph_id: str) -> Ran:
        """The model is asked with the search tool at hand, and again with what that found."""
        query = turn.ask(self._model, SYSTEM)
        messages: list[ChatCompletionMessageParam] = [
            {"role": "system", "content": INSTRUCTIONS},
            {"role": "user", "content": case.question.text},
        ]
        first = self._bench.client.chat.completions.create(
            model=MODEL_NAME, messages=messages, tools=[_SEARCH], temperature=0.0
        )
        said = first.choices[0].message
        if not said.tool_calls or said.tool_calls[0].type != "function":
            return Ran(said.content or "", self._bench.watch.answer(first.id), graph_id)
        call = said.tool_calls[0]
        wanted = str(json.loads(call.function.arguments)["query"])
        found = self._finding(case).find(wanted)
        shown, cut = self._shown(query, found)
        messages.append(
            {
                "role": "assistant",
                "tool_calls": [
                    {
                        "id": call.id,
                        "type": "function",
                        "function": {
                            "name": call.function.name,
                            "arguments": call.function.arguments,
                        },
                    }
                ],
            }
        )
        messages.append({"role": "tool", "tool_call_id": call.id, "content": shown})
        ran = self._bench.ask(messages, self._plantings, self._model, graph_id)
        for planted in cut:
            self._plantings.took_effect(planted, ran.answer)
        return ran

    def _shown(self, query: Variable, found: Sequence[Item]) -> tuple[str, list[Planting]]:
        """The tool's result, and the faults of an assembly that nobody records."""
        if self._surface.declares_answer:
            prompt = turn.assemble(self._model, SYSTEM, query, found, _HEADING, asks=False)
            return prompt.text, []
        fitted = turn.fitting(self._model, found)
        text = "\n".join([_HEADING, *(item.line() for item in fitted.kept)])
        return text, fitted.loses(self._model)

    def _finding(self, case: PlannedCase) -> Finding:
        wrong = self._plantings.fires("wrong_namespace")
        owner = neighbour_of(case) if wrong else case.owner
        self._of(owner)
        reads = graph_of(owner) if wrong else ""
        return Finding(self._model, self._surface, self._records[owner], reads)

    def _read_again(self, case: PlannedCase, graph_id: str) -> None:
        """A later turn searches again when the searches see the store as it is."""
        records = self._records[case.owner]
        if records.lagging:
            records.catch_up()
            with self._bench.turn("later"), memtrace.graph(graph_id):
                self._finding(case).find(case.question.text)


langgraph = anew(LANGGRAPH, _Agent, NEEDS)


if __name__ == "__main__":
    sys.exit(runner.main(langgraph))
