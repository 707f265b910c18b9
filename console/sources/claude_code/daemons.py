"""Claude Code's background service (``claude daemon run``), which ``claude --bg`` starts with process 1 as its parent.

Measured with 2.1.330 (docs/explanation/daemons.md): the daemon listens on ``/tmp/cc-daemon-UID/HASH/control.sock``. Each session is a child
``bg-pty-host`` with the session's process below it, which listens on ``HASH/rv/SHORT.sock``; SHORT is the first eight letters of the
session's id. A process that waits for its session listens on ``HASH/spare/X.claim.sock``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from console.domain.agent import ProcessIdentity
from console.sources.claude_code.program import CLAUDE
from console.sources.daemons import processes as p
from console.sources.daemons.interface import FoundDaemon, Hosted, Idle
from console.sources.daemons.marks import is_versioned, package_name, why_refused
from console.sources.daemons.processes import Processes

# A session that took a spare process keeps the spare's arguments, so only its socket tells which session it is.
_RENDEZVOUS = re.compile(r"/rv/([0-9a-f]{8})\.sock\Z")
_CLAIM = re.compile(r"/spare/[0-9a-f]{1,32}\.claim\.sock\Z")
_SESSION = re.compile(r"([0-9a-f]{8})(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_CONFIG = "CLAUDE_CONFIG_DIR"


class ClaudeDaemons:
    """Of Claude Code."""

    kind = "claude"
    resume_words = ("--resume", "-r", "--session-id")
    # The tools of a session carry it, so a session that runs again shows its id although its arguments do not.
    variables = ("CLAUDE_CODE_SESSION_ID",)

    def find(self, line: Sequence[ProcessIdentity], processes: Processes) -> FoundDaemon | None:
        for one in line[1:]:
            if CLAUDE.is_service(p.argv(one.pid)) and (found := self._described(one, line[0], processes)) is not None:
                return found
        return None

    def _described(self, daemon: ProcessIdentity, session: ProcessIdentity, processes: Processes) -> FoundDaemon | None:
        control = next((path for path in processes.listens(daemon.pid) if path.endswith("/control.sock")), "")
        if not control and not _is_package(Path(p.exe(daemon.pid))):
            return None  # another program whose arguments read like that
        hosted, idle, unknown = _children(daemon.pid, str(Path(control).parent), processes)
        seen = p.variables(daemon.pid)
        return FoundDaemon(
            self.kind,
            CLAUDE.service[1],
            daemon,
            p.exe(daemon.pid),
            -1 if (uid := p.account(daemon.pid)) is None else uid,
            hosted,
            idle,
            unknown,
            why_refused(daemon, session, control, _is_package, processes),
            # Measured: `claude stop` needs these and nothing else, so no other variable of an agent reaches a command.
            tuple((name, seen[name]) for name in ("HOME", _CONFIG) if seen.get(name, "").startswith("/")),
        )

    def transcript(self, process: ProcessIdentity, session: str) -> Path | None:
        if not _SESSION.match(session):
            return None
        seen = p.variables(process.pid)
        folder = Path(seen.get(_CONFIG) or f"{seen.get('HOME', '')}/.claude")
        with suppress(OSError):
            return next((path for path in folder.glob(f"projects/*/{session}.jsonl")), None)
        return None

    def drop(self, daemon: FoundDaemon, session: str) -> tuple[str, ...]:
        found = _SESSION.match(session)
        # Measured: while the daemon is stopped by SIGSTOP a kill and this command bring nothing back, and its other sessions go on.
        return (daemon.exe, "stop", found[1]) if found else ()


def _is_package(program: Path) -> bool:
    if package_name(program).startswith("@anthropic-ai/claude-code"):
        return True
    return is_versioned(program, "claude") or str(program).endswith("/claude_agent_sdk/_bundled/claude")


def _children(daemon: int, folder: str, processes: Processes) -> tuple[tuple[Hosted, ...], tuple[Idle, ...], tuple[ProcessIdentity, ...]]:
    """What each child of the daemon is there for, by the sockets that the processes below it listen on."""
    hosted, idle, unknown = list[Hosted](), list[Idle](), list[ProcessIdentity]()
    for pid in processes.children.get(daemon, []):
        child = processes.identity(pid)
        if child is None:
            continue
        paths = [path for below in processes.below(pid) for path in processes.listens(below) if path.startswith(f"{folder}/")]
        sessions = [(found[1], path) for path in paths if (found := _RENDEZVOUS.search(path))]
        # Sockets and not roster.json: the kernel keeps the bound path, while any program of the account can write that file.
        hosted += [Hosted(short, child, path) for short, path in sessions]
        claim = next((path for path in paths if _CLAIM.search(path)), "")
        if not sessions and claim:
            idle.append(Idle(child, claim))
        elif not sessions:
            # A daemon with a child whose session is not known is frozen at most: killing it could end another's work.
            unknown.append(child)
    return tuple(hosted), tuple(idle), tuple(unknown)
