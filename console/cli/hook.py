"""``watchfloor hook PROGRAM``: puts one tool call before the instance. 0 lets it through; whatever goes wrong is 2, a block."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from console.cli.options import StateDir, seek_places
from console.cli.syntax import Argument, example
from console.cli.terminal.plain import plain
from console.domain.errors import ConsoleError, ExitCode
from console.domain.words import counted
from console.wording.agent_kinds import EXAMPLE, PLACES

if TYPE_CHECKING:
    from console.api.policy.hooks import HooksView

BLOCK = int(ExitCode.USAGE)
GRACE_S = 10
"""The hook waits so much longer than a request is kept for a human."""
FILE_MAX = 4 * 1024 * 1024
_MARK = b"/hooks/watchfloor-hook.py"
_STANDALONE = "console.integrations.hook"


@example(EXAMPLE)
def hook(
    program: Annotated[str, Argument(metavar="PROGRAM", help=f"{', '.join(PLACES)}.")],
    state_dir: StateDir = None,
) -> int:
    """Judge one tool call, told on standard input as the program tells its hooks. Exit 0: allowed. Exit 2: blocked, for whatever reason.

    install-hook installs a standalone file that does the same and starts faster.
    """
    try:
        if program not in PLACES:
            raise ConsoleError(f"There is no hook for {plain(program, 40)!r}.", f"Programs: {', '.join(PLACES)}.")
        places = seek_places(state_dir)
        if places is None:
            raise ConsoleError("There is no instance here; nothing is allowed without one.", "Name its folder with --state-dir.")
        from console.settings.layers import in_force

        wait = in_force(places).options.approvals.ttl_s + GRACE_S
        from importlib.util import find_spec

        found = find_spec(_STANDALONE)
        if found is None or not found.origin:
            raise ConsoleError("The hook's own file is missing.", "Install Watchfloor again.")
        os.execv(sys.executable, [sys.executable, "-I", "-S", found.origin, program, str(places.hooks_sock), f"{wait:g}"])
    except (ConsoleError, OSError, ValueError) as error:
        # Any code but 2 would let the call through.
        with suppress(OSError):
            os.write(2, f"Watchfloor: {error}\n".encode("utf-8", "backslashreplace"))
    return BLOCK


def installed_in(home: Path) -> dict[str, bool]:
    """Whether each program's settings of this user name our hook."""
    return {program: _names_it(home / place) for program, place in PLACES.items()}


def _names_it(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return _MARK in opened.read(FILE_MAX)
    except OSError:
        return False


def hook_words(program: str, *, installed: bool, view: HooksView | None) -> str:
    """One program's hook, as far as was seen: never called enforced before a call of it was judged."""
    there = "installed" if installed else "not installed for your own sessions"
    if view is None:
        return f"{there}; no supervisor answers: its calls are blocked" if installed else there
    heard = next((one for one in view.programs if one.program == program), None)
    if heard is None:
        return f"{there}; not enforced: no call has reached this supervisor"
    last = time.strftime("%H:%M:%S", time.localtime(heard.last_at))
    return f"{there}; enforced: {counted(heard.calls, 'call was', 'calls were')} checked by this supervisor, the last at {last}"
