"""What runs as a process of its own: the console without a display, the screenshot, and PySide6 itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from console.settings.places import Places
from tests.fakes.operator_server import FakeHouse

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")}
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env={**environment, **variables}, capture_output=True, text=True, timeout=90, check=False
    )


def test_pyside_survives_twenty_thousand_void_calls() -> None:
    """PySide6 6.12 loses a reference to None at every void call and aborts on Python 3.11 after 5,000 of them."""
    code = (
        "from PySide6.QtWidgets import QApplication, QWidget\n"
        "app = QApplication([])\nwidget = QWidget()\n"
        "for _ in range(20_000): widget.update()\nprint('alive')\n"
    )
    done = run("-c", code, QT_QPA_PLATFORM="offscreen")
    assert done.returncode == 0 and done.stdout.strip() == "alive", done.stderr


@pytest.mark.parametrize("module", ["console.gui", "console.panic"])
def test_without_a_display_it_says_so_and_ends_with_1(module: str, tmp_path: Path) -> None:
    done = run("-m", module, "--state-dir", str(tmp_path))
    assert done.returncode == 1
    assert "There is no display" in done.stderr and "watchfloor panic" in done.stderr and "Traceback" not in done.stderr


def test_a_screenshot_without_a_supervisor_is_an_honest_page(tmp_path: Path) -> None:
    file = tmp_path / "page.png"
    done = run("-m", "console.gui.screenshot", "fleet", str(file), "--theme", "light", "--state-dir", str(tmp_path / "none"))
    assert done.returncode == 0, done.stderr
    assert file.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and not (tmp_path / "none").exists(), "it reads only"


def test_a_screenshot_of_a_live_instance(tmp_path: Path, places: Places, make_house: Callable[..., FakeHouse]) -> None:
    house = make_house()
    file = tmp_path / "page.png"
    done = run("-m", "console.gui.screenshot", "kill-switch", str(file), "--size", "1024x700", "--state-dir", str(places.state_dir))
    assert done.returncode == 0, done.stderr
    assert file.stat().st_size > 20_000
    assert house.supervisor.log == [] and {op["op"] for op in house.guard.ops} == {"status"}


def test_a_screenshot_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    done = run("-m", "console.gui.screenshot", "fleet", str(tmp_path / "no" / "page.png"), "--state-dir", str(tmp_path))
    assert done.returncode == 1 and "could not be written" in done.stderr
    assert run("-m", "console.gui.screenshot", "fleet", "x.png", "--size", "7", "--state-dir", str(tmp_path)).returncode == 2
