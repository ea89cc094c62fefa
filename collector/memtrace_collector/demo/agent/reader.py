"""The program that answers: searches the user's memory and the handbook, asks the model.

An ordinary mem0 and openai script: it knows nothing of tracing. Run by the demo as
``opentelemetry-instrument python reader.py …``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from mem0 import Memory
from openai import OpenAI

INSTRUCTIONS = (
    "You answer questions about the user from the memories and the handbook given. "
    "Be brief. When they do not contain the answer, say: I don't know."
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory", type=Path, required=True, help="mem0 configuration, JSON")
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--user", required=True)
    parser.add_argument("--handbook-agent", required=True)
    parser.add_argument("--replies", type=Path, required=True, help="file to write")
    parser.add_argument("--model", required=True)
    options = parser.parse_args()
    memory = Memory.from_config(json.loads(options.memory.read_text("utf-8")))
    client = OpenAI()

    replies = []
    for case in json.loads(options.questions.read_text("utf-8"))["cases"]:
        question = case["question"]
        own = memory.search(question, user_id=options.user, limit=5)["results"]
        shared = memory.search(question, agent_id=options.handbook_agent, limit=2)["results"]
        completion = client.chat.completions.create(
            model=options.model,
            temperature=0.0,
            messages=[
                {"role": "system", "content": INSTRUCTIONS},
                {"role": "user", "content": prompt(question, own, shared)},
            ],
        )
        reply = completion.choices[0].message.content or ""
        replies.append({"id": case["id"], "reply": reply, "response_id": completion.id})
        print(f"question {case['id']}", flush=True)
    memory.close()
    options.replies.write_text(json.dumps(replies, ensure_ascii=False, indent=1), "utf-8")


def prompt(question: str, own: list[dict[str, Any]], shared: list[dict[str, Any]]) -> str:
    lines = ["Memories of the user:"]
    for item in own:
        day = (item.get("metadata") or {}).get("timestamp", "")[:10]
        lines.append(f"- [{day}] {item['memory']}")
    lines += ["", "Handbook:", *(f"- {item['memory']}" for item in shared)]
    return "\n".join([*lines, "", f"Question: {question}"])


if __name__ == "__main__":
    main()
