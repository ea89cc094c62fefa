"""The program that remembers: feeds dialogue sessions and a handbook into the agent's memory.

An ordinary mem0 script: it knows nothing of tracing. Run by the demo as
``opentelemetry-instrument python writer.py …``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from mem0 import Memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory", type=Path, required=True, help="mem0 configuration, JSON")
    parser.add_argument("--dialogue", type=Path, required=True)
    parser.add_argument("--handbook", type=Path, required=True)
    options = parser.parse_args()
    memory = Memory.from_config(json.loads(options.memory.read_text("utf-8")))

    handbook = json.loads(options.handbook.read_text("utf-8"))
    for record in handbook["records"]:
        page = {"role": "user", "content": record["text"], "id": record["id"]}
        memory.add([page], agent_id=handbook["agent_id"], infer=False)
        print(f"handbook {record['id']}", flush=True)

    dialogue = json.loads(options.dialogue.read_text("utf-8"))
    for session in dialogue["sessions"]:
        day = session["date"].split()[0]
        result = memory.add(
            with_date(session, day),
            user_id=dialogue["user_id"],
            metadata={"timestamp": f"{day}T12:00:00+00:00"},
        )
        print(f"session {session['session']} {len(result['results'])} changes", flush=True)
    memory.close()


def with_date(session: dict[str, Any], day: str) -> list[dict[str, str]]:
    """The session's messages, led by a line that tells the model which day it is."""
    stamp = f"{day}T12:00:00+00:00"
    opening = {
        "role": "system",
        "content": f"The current date is {session['date']}.",
        "id": f"{session['session']}/date",
    }
    return [{**message, "timestamp": stamp} for message in [opening, *session["messages"]]]


if __name__ == "__main__":
    main()
