"""Whether an agent's program really began: it was let go, and then execve(2) may still have failed."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from pathlib import Path

from console.domain.agent import Agent
from console.sandbox.interface import Prepared

LOOK_S = 0.01
WAIT_S = 3.0
"""Longest wait for an answer. After it the result is unknown, and the caller does not wait any longer."""
CANNOT_RUN = "[watchfloor: cannot run "
"""What our own first process writes when it cannot become the agent (sandbox/shim.py, sandbox/look.py)."""
_NUMBER = re.compile(r"\[Errno \d+\] ")
"""What Python puts before the kernel's words."""
NOT_EXECUTED = (126, 127)
"""Exit codes of a program that was not executed, as a shell reports it."""
_LOOKER = b"/.watchfloor/look.py\0"
SEES = Path("/proc/thread-self/children")
"""There where the kernel was built to tell of children (CONFIG_PROC_CHILDREN)."""
UNKNOWN = "whether its program could be executed is not known yet: watchfloor fleet says"


async def not_begun(prepared: Prepared | None, agent: Callable[[], Agent], output: Callable[[], str]) -> tuple[str, str]:
    """(why its program could not be executed, what is not known); both empty: it runs, or ran.

    ``prepared``: as it was let go; None: it is gone already. ``agent`` and ``output``: as they are when asked.
    """
    until = time.monotonic() + WAIT_S
    while agent().state.is_live:
        if (prepared is not None and prepared.container_id) or not SEES.exists():
            return "", UNKNOWN  # its processes are the engine's, or this kernel does not tell of children: only its end would tell
        if prepared is not None and await asyncio.to_thread(is_another_program, prepared.pid):
            return "", ""
        if time.monotonic() > until:
            return "", UNKNOWN
        await asyncio.sleep(LOOK_S)
    if agent().exit_code not in NOT_EXECUTED:
        return "", UNKNOWN if agent().exit_code is None else ""  # killed, maybe before it began
    first = (await asyncio.to_thread(output)).partition("\n")[0]
    said = _NUMBER.sub("", first.removeprefix("[watchfloor: ").removesuffix("]"))
    return (said[:500], "") if first.startswith(CANNOT_RUN) else ("", "")


def is_another_program(init: int, proc: Path = Path("/proc")) -> bool:
    """Whether the sandbox's init has a child that is no copy of itself any more, nor what looks from inside: an execve came to pass.

    proc(5): cmdline is what a process was given by its last execve. Blocks. False when it cannot be seen.
    """
    try:
        own = (proc / str(init) / "cmdline").read_bytes()
        children = (proc / str(init) / "task" / str(init) / "children").read_text().split()
    except OSError:
        return False
    return any(line and line != own and _LOOKER not in line for line in map(_cmdline, (proc / pid for pid in children)))


def _cmdline(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""
