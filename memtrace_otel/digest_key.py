"""Where the digest key comes from (DESIGN section 3.1). All I/O of the key is here."""

from __future__ import annotations

import os
import secrets
import tempfile
from pathlib import Path

from memtrace_otel import semconv
from memtrace_otel.config import Config
from memtrace_otel.guard import logger
from memtrace_otel.variables import PLAIN, DigestKey

KEY_FILE = Path("memtrace-otel") / "digest.key"
_KEY_BYTES = 32


def load(config: Config) -> DigestKey:
    """The key named by ``config``: given, else from a file, else random for this process.

    A file that was named is only read; the default file is made on first use, and processes
    that start at the same moment all get the key of the one that came first.
    """
    if config.digest_key == semconv.KEY_PLAIN:
        return PLAIN
    if config.digest_key:
        return _key(config.digest_key)
    try:
        if config.digest_key_file:
            return _key(_read(Path(config.digest_key_file)))
        return _key(_read_or_create(config.state_folder.expanduser() / KEY_FILE))
    except (OSError, ValueError, RuntimeError) as error:
        logger.warning(
            "memtrace_otel: no digest key file (%s); using a random key, so references of this "
            "process join with those of others by id only",
            error,
        )
        return _key(_random())


def _key(text: str) -> DigestKey:
    return DigestKey(text.encode("utf-8", "surrogateescape"))


def _random() -> str:
    return secrets.token_hex(_KEY_BYTES)


def _read(path: Path) -> str:
    text = path.read_text("utf-8", "surrogateescape").strip()
    if not text:
        raise ValueError(f"{path} is empty")
    return text


def _read_or_create(path: Path) -> str:
    try:
        return _read(path)
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A complete file is linked into place, so that no reader ever sees half a key and the
    # second of two starters finds the first one's file.
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".digest-")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(_random() + "\n")
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(temporary)
    return _read(path)
