"""Running the two agent programs, uninstrumented scripts, under ``opentelemetry-instrument``."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from memtrace_collector.demo.cases import CASES, EXCERPT, HANDBOOK
from memtrace_collector.demo.embeddings import DIMENSIONS
from memtrace_collector.demo.model import MODEL_NAME
from memtrace_collector.demo.processes import run_to_end
from memtrace_collector.errors import WrongUseError

WRITER, READER = "memtrace-demo-writer", "memtrace-demo-reader"
"""The services' names."""
_SCRIPTS = Path(__file__).parent / "agent"
_NEEDED = ("mem0", "qdrant_client", "openai", "opentelemetry.distro")
_NOT_INHERITED = ("OTEL_", "MEMTRACE_", "OPENROUTER_", "OPENAI_API_BASE")


@dataclass(frozen=True, slots=True)
class Reply:
    """What the reader answered to one question."""

    case_id: str
    text: str
    response_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """The agent's two programs over one memory, kept in ``folder``.

    ``stand_in`` is the base URL of the stand-in model, which always makes the embeddings, and
    answers as well unless ``model`` names a real one.
    """

    folder: Path
    otlp_http: str
    stand_in: str
    model: str | None = None

    def write(self, progress: Callable[[str], None]) -> None:
        """Run the writer: the handbook and the dialogue go into the memory."""
        self._memory_config().write_text(json.dumps(self._mem0()), "utf-8")
        data = ["--dialogue", str(EXCERPT), "--handbook", str(HANDBOOK)]
        self._run("writer", WRITER, data, progress)

    def read(self, progress: Callable[[str], None]) -> list[Reply]:
        """Run the reader: every question is asked once."""
        replies = self.folder / "replies.json"
        data = [
            "--questions", str(CASES),
            "--user", json.loads(EXCERPT.read_text("utf-8"))["user_id"],
            "--handbook-agent", json.loads(HANDBOOK.read_text("utf-8"))["agent_id"],
            "--replies", str(replies),
            "--model", self.model or MODEL_NAME,
        ]  # fmt: skip
        self._run("reader", READER, data, progress)
        return [
            Reply(item["id"], item["reply"], item["response_id"])
            for item in json.loads(replies.read_text("utf-8"))
        ]

    def _run(
        self, script: str, service: str, data: list[str], progress: Callable[[str], None]
    ) -> None:
        instrument = Path(sys.executable).with_name("opentelemetry-instrument")
        command = [
            str(instrument), sys.executable, str(_SCRIPTS / f"{script}.py"),
            "--memory", str(self._memory_config()), *data,
        ]  # fmt: skip
        log = self.folder / f"{script}.log"
        run_to_end(f"the {script}", command, self._environment(service), log, progress)

    def _memory_config(self) -> Path:
        return self.folder / "mem0.json"

    def _mem0(self) -> dict[str, object]:
        return {
            "llm": {
                "provider": "openai",
                "config": {"model": self.model or MODEL_NAME, "temperature": 0.0},
            },
            "embedder": {
                "provider": "openai",
                "config": {
                    "model": MODEL_NAME,
                    "embedding_dims": DIMENSIONS,
                    "openai_base_url": self.stand_in,
                    "api_key": "none",
                },
            },
            "vector_store": {
                "provider": "qdrant",
                "config": {
                    "path": str(self.folder / "qdrant"),
                    "on_disk": True,
                    "collection_name": "agent",
                    "embedding_model_dims": DIMENSIONS,
                },
            },
            "history_db_path": str(self.folder / "history.db"),
        }

    def _environment(self, service: str) -> dict[str, str]:
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(_NOT_INHERITED)
        }
        model = {} if self.model else {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": self.stand_in}
        return {
            **inherited,
            **model,
            **_TELEMETRY,
            "OTEL_SERVICE_NAME": service,
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.otlp_http,
            "MEM0_DIR": str(self.folder / "mem0"),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "NO_PROXY": _with_loopback(os.environ),
            "no_proxy": _with_loopback(os.environ),
        }


_TELEMETRY = {
    "OTEL_TRACES_EXPORTER": "otlp",
    "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
    "OTEL_METRICS_EXPORTER": "none",
    "OTEL_LOGS_EXPORTER": "none",
    "OTEL_TRACES_SAMPLER": "memtrace",
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
    "MEM0_TELEMETRY": "False",
}


def check_installed() -> None:
    """Raise WrongUseError when what the agent's programs import is not installed."""
    missing = [name for name in _NEEDED if not _is_installed(name)]
    if missing:
        raise WrongUseError(
            f'the demo needs its extra: pip install "memtrace-otel[demo]" (missing: {missing[0]})'
        )


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _with_loopback(environment: Mapping[str, str]) -> str:
    known = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    return ",".join(part for part in (known, "127.0.0.1", "localhost") if part)
