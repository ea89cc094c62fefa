"""mem0 and openai instrumented together, as a plain agent uses them."""

from __future__ import annotations

from pathlib import Path

import openai
import pytest

from memtrace_otel.instrumentors.openai import OpenAIInstrumentor
from tests.instrumentors import mem0_kit as kit

MEMORY = "Moved to Lisbon in May"
QUESTION = "Where does Ana live now?"


@pytest.mark.parametrize("kind", kit.KINDS)
def test_the_answer_has_the_memories_of_its_prompt_and_mem0s_own_calls_make_none(
    tmp_path: Path, kind: str
) -> None:
    if kit.MAJOR == 1:
        event = {"id": "0", "text": MEMORY, "event": "ADD"}
        replies: tuple[object, ...] = ({"facts": [MEMORY]}, {"memory": [event]})
    else:
        replies = ({"memory": [{"id": "0", "text": MEMORY}]},)
    OpenAIInstrumentor().instrument()
    try:
        with kit.world(tmp_path, kind) as world:
            world.add([{"role": "user", "content": "I moved to Lisbon in May"}], *replies)
            assert "answer" not in world.spans.steps()
            world.spans.clear()
            found = world.search(QUESTION)
            prompt = "Memories:\n" + "\n".join(f"- {item['memory']}" for item in found)
            world.stub.reply("In Lisbon.")
            with openai.OpenAI(base_url=world.stub.base_url, api_key="k") as client:
                client.chat.completions.create(
                    model="m",
                    messages=[
                        {"role": "system", "content": prompt},
                        {"role": "user", "content": QUESTION},
                    ],
                )
            answer, retrieve = world.spans.one("answer"), world.spans.one("retrieve")
    finally:
        OpenAIInstrumentor().uninstrument()
    delivered = kit.lineage(retrieve)["delivered"]
    [query] = kit.lineage(retrieve)["inputs"]
    lineage = kit.lineage(answer)
    assert len(delivered) == 1
    assert lineage["inputs"] == [query, *delivered]
    assert lineage["from"] == {delivered[0]: f"{retrieve['trace_id']}-{retrieve['span_id']}"}
    assert answer["attributes"]["memtrace.graph.id"] == kit.GRAPH
    assert retrieve["span_id"] in {link["span_id"] for link in answer["links"]}
