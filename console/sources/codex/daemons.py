"""Codex's app-server, which hosts many threads in one process and keeps running when the program that asked for a thread ends.

Measured with 0.169 (docs/explanation/daemons.md): it listens on a socket below ``/tmp/codex-daemon-UID`` (or where ``--listen`` says)
and holds the rollout file of each loaded thread open. ``codex archive THREAD`` ends the thread's turn and unloads it.
The other threads go on.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from console.domain.agent import ProcessIdentity
from console.sources.codex.program import CODEX
from console.sources.daemons import processes as p
from console.sources.daemons.interface import FoundDaemon, Hosted
from console.sources.daemons.marks import package_name, why_refused
from console.sources.daemons.processes import Processes

_ROLLOUT = re.compile(r"/rollout-[0-9T-]{1,40}-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl\Z")
_THREAD = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_HOME = "CODEX_HOME"


class CodexDaemons:
    """Of Codex."""

    kind = "codex"
    resume_words = ("resume", "--resume", "--thread")
    variables = ("CODEX_THREAD_ID",)

    def find(self, line: Sequence[ProcessIdentity], processes: Processes) -> FoundDaemon | None:
        for one in line:  # a thread has no process of its own: the daemon is the session's process as well
            if CODEX.is_service(p.argv(one.pid)) and _is_package(Path(p.exe(one.pid))):
                return self._described(one, line[0], processes)
        return None

    def _described(self, daemon: ProcessIdentity, session: ProcessIdentity, processes: Processes) -> FoundDaemon:
        control = next(iter(processes.listens(daemon.pid)), "")
        seen = p.variables(daemon.pid)
        return FoundDaemon(
            self.kind,
            CODEX.service[1],
            daemon,
            p.exe(daemon.pid),
            -1 if (uid := p.account(daemon.pid)) is None else uid,
            # No child: a thread runs inside the app-server, and only its commands are processes.
            tuple(Hosted(thread, None) for thread in _threads(daemon.pid)),
            refused=why_refused(daemon, session, control, _is_package, processes),
            home=tuple((name, seen[name]) for name in ("HOME", _HOME) if seen.get(name, "").startswith("/")),
        )

    def transcript(self, process: ProcessIdentity, session: str) -> Path | None:
        return next((path for path in _rollouts(process.pid) if session and path.name.endswith(f"-{session}.jsonl")), None)

    def drop(self, daemon: FoundDaemon, session: str) -> tuple[str, ...]:
        # Measured: killing the app-server ends every thread, while this ends one in 0.3 s and `codex unarchive` takes it back.
        return (daemon.exe, "archive", session) if _THREAD.match(session) else ()


def _threads(pid: int) -> list[str]:
    return sorted({found[1] for path in _rollouts(pid) if (found := _ROLLOUT.search(str(path)))})


def _rollouts(pid: int) -> list[Path]:
    """Those that it holds open."""
    found = []
    with suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
            with suppress(OSError):
                # Measured: the app-server holds the rollout of each loaded thread open, so the kernel tells which threads it hosts.
                path = os.readlink(f"/proc/{pid}/fd/{name}")  # noqa: PTH115
                if _ROLLOUT.search(path):
                    found.append(Path(path))
    return found


def _is_package(program: Path) -> bool:
    if program.name != "codex":
        return False
    if package_name(program).startswith("@openai/codex"):
        return True
    return (program.parent.parent / "codex-package.json").is_file()  # as its own installer lays it out: bin/codex beside that file
