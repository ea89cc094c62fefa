from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from memtrace_collector.access import owner_token
from memtrace_collector.access.authentication import (
    DENIED,
    LOOK_AGAIN_SECONDS,
    Authenticator,
    Caller,
    DeniedError,
    Presented,
)
from memtrace_collector.access.directory import Limits
from tests.memtrace_collector.access.tokens import ACME, EXPIRED, GLOBEX, SCRAPER, tokens_file

CERTIFICATES = {"agent.acme.example": "acme", "agent.globex.example": "globex"}


def with_token(token: str, *names: str) -> Presented:
    return Presented(f"Bearer {token}", names)


@pytest.fixture
def known(tmp_path: Path) -> Authenticator:
    return Authenticator(tokens_file(tmp_path, certificates=CERTIFICATES), "owner key")


def test_a_token_is_its_tenant(known: Authenticator) -> None:
    assert known.authenticate(with_token(ACME)) == Caller("acme")
    assert known.authenticate(with_token(GLOBEX)) == Caller("globex")
    assert known.authenticate(Presented(f"bearer  {ACME} ")) == Caller("acme")


def test_a_browser_sends_the_token_as_a_password(known: Authenticator) -> None:
    for name in ("", "globex"):
        sent = base64.b64encode(f"{name}:{ACME}".encode()).decode()
        assert known.authenticate(Presented(f"Basic {sent}")) == Caller("acme")


@pytest.mark.fault("F32")
@pytest.mark.parametrize(
    "presented",
    [
        Presented(),
        with_token(""),
        with_token("wrong"),
        with_token(ACME[:-1]),
        with_token(EXPIRED),
        with_token("acme"),
        Presented(ACME),
        Presented(f"Digest {ACME}"),
        Presented("Basic !"),
        Presented("Basic //8="),
        Presented("", ("unknown.example",)),
        with_token("wrong", "agent.acme.example"),
        with_token(EXPIRED, "agent.acme.example"),
        with_token(ACME, "agent.globex.example"),
        Presented("", ("agent.acme.example", "agent.globex.example")),
        with_token(owner_token.make("another key", "acme")),
        with_token(owner_token.make("", "acme")),
        with_token(owner_token.make("owner key", "acme").replace(":acme:", ":globex:")),
    ],
)
def test_who_is_not_known_hears_the_same_whatever_was_wrong(
    known: Authenticator, presented: Presented
) -> None:
    with pytest.raises(DeniedError) as denied:
        known.authenticate(presented)
    assert str(denied.value) == DENIED


def test_a_certificate_is_its_tenant_alone_or_with_a_token_of_the_same(
    known: Authenticator,
) -> None:
    assert known.authenticate(Presented("", ("x", "agent.acme.example"))) == Caller("acme")
    assert known.authenticate(with_token(ACME, "agent.acme.example")) == Caller("acme")


def test_a_token_for_metrics_is_nobody_s_tenant(known: Authenticator) -> None:
    assert known.authenticate(with_token(SCRAPER)) == Caller("", reads_metrics=True)


def test_the_owner_of_the_files_acts_for_any_tenant(known: Authenticator) -> None:
    for tenant in ("acme", "default", "with:colon"):
        token = owner_token.make("owner key", tenant)
        assert known.authenticate(with_token(token)) == Caller(tenant, True, True)


def test_without_a_file_everybody_is_the_default_tenant() -> None:
    known = Authenticator()
    for presented in (Presented(), with_token("anything")):
        assert known.authenticate(presented).tenant == "default"
    with pytest.raises(DeniedError):
        known.authenticate(with_token(owner_token.make("", "acme")))


def test_a_changed_file_counts_from_the_next_look(tmp_path: Path) -> None:
    now = 0.0
    path = tokens_file(tmp_path)
    known = Authenticator(path, clock=lambda: now)
    path.write_text(f'{{"tokens": {{"{GLOBEX}": "initech"}}, "limits": {{"a": {{}}}}}}')
    assert known.authenticate(with_token(GLOBEX)) == Caller("globex")
    now += LOOK_AGAIN_SECONDS
    assert known.authenticate(with_token(GLOBEX)) == Caller("initech")
    with pytest.raises(DeniedError):
        known.authenticate(with_token(ACME))
    assert known.limits_of("a") == Limits() and known.tenants() == {"default", "initech"}


def test_a_hang_up_makes_it_look_at_once(tmp_path: Path) -> None:
    path = tokens_file(tmp_path)
    known = Authenticator(path, clock=lambda: 0.0)
    path.write_text(f'{{"tokens": {{"{GLOBEX}": "initech"}}}}')
    known.reload()
    assert known.authenticate(with_token(GLOBEX)) == Caller("initech")


def test_a_file_that_becomes_unusable_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    now = 0.0
    path = tokens_file(tmp_path)
    known = Authenticator(path, clock=lambda: now)
    for spoil in (lambda: path.write_text("{"), lambda: path.chmod(0o644), lambda: os.remove(path)):
        spoil()
        now += LOOK_AGAIN_SECONDS
        assert known.authenticate(with_token(ACME)) == Caller("acme")
    assert len(caplog.records) == 3 and "canary" not in caplog.text


def test_a_token_expires_while_the_server_runs(tmp_path: Path) -> None:
    wall = 1e9
    known = Authenticator(tokens_file(tmp_path), wall=lambda: wall)
    assert known.authenticate(with_token(EXPIRED)) == Caller("acme")
    wall = 2e9
    with pytest.raises(DeniedError):
        known.authenticate(with_token(EXPIRED))


def test_no_token_is_kept_where_it_could_be_shown(known: Authenticator) -> None:
    assert "canary" not in repr(vars(known)) and "owner" not in repr(known)
