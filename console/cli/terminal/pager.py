"""What is longer than the screen is read in a pager. Loaded only for a verb that lists something at a terminal."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Callable

from console.cli.terminal import out

USUAL = "less -FRX"
VARIABLES = ("WATCHFLOOR_PAGER", "PAGER")
"""The first that is set counts. They are the operator's own, as for every program of a terminal: no agent sets them here."""
_COLOURS = re.compile("\x1b\\[[0-9;]*m")


def through_pager(verb: Callable[[], int]) -> int:
    """Runs the verb and returns its exit code. A pager that is missing, dies or is left early never changes it."""
    command = chosen()
    if not command:
        return verb()
    out.hold()
    try:
        code = verb()
    except BaseException:  # an interrupt too: what was printed so far is not lost
        out.write(out.release())
        raise
    text = out.release()
    if is_short(text) or not _read_in(command, text):
        out.write(text)
    return code


def chosen() -> list[str]:
    """The words of the pager's command; none where there shall be none."""
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        return []
    try:
        words = shlex.split(next((os.environ[name] for name in VARIABLES if name in os.environ), USUAL))
    except ValueError:  # a quotation mark that is never closed
        return []
    return [] if words == ["cat"] else words


def is_short(text: str) -> bool:
    """Whether it fits on the screen, beside the next prompt."""
    try:
        size = os.get_terminal_size(1)
    except OSError:
        return True
    lines = (len(_COLOURS.sub("", line)) for line in text.splitlines())
    return not size.columns or sum(max(1, -(-length // size.columns)) for length in lines) < size.lines


def _read_in(command: list[str], text: str) -> bool:
    """Whether the pager could be started; returns when the person leaves it."""
    try:
        pager = subprocess.Popen(command, stdin=subprocess.PIPE, env={"LESS": "FRX", **os.environ})
    except OSError:
        return False
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the pager's: less ends a search by it, and stays
    try:
        pager.communicate(text.encode(errors="backslashreplace"))  # a pager that went away takes no more, which is no error
    finally:
        signal.signal(signal.SIGINT, before)
    return pager.returncode not in (126, 127)  # such as env(1) and sh(1) say that a program could not be run
