"""A program that knows nothing of telemetry: remembers one sentence, then looks for it.

Usage: plain_mem0_program.py CONFIG_JSON
"""

from __future__ import annotations

import json
import sys

if "mem0" in sys.modules:
    sys.exit("mem0 was imported before the program did so")

from mem0 import Memory

memory = Memory.from_config(json.loads(sys.argv[1]))
added = memory.add("I moved to Lisbon.", user_id="ana")
found = memory.search("Which city?", user_id="ana")
print(json.dumps({"added": added["results"], "found": found["results"]}))
memory.vector_store.client.close()
