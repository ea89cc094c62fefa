"""The page's own files: read once, answered from memory, asked for again only when they changed."""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

STATIC = Path(__file__).parent / "static"
STATIC_PATH = "/static"
INDEX = "index.html"
STYLES = "page.css"
"""Answered with the styles of all views behind it: one request that holds up drawing, not ten."""


class _File(NamedTuple):
    body: bytes
    media_type: str
    etag: str


class Pages:
    """Answers for the files of ``folder``; they hold no data, and who asks needs no token."""

    def __init__(self, folder: Path = STATIC) -> None:
        self._files = dict(_read(folder))

    async def index(self, request: Request) -> Response:
        return _answer(request, self._files[INDEX])

    async def file(self, request: Request) -> Response:
        """The file that the path parameter ``path`` names.

        Raises:
            HTTPException: 404, there is none.
        """
        found = self._files.get(request.path_params["path"])
        if found is None:
            raise HTTPException(404)
        return _answer(request, found)


def _answer(request: Request, file: _File) -> Response:
    headers = {"etag": file.etag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == file.etag:
        return Response(status_code=304, headers=headers)
    return Response(file.body, media_type=file.media_type, headers=headers)


def _read(folder: Path) -> Iterator[tuple[str, _File]]:
    styles = sorted(folder.rglob("*.css"), key=lambda path: (path.name != STYLES, path.name))
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            name = path.relative_to(folder).as_posix()
            parts = styles if name == STYLES else [path]
            body = b"\n".join(part.read_bytes() for part in parts)
            kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            digest = hashlib.sha256(body).hexdigest()[:32]
            yield name, _File(body, kind, f'"{digest}"')
