"""The questions asked over HTTP, of the process that owns the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import httpx
import msgspec

from memtrace_collector import errors
from memtrace_collector.access.tls import client_context
from memtrace_collector.api.questions import Json, Replaying
from memtrace_collector.attribution.judging.said import Said

API_PREFIX = "/api/v1"
_TIMEOUT = httpx.Timeout(10.0, read=600.0)
"""Seconds. A pass of attribution over a large store answers late, not never."""
_WHILE_REPLAYING = httpx.Timeout(10.0, read=None)
"""Each call of a replay has a time-out of its own, and their number is limited."""
_WHILE_ERASING = httpx.Timeout(10.0, read=None)
"""The whole log is read, and every file is searched."""

_ERRORS: dict[str, type[errors.MemtraceError]] = {
    kind.__name__: kind
    for kind in (
        errors.WrongUseError,
        errors.ConfigError,
        errors.NotFoundError,
        errors.ConflictError,
        errors.NotInThisVersionError,
        errors.UnreachableError,
        errors.StoreInUseError,
        errors.DamagedError,
    )
}


class Client:
    """Implements :class:`~memtrace_collector.api.questions.Questions` against ``base_url``."""

    def __init__(self, base_url: str, token: str = "", certificate: str = "") -> None:
        """``certificate``: PEM of the server's own, which alone is trusted; empty: any that a
        known authority has signed."""
        self._base_url = base_url
        self._http = httpx.Client(
            base_url=base_url + API_PREFIX,
            timeout=_TIMEOUT,
            trust_env=False,
            headers={"authorization": f"Bearer {token}"} if token else {},
            verify=client_context(certificate) if certificate else True,
        )

    def close(self) -> None:
        self._http.close()

    def graphs(self) -> list[Json]:
        return self._list("/graphs")

    def graph(self, graph_id: str, answer: str, output_format: str) -> str:
        parameters = {"graph": graph_id, "answer": answer, "format": output_format}
        return self._send("GET", "/graph", params=parameters).text

    def graph_hash(self, graph_id: str) -> str:
        return str(self._object("/hash", graph=graph_id)["hash"])

    def ancestry(self, answer: str) -> Json:
        return self._object("/ancestry", answer=answer)

    def history(self, graph_id: str, record: str) -> Json:
        return self._object("/history", graph=graph_id, record=record)

    def flag(self, answer: str, expected: str | None, evidence: Sequence[str], reason: str) -> Json:
        body = {
            "answer": answer, "expected": expected, "evidence": list(evidence), "reason": reason
        }  # fmt: skip
        return _as_object(self._send("POST", "/flag", json=body))

    def attribute(
        self, method: str, graph_id: str, evidence: bool, replay: Replaying | None = None
    ) -> Json:
        body: Json = {"method": method, "graph": graph_id, "evidence": evidence}
        if replay is None:
            return _as_object(self._send("POST", "/attribute", json=body))
        body["replay"] = replay._asdict()
        return _as_object(self._send("POST", "/attribute", json=body, timeout=_WHILE_REPLAYING))

    def set_aside(self, graph_id: str) -> list[Json]:
        return self._list("/set-aside", graph=graph_id)

    def verdicts(
        self, graph_id: str, stage: str, error_type: str, history: bool = False
    ) -> list[Json]:
        asked = "true" if history else ""
        return self._list("/verdicts", graph=graph_id, stage=stage, type=error_type, history=asked)

    def judge(self, answer: str, said: Said) -> Json:
        body = {"answer": answer, **msgspec.to_builtins(said)}
        return _as_object(self._send("POST", "/judge", json=body))

    def undelivered(self) -> list[Json]:
        return self._list("/undelivered")

    def redeliver(self) -> Json:
        return _as_object(self._send("POST", "/redeliver", json={}))

    def why(self, answer: str, about: str) -> Json:
        return self._object("/why", answer=answer, about=about)

    def impact(self, target: str) -> Json:
        return self._object("/impact", target=target)

    def case(self, answer: str, redact: bool) -> Json:
        return self._object("/case", answer=answer, redact="true" if redact else "")

    def invariants(self, graph_id: str) -> list[Json]:
        return self._list("/invariants", graph=graph_id)

    def explore(self, question: str, arguments: Mapping[str, object], text_chars: int) -> Json:
        body = {"question": question, "arguments": dict(arguments), "text_chars": text_chars}
        return _as_object(self._send("POST", "/explore", json=body))

    def view(self, name: str, parameters: Mapping[str, str]) -> Json:
        return self._object(f"/view/{name}", **parameters)

    def append(self, body: bytes, signal: str) -> None:
        headers = {"content-type": "application/x-protobuf"}
        self._send("POST", "/append", params={"signal": signal}, content=body, headers=headers)

    def settle(self) -> Json:
        return _as_object(self._send("POST", "/settle", json={}))

    def erase(self, graph_id: str) -> Json:
        named = {"graph": graph_id} if graph_id else {"everything": True}
        return _as_object(self._send("POST", "/erase", json=named, timeout=_WHILE_ERASING))

    def _object(self, path: str, **parameters: str) -> Json:
        return _as_object(self._send("GET", path, params=parameters))

    def _list(self, path: str, **parameters: str) -> list[Json]:
        return _as_list(self._send("GET", path, params=parameters))

    def _send(self, method: str, path: str, **request: Any) -> httpx.Response:
        try:
            response = self._http.request(method, path, **request)
        except httpx.TransportError as error:
            raise errors.UnreachableError(
                f"the process that owns the store does not answer at {self._base_url}: {error}"
            ) from None
        if response.is_success:
            return response
        raise _error(response)


def _error(response: httpx.Response) -> errors.MemtraceError:
    try:
        told = response.json()
        return _ERRORS[told["error"]](told["message"])
    except (ValueError, KeyError, TypeError):
        return errors.UnreachableError(
            f"{response.request.url} answered {response.status_code} {response.reason_phrase}"
        )


def _as_object(response: httpx.Response) -> Json:
    value = response.json()
    if not isinstance(value, dict):
        raise errors.UnreachableError(f"{response.request.url} did not answer with an object")
    return value


def _as_list(response: httpx.Response) -> list[Json]:
    value = response.json()
    if not isinstance(value, list):
        raise errors.UnreachableError(f"{response.request.url} did not answer with a list")
    return value
