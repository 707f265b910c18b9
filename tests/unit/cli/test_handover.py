"""Programs of ours that a verb runs to their end."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import console
from console.cli.handover import folded
from console.cli.terminal import out
from console.domain.process.ending import INTERRUPTED


def test_what_it_says_is_folded_at_the_terminal_and_its_exit_code_is_ours(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(out, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    assert folded("this") == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 40 and lines[0] == "The Zen of Python, by Tim Peters"
    assert folded("json.tool", "--no-such-option") == 2


ROOT = Path(console.__file__).resolve().parent.parent
_TERMINAL = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); from console.__main__ import main; main()"


@pytest.mark.parametrize("verb", ["doctor", "cost", "screenshot fleet x.png"])
def test_ctrl_c_is_a_word_and_never_a_traceback(verb: str, tmp_path: Path) -> None:
    """At every moment: while our modules load, while those of the program load that does the work, and while it works."""
    for after_s in (0.4, 0.6, 0.8, 1.0, 1.3, 1.7):
        ours, theirs = pty.openpty()
        child = subprocess.Popen(
            [sys.executable, "-c", _TERMINAL, *verb.split()],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "WATCHFLOOR_STATE_DIR": str(tmp_path / "s"), "PYTHONPATH": str(ROOT), "TERM": "xterm"},
            start_new_session=True,
            cwd=tmp_path,
        )
        os.close(theirs)
        time.sleep(after_s)
        os.write(ours, b"\x03")
        shown = b""
        try:
            while piece := os.read(ours, 65536):
                shown += piece
        except OSError:  # nobody holds the other end any more
            os.close(ours)
        code, words = child.wait(60), shown.decode(errors="replace")
        assert "Traceback" not in words and words.count("interrupted") <= 1, words
        # Where the key came before or after the verb was there to hear it, the verb has a code of its own.
        assert (code == INTERRUPTED) == ("interrupted" in words), (after_s, code, words)


def test_every_program_that_a_verb_becomes_lets_ctrl_c_in() -> None:
    """Else the key would be dead for as long as it runs."""
    given = re.compile(r'(?:become|folded)\(\s*"([\w.]+)"')
    named = {one for file in (ROOT / "console/cli").glob("*.py") for one in given.findall(file.read_text())}
    assert named >= {"console.supervisor", "console.gui", "console.gui.screenshot", "console.panic"}
    for module in named:
        file = ROOT.joinpath(*module.split("."))
        entry = (file / "__main__.py" if file.is_dir() else file.with_suffix(".py")).read_text()
        assert "SIG_UNBLOCK, {signal.SIGINT}" in entry or "sys.exit(until_interrupted(main))" in entry, module
