"""Judging over HTTP: conflicts are told apart, and no other page can judge in a reader's name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from memtrace_collector.api.client import Client
from memtrace_collector.attribution.judging.meanings import STAGE_MEANINGS, TYPE_MEANINGS
from memtrace_collector.attribution.judging.said import Said
from memtrace_collector.attribution.verdict import STAGE_OF, STAGES
from memtrace_collector.errors import ConflictError, NotFoundError, WrongUseError
from tests.memtrace_collector.api import test_server

ANSWER = test_server.ANSWER
api, url = test_server.api, test_server.url


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    asking = Client(url)
    asking.attribute("rules", "", True)
    yield asking
    asking.close()


def test_a_judgement_over_http_is_the_services_own(client: Client) -> None:
    confirmed = client.judge(ANSWER, Said(action="confirm", revision=1, by="anna"))
    assert (confirmed["revision"], confirmed["judgement"]["by"]) == (2, "anna")
    assert client.verdicts("", "", "") == [confirmed]
    assert client.judge(ANSWER, Said(action="confirm", revision=1, by="anna")) == confirmed


def test_errors_keep_their_kind_and_a_conflict_is_a_409(client: Client, url: str) -> None:
    client.judge(ANSWER, Said(action="confirm", by="anna"))
    with pytest.raises(ConflictError, match="confirmed by anna"):
        client.judge(ANSWER, Said(action="confirm", revision=1, by="bob"))
    with pytest.raises(WrongUseError, match="name the decisive one"):
        client.judge(ANSWER, Said(action="correct", type="omission"))
    with pytest.raises(NotFoundError, match="no answer is known"):
        client.judge("0" * 32, Said(action="confirm"))
    body = {"answer": ANSWER, "action": "confirm", "revision": 1, "by": "bob"}
    assert httpx.post(f"{url}/api/v1/judge", json=body).status_code == 409


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_what_a_form_of_another_page_can_send_judges_nothing(
    client: Client, url: str, content_type: str
) -> None:
    body = f'{{"answer": "{ANSWER}", "action": "confirm"}}'
    headers = {"content-type": content_type, "origin": "https://elsewhere.example"}
    response = httpx.post(f"{url}/api/v1/judge", content=body, headers=headers)
    assert response.status_code == 400 and "access-control-allow-origin" not in response.headers
    assert [each["revision"] for each in client.verdicts("", "", "")] == [1]


@pytest.mark.parametrize("body", [{}, {"answer": ANSWER}, {"answer": ANSWER, "action": 1}])
def test_a_body_that_is_no_judgement_is_refused(client: Client, url: str, body: Any) -> None:
    response = httpx.post(f"{url}/api/v1/judge", json=body)
    assert response.status_code == 400 and response.json()["error"] == "WrongUseError"


def test_the_page_is_told_the_types_with_their_meaning_and_the_operations(client: Client) -> None:
    (verdict,) = client.verdicts("", "", "")
    shown = client.view("judging", {"id": verdict["id"]})
    assert shown["left_out"] == 0
    types = {each["type"]: each for stage in shown["stages"] for each in stage["types"]}
    assert set(types) == set(STAGE_OF) and all(
        each["means"].endswith(".") for each in types.values()
    )
    needs = {name: types[name]["decisive"] for name in ("omission", "never_told", "unrelated")}
    assert needs == {"omission": "some", "never_told": "none", "unrelated": "maybe"}
    on_path = {each["span"]["spanId"] for each in shown["operations"] if each["is_on_path"]}
    hops = {hop["span"]["spanId"] for hop in verdict["path"]}
    assert on_path == hops, "and what is made of stages is not among them"
    assert [each["time"] for each in shown["operations"]] == sorted(
        each["time"] for each in shown["operations"]
    )
    with pytest.raises(NotFoundError, match="no verdict"):
        client.view("judging", {"id": "nobody"})


def test_every_type_has_a_meaning() -> None:
    assert set(TYPE_MEANINGS) == set(STAGE_OF) and set(STAGE_MEANINGS) == set(STAGES)


@pytest.mark.parametrize("note", ["\\ud800", "\\ud800 and more", "\udcff"])
def test_a_note_that_is_no_text_is_refused_and_changes_nothing(
    client: Client, url: str, note: str
) -> None:
    body = f'{{"answer": "{ANSWER}", "action": "confirm", "note": "{note}"}}'
    response = httpx.post(
        f"{url}/api/v1/judge",
        content=body.encode("utf-8", "surrogateescape"),
        headers={"content-type": "application/json"},
    )
    assert (response.status_code, response.json()["message"]) == (400, "the body is not JSON")
    assert [each["revision"] for each in client.verdicts("", "", "")] == [1]
