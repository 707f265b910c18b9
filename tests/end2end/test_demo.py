"""The demo is the product's whole job on a real fleet, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from console.cli.embedded import child_environment

pytestmark = [pytest.mark.engine, pytest.mark.envoy, pytest.mark.timeout(500)]
PNG = b"\x89PNG\r\n\x1a\n"


def demo(folder: Path, *options: str, **env: str) -> subprocess.Popen[str]:
    """``watchfloor demo --headless`` in a folder of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "console", "demo", "--headless", *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env={**child_environment(), "TMPDIR": str(folder), **env},
    )


def finish(process: subprocess.Popen[str], wait_s: float = 400) -> str:
    """What it said, once it ended; killed when it does not."""
    try:
        return process.communicate(timeout=wait_s)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        pytest.fail(f"the demo did not end:\n{process.communicate()[0]}")


@pytest.fixture
def folder(state_dir: Path) -> Path:
    """A folder that agents under another uid can pass through."""
    return state_dir


def test_every_promise_holds_on_a_real_fleet_and_nothing_is_left(folder: Path) -> None:
    process = demo(folder, "--seconds", "5", "--agents", "15")
    said = finish(process)
    assert process.returncode == 0, said
    assert "NOT HELD" not in said
    assert "not shown" not in said
    assert len(re.findall(r"^held ", said, re.MULTILINE)) == 14
    # The tree, the receipt, the other host's receipt, the commands to look at it.
    for words in ("market-research", "deep-reader", "docs-reader", "box-proxied", "halted"):
        assert words in said
    assert "launched release-bot: it asks for approval" in said and "1 open approval" in said
    assert re.search(r"All processes of \d+ .*agents? are dead", said)
    assert "obeyed remote order" in said
    assert re.search(r"(watchfloor|-m console) fleet --state-dir \S+", said)
    assert "stand-in, bucket" in said
    # The picture stays, the rest is gone.
    pictures = sorted(path.name for path in folder.iterdir())
    assert pictures == ["watchfloor-demo-fleet.png", "watchfloor-demo-kill-switch.png"]
    assert all((folder / name).read_bytes().startswith(PNG) for name in pictures)


@pytest.mark.parametrize(
    ("number", "words"), [(signal.SIGINT, "supervisor and guard of demo-a run"), (signal.SIGTERM, "launched box-full")]
)
def test_interrupted_at_any_moment_it_ends_clean(folder: Path, number: signal.Signals, words: str) -> None:
    process = demo(folder, "--seconds", "60", "--agents", "15")
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if words in line:
            break
    process.send_signal(number)
    said += finish(process)
    assert process.returncode == 130, said
    assert "NOT CLEAN" not in said
    assert list(folder.iterdir()) == []


def test_without_an_engine_bubblewrap_takes_its_place(folder: Path) -> None:
    process = demo(folder, "--seconds", "2", "--agents", "15", DOCKER_HOST="unix:///nonexistent/docker.sock")
    said = finish(process)
    assert process.returncode == 0, said
    assert "bubblewrap is used instead" in said
    assert "bubblewrap, contained, PROXIED, running" in said


def test_a_folder_in_use_is_refused_and_left_alone(folder: Path) -> None:
    (folder / "mine").mkdir()
    (folder / "mine" / "file").write_text("precious")
    process = demo(folder, "--state-dir", str(folder / "mine"))
    said = finish(process)
    assert process.returncode == 2
    assert "is not empty" in said
    assert (folder / "mine" / "file").read_text() == "precious"
    assert finish(demo(folder, "--seconds", "nan"))
    assert os.listdir(folder) == ["mine"]
