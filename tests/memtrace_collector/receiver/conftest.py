from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.receivers import Receiver, running


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Receiver]]:
    with ExitStack() as stack:
        yield lambda **limits: stack.enter_context(running(tmp_path / "log", **limits))


@pytest.fixture
def receiver(start: Callable[..., Receiver]) -> Receiver:
    return start()
