"""The image's build steps, run in a plain folder: what comes out works, alone."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import components
from tests.demo_run import ROOT

TEXT = (ROOT / "collector" / "Dockerfile").read_text()
LINES = [
    line.strip()
    for line in re.sub(r"\\\n\s*", "", TEXT).splitlines()
    if line.strip() and not line.startswith("#")
]
STAGES = [[]]
for _line in LINES:
    if _line.startswith("FROM "):
        STAGES.append([])
    STAGES[-1].append(_line)
_, BUILD, FINAL = STAGES
IMAGE_PYTHON = re.search(r"python:(\d+\.\d+)\.\d+-", BUILD[0])[1]
INSTALLED = "/opt/memtrace"
PINNED = [
    line
    for line in (ROOT / "collector" / "constraints.txt").read_text().splitlines()
    if not line.startswith("#")
]

same_python = pytest.mark.skipif(
    f"{sys.version_info.major}.{sys.version_info.minor}" != IMAGE_PYTHON,
    reason=f"the image's constraints are those of Python {IMAGE_PYTHON}",
)


def test_hadolint_finds_nothing():
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run(
        [hadolint, ROOT / "collector" / "Dockerfile"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_both_stages_have_one_pinned_base():
    bases = {line.split()[1] for line in LINES if line.startswith("FROM ")}
    assert len(bases) == 1
    assert re.fullmatch(r"python:\d+\.\d+\.\d+-slim-\w+", bases.pop())


def test_the_image_does_not_run_as_root_and_says_how_it_is():
    assert "USER 10001:10001" in FINAL
    assert any(line.startswith("HEALTHCHECK ") for line in FINAL)
    assert any("org.opencontainers.image.version" in line for line in FINAL)


def test_the_build_is_given_what_the_image_copies_and_nothing_else():
    given = {
        line[1:]
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    copied = {
        name
        for line in LINES
        if line.startswith("COPY ") and "--from=" not in line
        for name in line.split()[1:-1]
    }
    assert given == copied
    assert all((ROOT / name).exists() for name in copied)


@dataclass(frozen=True)
class Built:
    """What the build stage left."""

    folder: Path

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """A command of the image, with nothing of this environment's packages."""
        clean = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        return subprocess.run(
            [self.folder / "bin" / "memtrace-otel", *arguments],
            cwd=self.folder,
            env={**clean, **environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    source = tmp_path_factory.mktemp("source")
    target = tmp_path_factory.mktemp("opt") / "memtrace"
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(_wheels()),
        "PIP_NO_COMPILE": "1",
    }
    for line in BUILD:
        instruction, _, rest = line.partition(" ")
        if instruction == "ARG":
            name, _, value = rest.partition("=")
            environment[name] = value
        elif instruction == "COPY":
            *names, into = shlex.split(rest)
            for name in names:
                _copy(ROOT / name, source / into / name if into == "./" else source / into)
        elif instruction == "RUN":
            command = rest.replace(INSTALLED, str(target)).replace("--no-cache-dir", "--quiet")
            done = subprocess.run(
                ["sh", "-ec", command],
                cwd=source,
                env=environment,
                capture_output=True,
                text=True,
                timeout=240,
                check=False,
            )
            assert done.returncode == 0, done.stderr
    return Built(target)


def _wheels() -> Path:
    """What the image is made of besides this project, downloaded once for each list of it."""
    wanted = [*PINNED, "hatchling"]
    digest = hashlib.sha256(" ".join(wanted).encode()).hexdigest()[:12]
    folder = components.CACHE / f"image-wheels-{digest}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as fresh:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", fresh]
            subprocess.run([*pip, *wanted], check=True, timeout=280)
            shutil.copytree(fresh, folder)
    return folder


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


@same_python
def test_the_build_steps_leave_the_command_with_every_role_and_no_installer(built):
    assert built.run("--version").stdout.startswith("memtrace-otel, version ")
    for role in ("up", "process", "work", "serve"):
        done = built.run(role, "--help")
        assert done.returncode == 0, done.stderr
    assert not list(built.folder.glob("bin/pip*"))


@same_python
def test_what_was_built_takes_the_images_configuration_and_knows_the_database_it_is_given(built):
    done = built.run(
        "doctor",
        "--config",
        str(ROOT / "collector" / "memtrace.yaml"),
        "--store",
        "postgresql://127.0.0.1:1/memtrace",
    )
    assert done.returncode == 3, done.stderr + done.stdout
    assert "nobody" in done.stdout or "refused" in done.stdout
