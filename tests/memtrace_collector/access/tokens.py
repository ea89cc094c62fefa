"""Files of tokens for tests."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

ACME, GLOBEX, EXPIRED, SCRAPER = (
    f"canary-secret-of-{name}-0123456789" for name in ("acme", "globex", "expired", "scraper")
)


def digest(token: str) -> str:
    return "sha256:" + hashlib.sha256(token.encode()).hexdigest()


def tokens_file(folder: Path, **more: Any) -> Path:
    """Two tenants, a token that has expired and one for metrics only; ``more``: other sections."""
    tokens = {
        digest(ACME): "acme",
        GLOBEX: {"tenant": "globex", "expires": "2999-01-01T00:00:00Z"},
        digest(EXPIRED): {"tenant": "acme", "expires": "2020-01-01"},
        digest(SCRAPER): {"scope": "metrics"},
    }
    return written(folder, {"tokens": tokens, **more})


def written(folder: Path, document: Any) -> Path:
    path = folder / "tokens.json"
    path.write_text(json.dumps(document))
    path.chmod(0o600)
    return path


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}
