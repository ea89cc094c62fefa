"""Sentence embeddings for wordings that the rules leave open, over real HTTP."""

from __future__ import annotations

import json
import re
import sys
import types
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memtrace_collector.attribution.attribute import attribute
from memtrace_collector.attribution.model.cache import Cache
from memtrace_collector.attribution.model.embeddings import (
    BATCH,
    EndpointEmbedder,
    KeptEmbedder,
    LocalEmbedder,
)
from memtrace_collector.attribution.model.similar_judge import Similar
from memtrace_collector.attribution.model.similarity import EmbeddingError, Vector, verdict_of
from memtrace_collector.cli import cli
from memtrace_collector.errors import WrongUseError
from memtrace_collector.telemetry.metrics import NULL_METRICS
from tests.contract.held_out.story import Story
from tests.instrumentors.openai_stub import OpenAIStub
from tests.memtrace_collector.attribution.model.cases import (
    DIET,
    EXPECTED,
    JOB,
    QUESTION,
    SOURCE,
    case_of,
)

SAME_MEANING = {"mother": "parents", "father": "parents", "live": "move", "near": "closer"}


class ByMeaning:
    """Vectors of words in which some words mean the same."""

    def embed(self, texts: list[str]) -> list[Vector]:
        return [self._vector(each) for each in texts]

    def _vector(self, said: str) -> Vector:
        found = [0.0] * 512
        for word in re.findall(r"\w+", said.lower()):
            found[sum(map(ord, SAME_MEANING.get(word, word))) % 512] = 1.0
        return found


class Broken:
    def embed(self, texts: list[str]) -> list[Vector]:
        raise EmbeddingError(f"nobody there for {len(texts)} texts")


def story_of(record: str) -> Story:
    """The doubtful record was dropped from the search, among some small talk."""
    story = Story("ada").day(1)
    learned = story.learn(SOURCE, record)
    for said in (
        "The dentist is on Tuesday.",
        "Milo likes carrots.",
        "My bike is red.",
        "It rained.",
    ):
        other = story.learn(said)
    story.ask(QUESTION, 20)
    story.retrieve(other.record, dropped=[[learned.record, 0.4, "limit", 2]])
    story.answer("I don't know.", story.assemble(other.record))
    story.flag(EXPECTED, learned.message)
    return story


@pytest.mark.parametrize(("record", "found"), [(DIET, "ranked_out"), (JOB, "distortion")])
def test_a_record_as_near_to_the_need_as_the_evidence_carries_it(record: str, found: str) -> None:
    case = case_of(story_of(record))
    assert attribute(case).error_type == "insufficient_evidence"
    verdict = Similar(ByMeaning(), NULL_METRICS)(case)
    if found == "ranked_out":
        assert verdict.error_type == "ranked_out"
        assert verdict.method == "rules"
        assert "text" in verdict.basis
    else:
        assert verdict.error_type in (found, "insufficient_evidence")


def test_without_vectors_the_rules_stand() -> None:
    case = case_of(story_of(DIET))
    assert Similar(Broken(), NULL_METRICS)(case) == attribute(case)


@pytest.mark.parametrize(
    ("value", "answer"), [(0.9, True), (0.8, True), (0.5, None), (0.25, False), (0.1, False)]
)
def test_the_scale_is_the_case_itself(value: float, answer: bool | None) -> None:
    assert verdict_of(value, evidence=0.9, elsewhere=0.2) is answer


def test_evidence_that_is_no_nearer_than_small_talk_gives_no_scale() -> None:
    assert verdict_of(1.0, evidence=0.2, elsewhere=0.3) is None


def test_texts_go_out_in_batches_and_once(tmp_path: Path) -> None:
    texts = [f"text {n}" for n in range(BATCH + 5)]
    with OpenAIStub() as stub, closing(Cache(tmp_path / "c.db")) as cache:
        options: dict[str, Any] = {"key": "", "timeout_seconds": 5.0, "retries": 0}
        with closing(EndpointEmbedder("e", base_url=stub.base_url, **options)) as endpoint:
            embedder = KeptEmbedder(endpoint, "e", cache)
            first = embedder.embed([*texts, texts[0]])
            assert [len(each["input"]) for each in stub.embedding_requests] == [BATCH, 5]
            again = embedder.embed(texts)
        assert len(stub.embedding_requests) == 2
    assert len(first) == len(texts) + 1
    assert first[0] == first[-1]
    assert again[3] == pytest.approx(first[3], abs=1e-6)


def test_an_endpoint_that_does_not_answer_is_said() -> None:
    with OpenAIStub() as stub:
        gone = stub.base_url
    embedder = EndpointEmbedder("e", base_url=gone, key="", timeout_seconds=1.0, retries=0)
    with closing(embedder), pytest.raises(EmbeddingError):
        embedder.embed(["a"])


def test_a_local_model_needs_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(WrongUseError, match="pip install"):
        LocalEmbedder("/no/such/folder")


def test_a_local_model_is_read_from_the_folder_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Model:
        def __init__(self, path: str, *, local_files_only: bool) -> None:
            assert (path, local_files_only) == ("/models/small", True)

        def encode(self, texts: list[str]) -> list[list[float]]:
            return [[len(each)] for each in texts]

    library = types.ModuleType("sentence_transformers")
    monkeypatch.setattr(library, "SentenceTransformer", Model, raising=False)
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)
    assert LocalEmbedder("/models/small").embed(["a", "bc"]) == [[1.0], [2.0]]


def test_attribute_compares_by_the_model_named(tmp_path: Path, monkeypatch: Any) -> None:
    """By the command, with the rules: the endpoint is asked for vectors only."""
    monkeypatch.setenv("MEMTRACE_STORE", str(tmp_path / "store"))
    file = tmp_path / "case.json"
    file.write_text(json.dumps(story_of(DIET).otlp()))
    run = CliRunner().invoke
    assert run(cli, ["import", str(file)]).exit_code == 0
    with OpenAIStub() as stub:
        monkeypatch.setenv("MEMTRACE_MODEL_BASE_URL", stub.base_url)
        found = run(cli, ["attribute", "--embeddings-model", "e", "--format", "json"])
        assert found.exit_code == 0, found.output
        assert stub.embedding_requests
        assert not stub.chat_requests
    (verdict,) = json.loads(found.stdout)
    assert verdict["method"] == "rules"
