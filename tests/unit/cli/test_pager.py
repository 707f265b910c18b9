"""Long lists are read in a pager at a terminal, and nowhere else; whatever becomes of the pager is no error."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest

import console
from console.cli.find import every_verb
from console.cli.syntax import Verb
from console.cli.terminal import out, pager
from console.cli.verbs import PAGED
from console.egress.children import readable

ROOT = Path(console.__file__).resolve().parent.parent
LISTS = ("config", "show")
"""Many more lines than a small screen has, from no supervisor."""
_PROGRAM = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); from console.__main__ import main; main()"
"""The command line, with the terminal as its own: keys of a pager and Ctrl-C come from there."""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "s"


def at_a_terminal(state: Path, *argv: str, lines: int = 20, keys: bytes = b"", interrupt: bool = False, **more: str) -> tuple[int, str]:
    """Exit code and everything that the terminal showed; ``keys`` and an interrupt come once something is shown."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, 120, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("PAGER", "WATCHFLOOR_PAGER", "LESS")}
    environment |= {"WATCHFLOOR_STATE_DIR": str(state), "TERM": "xterm", "NO_COLOR": "1", "PYTHONPATH": str(ROOT), **more}
    child = subprocess.Popen(
        [
            sys.executable,
            "-c",
            _PROGRAM,
            *argv,
        ],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        start_new_session=True,
    )
    os.close(theirs)
    shown, deadline = b"", time.monotonic() + 60
    while time.monotonic() < deadline:
        if not readable(ours, 0.1):
            continue
        try:
            shown += os.read(ours, 65536)
        except OSError:  # nobody holds the other end any more
            break
        if interrupt:
            os.killpg(child.pid, signal.SIGINT)  # as the terminal does
            interrupt = False
        if keys:
            os.write(ours, keys)
            keys = b""
    os.close(ours)
    return child.wait(30), shown.decode(errors="replace").replace("\r\n", "\n")


def script(folder: Path, body: str) -> str:
    """A pager of the test's own."""
    file = folder / "own pager"
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)
    return f"'{file}'"


def whole(state: Path) -> str:
    """What the verb prints without a pager."""
    code, shown = at_a_terminal(state, "--no-pager", *LISTS)
    assert code == 0 and len(shown.splitlines()) > 40
    return shown


@pytest.mark.parametrize("variable", ["PAGER", "WATCHFLOOR_PAGER"])
def test_what_is_longer_than_the_screen_goes_to_the_pager_of_the_operator(variable: str, state: Path, tmp_path: Path) -> None:
    took = tmp_path / "took"
    own: dict[str, Any] = {variable: script(tmp_path, f'cat > "{took}"')}
    code, shown = at_a_terminal(state, *LISTS, **own)
    assert (code, shown) == (0, "") and took.read_text() == whole(state)


def test_the_own_variable_counts_before_the_general_one(state: Path, tmp_path: Path) -> None:
    code, shown = at_a_terminal(state, *LISTS, WATCHFLOOR_PAGER="cat", PAGER=script(tmp_path, "echo own; cat > /dev/null"))
    assert code == 0 and "own\n" not in shown and shown == whole(state)


def test_less_is_the_usual_pager_and_q_leaves_it(state: Path) -> None:
    code, shown = at_a_terminal(state, *LISTS, keys=b"q")
    assert code == 0 and 0 < len(shown.splitlines()) < 30


@pytest.mark.parametrize("argv", [("--no-pager", *LISTS), (*LISTS, "--no-pager"), (*LISTS, "--json"), ("config", "show", "--help")])
def test_no_pager_where_none_is_wanted(argv: tuple[str, ...], state: Path, tmp_path: Path) -> None:
    code, shown = at_a_terminal(state, *argv, PAGER=script(tmp_path, "echo own"))
    assert code == 0 and "own\n" not in shown and shown


@pytest.mark.parametrize("more", [{"TERM": "dumb"}, {"PAGER": "cat"}, {"PAGER": ""}, {"PAGER": "/nonexistent/pager"}, {"PAGER": "'x"}])
def test_without_a_pager_everything_is_printed(more: dict[str, Any], state: Path) -> None:
    assert at_a_terminal(state, *LISTS, **more) == (0, whole(state))


def test_a_pager_that_another_program_cannot_find_hides_nothing(state: Path) -> None:
    code, shown = at_a_terminal(state, *LISTS, PAGER="env nonexistent-pager")
    assert code == 0 and shown.endswith(whole(state))


def test_what_fits_is_printed(state: Path, tmp_path: Path) -> None:
    code, shown = at_a_terminal(state, *LISTS, lines=2000, PAGER=script(tmp_path, "echo own"))
    assert (code, shown) == (0, whole(state))


@pytest.mark.parametrize("body", ["exit 3", "kill -9 $$", "head -n 1 > /dev/null"])
def test_a_pager_that_dies_or_is_left_early_is_no_error(body: str, state: Path, tmp_path: Path) -> None:
    code, shown = at_a_terminal(state, *LISTS, PAGER=script(tmp_path, body))
    assert code == 0 and "error" not in shown and "Traceback" not in shown


def test_ctrl_c_is_the_pagers(state: Path, tmp_path: Path) -> None:
    own = script(tmp_path, "trap 'echo heard' INT; cat > /dev/null; echo open; sleep 1; echo closed")
    code, shown = at_a_terminal(state, *LISTS, interrupt=True, PAGER=own)
    assert code == 0 and "closed\n" in shown and "interrupted" not in shown


def test_a_program_that_reads_gets_it_at_once(state: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "console", *LISTS],
        env={**os.environ, "WATCHFLOOR_STATE_DIR": str(state), "PAGER": script(tmp_path, "echo own"), "TERM": "xterm"},
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "own\n" not in done.stdout and len(done.stdout.splitlines()) > 40


def test_what_was_printed_before_an_error_is_not_lost(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> int:
        out.say("first")
        raise KeyboardInterrupt

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("PAGER", "less")
    with pytest.raises(KeyboardInterrupt):
        pager.through_pager(broken)
    out.say("second")
    assert capsys.readouterr().out == "first\nsecond\n"


def test_only_verbs_that_show_something_are_paged() -> None:
    found = {" ".join(path): one for path, one in every_verb() if isinstance(one, Verb)}
    assert found.keys() >= PAGED
    for path in PAGED:
        names = {name for each in found[path].parameters() for name in each.names}
        assert "--json" in names and not names & {"--yes", "--reason"}, f"{path} asks or changes something"


def test_a_line_that_wraps_takes_the_room_of_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "get_terminal_size", lambda _fd: os.terminal_size((10, 5)))
    assert pager.is_short("a\n" * 4) and not pager.is_short("a\n" * 5)
    assert pager.is_short("\x1b[1m" + "a" * 40 + "\x1b[0m\n") and not pager.is_short("a" * 41 + "\n")
